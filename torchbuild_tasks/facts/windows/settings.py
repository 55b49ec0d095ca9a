"""How this Windows is set: long paths, Developer Mode, and the shell that we were started from."""

from __future__ import annotations

from torchbuild_tasks.facts.probe import Probe

FILE_SYSTEM = "HKLM\\SYSTEM\\CurrentControlSet\\Control\\FileSystem"
APP_MODEL = "HKLM\\SOFTWARE\\Microsoft\\Windows\\CurrentVersion\\AppModelUnlock"
CURRENT_VERSION = "HKLM\\SOFTWARE\\Microsoft\\Windows NT\\CurrentVersion"
FIRST_11 = 22000


def long_paths(probe: Probe) -> bool | None:
    """Whether programs that ask for it may use paths above 260 characters."""
    return _switch(probe, FILE_SYSTEM, "LongPathsEnabled")


def developer_mode(probe: Probe) -> bool | None:
    """Whether ordinary users may make symbolic links."""
    return _switch(probe, APP_MODEL, "AllowDevelopmentWithoutDevLicense")


def git_long_paths(probe: Probe, root: str) -> bool | None:
    """Git's core.longpaths for `root`; False when it is set nowhere, None when git does not say."""
    git = probe.which("git")
    if git is None:
        return None
    place = ("-C", root) if probe.is_dir(root) else ()
    output = probe.run((git, *place, "config", "--type=bool", "--get", "core.longpaths"))
    # git ends with 1, and says nothing, for what is not set.
    if output is None or output.rc not in (0, 1):
        return None
    return output.rc == 0 and output.stdout.strip() == "true"


def shell(probe: Probe) -> str | None:
    """cmd or powershell; None when the environment does not tell, or speaks of both.

    cmd.exe sets PROMPT for what it starts. Everyone has PSModulePath, but only a running
    PowerShell puts the user's own modules or its own into it (about_PSModulePath).
    """
    prompt = probe.variable("PROMPT") != ""
    modules = [path.lower() for path in probe.names.split_path(probe.variable("PSModulePath"))]
    own = ("\\documents\\windowspowershell\\modules", "\\powershell\\modules", "\\powershell\\7\\modules")
    power = any(path.rstrip("\\").endswith(own) for path in modules)
    if prompt == power:
        return None
    return "cmd" if prompt else "powershell"


def distribution(probe: Probe) -> str | None:
    """The name of this Windows: "Windows 11 Pro 24H2 (build 26100.4349)".

    Microsoft left the name at "Windows 10" in Windows 11; from build 22000 it is 11. Servers
    have their own names, and are named rightly.
    """
    said = {
        name: probe.registry_value(CURRENT_VERSION, name)
        for name in ("ProductName", "DisplayVersion", "ReleaseId", "CurrentBuildNumber", "UBR")
    }
    name, build = said["ProductName"], said["CurrentBuildNumber"]
    if not isinstance(name, str) or not name:
        return None
    name = name.removeprefix("Microsoft ")
    number = str(build or "")
    if number.isascii() and number.isdigit() and int(number) >= FIRST_11 and name.startswith("Windows 10"):
        name = name.replace("Windows 10", "Windows 11", 1)
    if release := said["DisplayVersion"] or said["ReleaseId"]:
        name += f" {release}"
    update = f".{said['UBR']}" if said["UBR"] is not None else ""
    return f"{name} (build {number}{update})" if number else name


def _switch(probe: Probe, key: str, name: str) -> bool | None:
    """A setting that is off where it is not set; None when the registry tells nothing at all."""
    value = probe.registry_value(key, name)
    if value is None and probe.registry_value(CURRENT_VERSION, "CurrentBuildNumber") is None:
        return None
    return value not in (None, 0)
