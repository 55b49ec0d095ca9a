"""The stages before a compile: env files, a tree fit for changed inputs, the Python of the build."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from torchbuild_tasks.build import ownership
from torchbuild_tasks.build.ledger import last_log_time
from torchbuild_tasks.build.outputs import recordable_outputs
from torchbuild_tasks.build.work import Work, is_agreed
from torchbuild_tasks.errors import (
    CleanRefused,
    DownloadFailed,
    EnvFileError,
    RequirementsError,
    UsageError,
)
from torchbuild_tasks.model import BuildPlan, Command
from torchbuild_tasks.ninja.progress import counting
from torchbuild_tasks.options import BuildRequest
from torchbuild_tasks.plan import env_files
from torchbuild_tasks.plan.environment import OWN_VENV
from torchbuild_tasks.plan.requirements import missing_from_files
from torchbuild_tasks.system import files, process, shell, trust, venv
from torchbuild_tasks.system.stall import Pace, Stalled
from torchbuild_tasks.text.show import shell_text, size_text
from torchbuild_tasks.text.words import remove_line, shell_line
from torchbuild_tasks.values import replace

_NO_NETWORK: Final = "Without network, point pip at a folder of wheels: --offline --wheels folder"
_OF_NETWORK: Final = ("network", "certificate", "damaged-download")  # rows of known failures


def refresh_tree(work: Work) -> Work:
    """Reconfigure or clean an existing build tree if the changed inputs require it."""
    needs = work.plan.freshness.needs
    if needs == "reconfigure":
        from torchbuild_tasks.build.clean import set_cmake_cache_aside

        set_cmake_cache_aside(work)
        work.report.note(f"CMake runs again: {work.plan.freshness.because}")
    elif needs == "clean":
        _clean_for_inputs(work)
    return work


def prepare_python(work: Work) -> Work:
    """Create the venv that gets torch, and install the build requirements."""
    environment = work.plan.environment
    complete = venv.is_complete(environment.python) and venv.is_ours(environment.python)
    if environment.create and not complete:
        _make_venv(work, environment.python, environment.create)
    changes = [change for change in (environment.remove, environment.install) if change]
    if environment.foreign and changes and not is_agreed(work, _question(environment.python, changes)):
        raise RequirementsError(
            f"{environment.python} has to be changed for this build, and it is your own environment.",
            looked=tuple(f"{shell_text(change.argv)}  ({change.because})" for change in changes),
            next_step=f"Do that yourself, or add --yes. {OWN_VENV}",
        )
    _check_wheels(environment.install)
    for change in changes:
        install(work, change)
    if work.plan.mode == "develop":
        _set_aside_half_torch(work)
    if environment.better:
        _install_optional(work, environment.better)
    if environment.create and not complete:
        _forget_lost_program(work)
    return replace(work, environ={**work.env, **_pip_variables(work)})


def _forget_lost_program(work: Work) -> None:
    """Let CMake run again where its cache names a program that stood in the venv before this one."""
    from torchbuild_tasks.build.build_program import lost_program

    if lost := lost_program(work.build_dir):
        from torchbuild_tasks.build.clean import set_cmake_cache_aside

        set_cmake_cache_aside(work)
        work.report.note(f"CMake runs again: {lost} made the build tree and is gone")


def _set_aside_half_torch(work: Work) -> None:
    """Move what a killed install left aside: Python would import that instead of the checkout, and fail."""
    for python in work.facts.pythons:
        half = Path(python.half_torch or "")
        ours = python.executable == work.plan.environment.python and python.half_torch
        if ours and half.is_dir() and not half.is_symlink():
            from torchbuild_tasks.build.clean import free_name

            aside = free_name(half)
            with files.translate_errors(RequirementsError, half):
                files.replace(half, aside)
            work.report.note(
                f"{half} belongs to no package, probably after a killed install; it was moved to {aside}"
            )


def _make_venv(work: Work, python: str, create: Command) -> None:
    """Create the venv; the venv module itself clears an unfinished one."""
    if aside := venv.set_aside(python):
        work.report.note(f"{venv.folder_of(python)} was not made by torchbuild here; it was moved to {aside}")
    venv.mark_unfinished(python)
    folder = venv.folder_of(python)
    first, *rest = list_venv_commands(create)
    try:
        _make_in(work, folder, first)
    except RequirementsError:
        if not rest:
            raise
        work.report.note("uv could not make the venv; trying Python's venv module")
        _make_in(work, folder, rest[0])
    venv.mark_complete(python)


def _make_in(work: Work, folder: Path, create: Command) -> None:
    clear = ("--clear",) if folder.exists() else ()
    install(work, replace(create, argv=(*create.argv, *clear)))


def list_venv_commands(create: Command) -> tuple[Command, ...]:
    """Return the commands that can make the venv: that of the plan, then after uv's Python's own module.

    uv downloads the venv's pip from an index, which may be unreachable; Python includes one.
    """
    if "--seed" not in create.argv:
        return (create,)
    python, folder = create.argv[create.argv.index("--python") + 1 :][:2]
    return create, replace(create, argv=(python, "-m", "venv", folder))


def _check_wheels(command: Command | None) -> None:
    """Report all wheels that a folder lacks at once; pip stops at the first.

    Raises:
        RequirementsError: without a network, something that the build needs is not in it.
    """
    if command is None or "--no-index" not in command.argv:
        return
    at = command.argv.index("--find-links") + 1
    folder = Path(command.argv[at]).expanduser()
    names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    if missing := missing_from_files(names, command.argv[at + 1 :]):
        line = shell_line(("pip", "download", "--dest", "wheels", *missing), windows=os.name == "nt")
        raise RequirementsError(
            f"{len(missing)} packages that the build needs are not in {folder}.",
            looked=missing,
            next_step=f"Where there is a network: {line}\nand put the files into that folder.",
        )


def _install_optional(work: Work, command: Command) -> None:
    """Install an optional requirement; if it is not available, go on without it."""
    try:
        install(work, command)
    except RequirementsError:
        work.report.note(
            f"Left out, because it is not available: {command.because} (--machine-tools does not ask for it)"
        )


def _pip_variables(work: Work) -> dict[str, str]:
    """Return the variables that give the pip that builds torch the options of the plan's installs.

    A venv may be constrained to an earlier torch, which this build is to replace.
    """
    options = work.plan.environment.install_options
    python = work.plan.environment.python
    settings = {"PIP_NO_INDEX": "1"} if "--no-index" in options else {}
    if "--find-links" in options:
        folder = Path(options[options.index("--find-links") + 1]).expanduser().resolve()
        settings["PIP_FIND_LINKS"] = folder.as_uri()
    none = venv.folder_of(python) / venv.NONE
    if not work.plan.environment.foreign and none.exists() and not os.environ.get("PIP_CONSTRAINT"):
        settings["PIP_CONSTRAINT"] = none.as_uri()
    return settings


def keep_torch(work: Work) -> Work:
    """Write a pip constraint into a venv of ours, so that no later install replaces the built torch."""
    environment = work.plan.environment
    if environment.foreign or work.request.target or not venv.is_complete(environment.python):
        return work
    same = work.up_to_date or work.front_end_skipped  # nothing was installed, so the version is unchanged
    if same and (venv.folder_of(environment.python) / venv.CONSTRAINTS).exists():
        return work
    ask = "import importlib.metadata as m; print(m.version('torch'))"
    captured = process.capture((environment.python, "-I", "-c", ask), timeout=60.0)
    if captured.answer and venv.keep_torch(environment.python, captured.answer):
        work.report.note(
            f"pip in {venv.folder_of(environment.python)} will not replace this torch from now on"
        )
    return work


def write_env_files(work: Work) -> Work:
    """Write the plan's env files; leave an unchanged file alone."""
    write_envs(work.plan)
    return work


