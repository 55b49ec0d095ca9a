"""Format a container's files: Containerfile, devcontainer.json, compose.yaml; and an engine's commands."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from torchbuild_tasks.catalog.packaging import EngineRow
from torchbuild_tasks.features.container.choose import CACHE, USER, WORKSPACE, Container, Mount

CONTAINERFILE: Final = "Containerfile"
DEVCONTAINER: Final = "devcontainer.json"
COMPOSE: Final = "compose.yaml"
TOOL: Final = "tool"  # the folder beside them with this tool
_HOME: Final = "/opt/torchbuild"
# Names of the secrets with pip's settings and certificates; they do not stay in the image.
PIP_SECRET: Final = "pip"
CERTIFICATES_SECRET: Final = "certificates"


def containerfile(container: Container, writer: str) -> str:
    """Return the Containerfile: packages for builds, the user, this tool."""
    packages = " \\\n        ".join(container.packages)
    python = f"{_HOME}/bin/python"
    lines = [
        f"# Written by {writer}. An edited one is kept and used as it is.",
        *(f"# {each.name}: {each.value} ({each.because})" for each in container.choices[:1]),
        f"ARG BASE={container.base}",
        "FROM ${BASE}",
        "",
        "ARG DEBIAN_FRONTEND=noninteractive",
        "# hadolint ignore=DL3008",
        "RUN --mount=type=cache,target=/var/cache/apt,sharing=locked \\",
        "    --mount=type=cache,target=/var/lib/apt/lists,sharing=locked \\",
        "    rm -f /etc/apt/apt.conf.d/docker-clean \\",
        "    && apt-get update \\",
        f"    && apt-get install -y --no-install-recommends \\\n        {packages}",
        "",
        "# This tool, in a Python of its own; pip's settings and certificates of the machine do not stay.",
        f"COPY {TOOL}/requirements.txt {_HOME}/",
        "RUN --mount=type=cache,target=/var/cache/pip \\",
        f"    --mount=type=secret,id={PIP_SECRET},target=/etc/pip.conf \\",
        f"    --mount=type=secret,id={CERTIFICATES_SECRET} \\",
        f"    if [ -s /run/secrets/{CERTIFICATES_SECRET} ]; then \\",
        f"        export PIP_CERT=/run/secrets/{CERTIFICATES_SECRET}; fi; \\",
        f"    {container.python} -m venv {_HOME} \\",
        f"    && {python} -m pip install --disable-pip-version-check --cache-dir /var/cache/pip \\",
        f"        -r {_HOME}/requirements.txt",
        f"RUN echo {_HOME}/own > {_HOME}/lib/{container.python}/site-packages/torchbuild.pth",
        f"COPY {TOOL}/torchbuild /usr/local/bin/",
        f"COPY {TOOL}/torchbuild_tasks {_HOME}/own/torchbuild_tasks",
        "",
        *_user(container),
        f"ENV SHELL=/bin/bash XDG_STATE_HOME={CACHE}/state",
        f"WORKDIR {WORKSPACE}",
        f"CMD {json.dumps(container.command)}",
    ]
    return "\n".join(lines) + "\n"


def _user(container: Container) -> list[str]:
    """Return the lines that create the user; none for root."""
    if container.run_as_root:
        return [f"RUN mkdir -p {CACHE} {WORKSPACE}", f"ENV HOME=/home/{USER}"]
    return [
        "# The ids of the machine's user, so that what is made in the checkout is theirs.",
        f"ARG USER_ID={container.uid}",
        f"ARG GROUP_ID={container.gid}",
        'RUN if name=$(id --name --user "${USER_ID}" 2>/dev/null); then \\',
        '        userdel --remove "${name}" || true; fi \\',
        f'    && groupadd --non-unique --gid "${{GROUP_ID}}" {USER} \\',
        f'    && useradd --no-log-init --create-home --uid "${{USER_ID}}" --gid "${{GROUP_ID}}" {USER} \\',
        f"    && mkdir -p {CACHE} {WORKSPACE} \\",
        f'    && chown "${{USER_ID}}:${{GROUP_ID}}" {CACHE} {WORKSPACE}',
        'USER "${USER_ID}:${GROUP_ID}"',
        f"ENV HOME=/home/{USER}",
    ]


def devcontainer(container: Container) -> str:
    """Return devcontainer.json (https://containers.dev/implementors/json_reference/)."""
    checkout, *others = container.mounts
    data: dict[str, Any] = {
        "name": "PyTorch, built from this checkout",
        "build": {"dockerfile": CONTAINERFILE, "context": ".", "options": list(_secrets(container.mounts))},
        "workspaceMount": _csv(checkout),
        "workspaceFolder": WORKSPACE,
        "mounts": [_csv(each) for each in others],
        "runArgs": list(_list_access(container)),
        "containerEnv": {
            **container.environ,
            **{name: f"${{localEnv:{name}}}" for name in container.passed},
        },
        "remoteUser": "root" if container.run_as_root else USER,
        "updateRemoteUserUID": False,
        "overrideCommand": True,
    }
    if container.gpu:
        data["hostRequirements"] = {"gpu": "optional"}
    return json.dumps({name: value for name, value in data.items() if value != {}}, indent=2) + "\n"


def compose(container: Container) -> str:
    """Return compose.yaml in block style, for people to edit."""
    secrets = _secret_files(container.mounts)
    build = {"context": ".", "dockerfile": CONTAINERFILE, **({"secrets": list(secrets)} if secrets else {})}
    service: dict[str, Any] = {
        "image": IMAGE,
        "build": build,
        "cap_add": ["SYS_PTRACE"],
        "working_dir": WORKSPACE,
        "stdin_open": True,
        "tty": True,
        "environment": {**container.environ, **dict.fromkeys(container.passed)},
        "volumes": [_long(each) for each in container.mounts],
    }
    if container.memory:
        service["mem_limit"] = container.memory
    if container.rootless and "--userns=keep-id" in container.engine.user:
        service["userns_mode"] = "keep-id"
    if container.engine.given:
        service["security_opt"] = [container.engine.given[-1]]
    if container.gpu:
        service |= _compose_gpu(container)
    volumes = {each.source: {"name": each.source} for each in container.mounts if each.volume}
    document: dict[str, Any] = {"services": {"torch": service}, "volumes": volumes}
    if secrets:
        document["secrets"] = {name: {"file": file} for name, file in secrets.items()}
    return "\n".join(_yaml(document)) + "\n"


IMAGE: Final = "localhost/torchbuild"


def _compose_gpu(container: Container) -> dict[str, Any]:
    if "nvidia.com/gpu=all" in container.engine.gpu:
        return {"devices": ["nvidia.com/gpu=all"]}
    if container.tegra:
        return {"runtime": "nvidia"}
    wanted = {"driver": "nvidia", "count": "all", "capabilities": ["gpu"]}
    return {"deploy": {"resources": {"reservations": {"devices": [wanted]}}}}


def _secret_files(mounts: Iterable[Mount]) -> dict[str, str]:
    """Return the machine's files that the build of an image reads, by the secret's name."""
    files = {each.target: each.source for each in mounts if each.read_only}
    names = {
        PIP_SECRET: files.get("/etc/pip.conf"),
        CERTIFICATES_SECRET: next((path for name, path in files.items() if name.endswith(".pem")), None),
    }
    return {name: path for name, path in names.items() if path}


def _secrets(mounts: Iterable[Mount]) -> Iterator[str]:
    for name, path in _secret_files(mounts).items():
        yield from ("--secret", f"id={name},src={path}")


def _csv(mount: Mount, engine: EngineRow | None = None) -> str:
    """Return a mount as devcontainer.json or an engine's --mount has it."""
    if engine and engine.bind and not mount.read_only:
        return engine.bind.format(source=mount.source, target=mount.target)
    kind = "volume" if mount.volume else "bind"
    end = ",readonly" if mount.read_only else ""
    return f"type={kind},source={mount.source},target={mount.target}{end}"


def _long(mount: Mount) -> dict[str, Any]:
    data: dict[str, Any] = {"type": "volume" if mount.volume else "bind"}
    data |= {"source": mount.source.replace("$", "$$"), "target": mount.target}
    return {**data, "read_only": True} if mount.read_only else data


def _list_access(container: Container) -> Iterator[str]:
    """Yield the options of a container: user, ptrace, memory, GPUs."""
    yield from container.engine.given
    if container.rootless:
        yield from container.engine.user
    yield from ("--cap-add", container.engine.ptrace)
    if container.memory:
        yield from ("--memory", str(container.memory))
    if container.gpu:
        yield from container.engine.tegra if container.tegra else container.engine.gpu


def _yaml(value: Mapping[str, Any], depth: int = 0) -> Iterator[str]:
    """Yield the lines of a mapping of strings, numbers, lists and mappings in YAML."""
    space = "  " * depth
    for name, each in value.items():
        if isinstance(each, Mapping) and each:
            yield f"{space}{name}:"
            yield from _yaml(each, depth + 1)
        elif isinstance(each, list) and each:
            yield f"{space}{name}:"
            for item in each:
                if isinstance(item, Mapping):
                    first, *rest = _yaml(item, depth + 2)
                    yield f"{space}  - {first.strip()}"
                    yield from rest
                else:
                    yield f"{space}  - {json.dumps(item)}"
        else:
            yield f"{space}{name}: {'' if each is None else json.dumps(each, ensure_ascii=False)}".rstrip()


# ---------------- commands of an engine


def build_argv(program: str, container: Container, image: str, folder: str, *, offline: bool) -> list[str]:
    """Return the command that builds the image of a folder with a Containerfile."""
    engine = container.engine
    words = [program, *engine.build, "--tag", image, "--file", f"{folder}/{CONTAINERFILE}"]
    words += engine.offline if offline else ()
    words += _secrets(container.mounts)
    for name in container.passed:
        words += ("--build-arg", name)  # its value is in the environment
    return [*words, folder]


def run_argv(
    program: str, container: Container, image: str, command: Iterable[str], *, tty: bool
) -> list[str]:
    """Return the command that runs a command in a container; by default the image's own."""
    words = [program, *container.engine.run, *(("-t",) if tty else ())]
    words += _list_access(container)
    for mount in container.mounts:
        words += ("--mount", _csv(mount, container.engine))
    for name, value in container.environ.items():
        words += ("--env", f"{name}={value}")
    for name in container.passed:
        words += ("--env", name)
    return [*words, image, *command]