def write_envs(plan: BuildPlan) -> None:
    """Write the env files of a plan, and record outside of the checkout that they are ours.

    Raises:
        EnvFileError: a file of that name is not one that this tool wrote, or it cannot be written.
    """
    for env_file in plan.env_files:
        data = env_files.encode(env_file.shell, env_file.text)
        path = Path(env_file.path)
        before = path.read_bytes() if path.is_file() else data
        if before != data and not _is_own_env(path, before):
            raise EnvFileError(
                f"{path} is there already, and torchbuild did not write it.",
                next_step="Nothing was changed. Move that file away, or give it another name.",
            )
        files.write_changed(path, data, error=EnvFileError, private=True)
        proof = hashlib.sha256(data).hexdigest()
        if trust.read_proof(trust.state_folder(os.environ), "envs", str(path)) != proof:
            with contextlib.suppress(EnvFileError):  # not needed here; `run` reports if it is missing
                trust.write_proof("envs", str(path), proof, EnvFileError)


def _is_own_env(path: Path, data: bytes) -> bool:
    """Say whether this tool wrote an env file: it says so at its beginning, or its hash was recorded.

    One that was edited since is still ours; a template of the user's own need not name this tool.
    """
    head = data[:400].decode("utf-8", "replace").casefold()
    recorded = trust.read_proof(trust.state_folder(os.environ), "envs", str(path))
    return not data or "torchbuild" in head or recorded == hashlib.sha256(data).hexdigest()


def source_env_file(work: Work) -> Work:
    """Source the env file once; all later commands run in that environment."""
    own = work.plan.env_files[0]
    environ = shell.activate(Path(own.path), environ=os.environ)
    return replace(work, environ=counting(environ))


def agreeing_flags(request: BuildRequest) -> str:
    """Return the flags that agree to a clean: with a target, --clean is refused."""
    return "--yes" if request.target else "--clean (or --yes)"


def _clean_for_inputs(work: Work) -> None:
    """Clean if a changed input requires it; ask before hours of work are deleted."""
    because = work.plan.freshness.because
    agreed = work.request.clean or is_agreed(work, f"{because}. Remove what the last build made?")
    if not agreed:
        raise CleanRefused(
            f"The build tree has to be made again: {because}.",
            next_step=f"Add {agreeing_flags(work.request)} to remove what the last build made, and continue.",
        )
    outputs = recordable_outputs(work.catalog, work.plan.era)
    log_time = last_log_time(work.root)
    removal = ownership.plan_removal(work.root, work.build_dir, outputs, log_time=log_time)
    removed = ownership.remove(removal)
    if (work.build_dir / "CMakeCache.txt").exists():
        raise CleanRefused(
            f"The build tree has to be made again ({because}), and not all of it is as a build of "
            "this tool left it here.",
            looked=tuple(f"{path}: {reason}" for path, reason in removal.kept[:10]),
            next_step="Remove it yourself if nothing in it is yours: "
            + remove_line(str(work.build_dir), windows=os.name == "nt"),
        )
    work.report.note(f"removed {removed.count} files of the last build ({size_text(removed.bytes)})")


def _question(python: str, changes: list[Command]) -> str:
    listed = "".join(f"  {shell_text(change.argv)}\n" for change in changes)
    return f"This changes {python}:\n{listed}Go on?"


def uses_uv(argv: Sequence[str]) -> bool:
    """Say whether a command installs, or makes a venv, by uv."""
    return tuple(argv[1:4]) == ("pip", "install", "--python") or tuple(argv[1:3]) == ("venv", "--seed")


def _apply_pip_settings(
    work: Work, argv: Sequence[str], environ: Mapping[str, str]
) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return command and environment that give uv pip's settings, which it does not read itself."""
    from torchbuild_tasks.system.net.pip import read_settings, uv_environment, uv_words

    with contextlib.suppress(UsageError, DownloadFailed):  # pip is missing, or cannot read its settings
        settings = read_settings(environ)
        uv_environ = uv_environment(environ, settings, work.fetching.net)
        return (*argv, *uv_words(environ, settings)), uv_environ
    return tuple(argv), dict(environ)


def install(work: Work, command: Command) -> None:
    """Run a pip or venv command in the user's own environment, into the same log."""
    tail = process.Tail(work.report.block, 12)
    work.report.command(command.argv)
    work.ledger.note_command(command)
    argv = command.argv
    environ = {**os.environ, **_pip_variables(work)}
    if uses_uv(argv):
        argv, environ = _apply_pip_settings(work, argv, environ)
    try:
        rc = process.stream(
            argv,
            env=environ,
            cwd=command.cwd,
            log=work.ledger.log,
            on_block=tail,
            on_idle=Pace().look,
        )
    except Stalled as stalled:
        raise RequirementsError(
            f"{shell_text(command.argv)} made no progress: {stalled}.",
            looked=tail.lines,
            next_step="Take another index (PIP_INDEX_URL), or a folder of wheels: --offline --wheels folder\n"
            "If your network is that slow, set TORCHBUILD_STALL to more seconds.",
        ) from None
    if rc != 0 and uses_uv(command.argv) and command.argv[1] == "pip":
        at = command.argv.index("--python") + 1
        pip = (command.argv[at], "-m", "pip", "install", *command.argv[at + 1 :])
        work.report.note("uv could not install them; trying pip")
        install(work, replace(command, argv=pip))
        return
    if rc != 0:
        raise RequirementsError(
            f"{shell_text(command.argv)} ended with exit code {rc}.",
            looked=tail.lines,
            next_step=_advise(work, tail.lines),
        )


def _advise(work: Work, lines: Sequence[str]) -> str:
    """Return what to do about a pip that failed: by its output, and unless that is of this machine alone,
    for want of a network.
    """
    from torchbuild_tasks.features.diagnosis.act import explain_output

    known = explain_output(work, "\n".join(lines))
    why = (known.cause, known.fix, known.command and f"$ {known.command}") if known else ()
    if known is None or known.id in _OF_NETWORK:
        why = (*why, _NO_NETWORK)
    return "\n".join(filter(None, (*why, f"The whole output: {work.ledger.log.path}")))
