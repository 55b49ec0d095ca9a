"""Write a container's files, build its image, run it, save and load images."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
from packaging.requirements import Requirement

from torchbuild_tasks.errors import ContainerError
from torchbuild_tasks.features.container.choose import CACHE, Container, Engine
from torchbuild_tasks.features.container.show import (
    COMPOSE,
    CONTAINERFILE,
    DEVCONTAINER,
    TOOL,
    build_argv,
    compose,
    containerfile,
    devcontainer,
)
from torchbuild_tasks.system import files, process
from torchbuild_tasks.system.attached import attach
from torchbuild_tasks.system.reading import read_bytes, read_text
from torchbuild_tasks.values import as_table, parse_json, parse_toml

if TYPE_CHECKING:
    from torchbuild_tasks.build.work import Reporter

FOLDER: Final = ".devcontainer/torchbuild"
_WRITTEN: Final = ".written.json"
_IGNORE: Final = ".gitignore"
_PACKAGE: Final = Path(__file__).resolve().parents[2]
_BYTE_CODE: Final = "__pycache__"  # all else in the package is ours, whatever it is called
# Without -P Python would import modules of the current folder, a checkout, first.
_LAUNCHER: Final = '#!/bin/sh\nexec /opt/torchbuild/bin/python -P -m torchbuild_tasks "$@"\n'
_INSPECT: Final = ("inspect", "--type", "image")
# Messages of engines if a registry is unreachable, or does not have the image.
_NOT_HAD: Final = (
    *("dial tcp", "no such host", "connection refused", "i/o timeout", "TLS handshake", "x509:"),
    *("manifest unknown", "not found", "image not known", "no such image", "access to the resource"),
)
# Messages of engines whose runtime starts no container: of podman and buildah (4.3, 1.28), and docker.
_NOT_STARTED: Final = (
    *("did not get container create message from subprocess", "creating container for ["),
    *("OCI runtime create failed", "OCI runtime error", "OCI permission denied"),
)


class Written(msgspec.Struct, frozen=True, kw_only=True):
    """The files of a container; `kept` are those that the user edited."""

    folder: Path
    files: tuple[str, ...]
    kept: tuple[str, ...] = ()


def texts(container: Container, writer: str) -> dict[str, bytes]:
    """Return the texts of the files by name, without those of this tool."""
    written = {
        CONTAINERFILE: containerfile(container, writer),
        DEVCONTAINER: devcontainer(container),
        COMPOSE: compose(container),
    }
    return {name: text.encode() for name, text in written.items()}


def write_files(container: Container, folder: Path, writer: str) -> Written:
    """Write the files of a container; keep those that the user edited.

    Git does not see the folder: it has a .gitignore of its own.

    Raises:
        ContainerError: something cannot be written.
    """
    with files.translate_errors(ContainerError, folder):
        folder.mkdir(parents=True, exist_ok=True)
        links = (path for path in folder.rglob("*") if path.is_symlink())
        files.refuse_outside(folder, *links, error=ContainerError)
    before = _hashes(folder)
    tool = _write_tool(folder / TOOL, before)
    wanted = texts(container, writer)
    edited = []
    for name, data in wanted.items():
        path = folder / name
        there = path.read_bytes() if path.is_file() else data
        if there != data and _digest(there) != before.get(name):
            edited.append(name)
        else:
            _write(path, data)
    if not (folder / _IGNORE).exists():
        _write(folder / _IGNORE, b"*\n")
    known = {name: before.get(name, "") if name in edited else _digest(data) for name, data in wanted.items()}
    _write(folder / _WRITTEN, msgspec.json.encode({**known, **tool}))
    return Written(folder=folder, files=tuple(wanted), kept=tuple(edited))


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _hashes(folder: Path) -> Mapping[str, str]:
    """Return the hashes of the files written last, by name."""
    try:
        return as_table(parse_json(read_bytes(folder / _WRITTEN)))
    except (OSError, ValueError):
        return {}


def _write(path: Path, data: bytes) -> None:
    files.write_changed(path, data, error=ContainerError)


def _write_tool(folder: Path, before: Mapping[str, str]) -> dict[str, str]:
    """Copy this tool with its dependencies, so that the container runs the same version.

    Args:
        folder: where it goes; what an earlier tool wrote there and this one lacks is removed.
        before: what was written the last time.

    Returns:
        The hashes of the written files by name, for the record.
    """
    wanted = {
        "requirements.txt": "".join(f"{each}\n" for each in own_requirements()).encode(),
        "torchbuild": _LAUNCHER.encode(),
    }
    for path, name in _own_files():
        wanted[f"torchbuild_tasks/{name}"] = path.read_bytes()
    with files.translate_errors(ContainerError, folder):
        present = [path for path in folder.rglob("*") if path.is_file()] if folder.is_dir() else []
        known = {path: path.relative_to(folder.parent).as_posix() in before for path in present}
        if present and not any(known.values()):
            raise ContainerError(
                f"{folder} exists already, and contains files that torchbuild did not put there.",
                next_step="Name another folder, --out FOLDER, or move that one away.",
            )
        written = {f"{folder.name}/{name}": _digest(data) for name, data in wanted.items()}
        # Written before the first file, so that the next run knows the files of a killed one.
        _write(folder.parent / _WRITTEN, msgspec.json.encode({**before, **written}))
        for path in present:
            if known[path] and path.relative_to(folder).as_posix() not in wanted:
                files.unlink(path)
        for name, data in wanted.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            _write(folder / name, data)
        (folder / "torchbuild").chmod(0o755)
        for name in wanted.keys() - {"torchbuild"}:
            (folder / name).chmod(0o644)
    return written


def _own_files() -> Iterator[tuple[Path, str]]:
    for path in sorted(_PACKAGE.rglob("*")):
        if path.is_file() and _BYTE_CODE not in path.parts:
            yield path, path.relative_to(_PACKAGE).as_posix()
    templates = _PACKAGE.parent / "env_templates"  # in a checkout; in a wheel they are inside
    for path in sorted(templates.glob("*.in")) if templates.is_dir() else ():
        yield path, f"env_templates/{path.name}"


def own_requirements() -> tuple[str, ...]:
    """Return this tool's requirements, without its extras."""
    try:
        project = parse_toml(read_text(_PACKAGE.parent / "pyproject.toml"))["project"]
        texts = project["dependencies"] if project["name"] == "torchbuild-tasks" else None
    except (OSError, KeyError, ValueError):
        texts = None
    if texts is None:
        texts = importlib.metadata.requires("torchbuild-tasks") or []
    requirements = [Requirement(text) for text in texts]
    return tuple(str(each) for each in requirements if "extra" not in str(each.marker or ""))


# ---------------- the image


def image_name(folder: Path) -> str:
    """Return the name of the image of a folder: it changes with the files of the image."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file() and (path.name == CONTAINERFILE or path.is_relative_to(folder / TOOL)):
            digest.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return f"localhost/torchbuild:{digest.hexdigest()[:12]}"


def has_image(engine: Engine, image: str) -> bool:
    """Say whether the engine has an image."""
    return process.capture((engine.path, *_INSPECT, image), timeout=60).rc == 0


def build_image(
    engine: Engine, container: Container, folder: Path, image: str, report: Reporter, *, offline: bool
) -> None:
    """Build the image of a folder.

    Raises:
        ContainerError: the base is not available, or a step of the Containerfile failed.
    """
    if (
        offline
        and container.base in read_text(folder / CONTAINERFILE)
        and not has_image(engine, container.base)
    ):
        raise ContainerError(  # docker would query the registry anyway
            f"{container.base}, the base of the image, is not here, and --offline pulls nothing.",
            next_step=_advice("", container, offline=True),
        )
    argv = build_argv(engine.path, container, image, str(folder), offline=offline)
    report.command(tuple(argv))
    tail = process.Tail()
    environ = {**os.environ, **engine.row.environ}
    code = process.stream(argv, env=environ, cwd=None, log=report.stream(), on_block=tail)
    if code == 0:
        return
    raise ContainerError(
        f"{engine.row.name} could not build the image of {folder / CONTAINERFILE} (exit code {code}).",
        looked=tail.lines[-6:],
        next_step=_advice("\n".join(tail.lines), container, offline=offline),
    )


def _advice(output: str, container: Container, *, offline: bool) -> str:
    if "buildah-cache" in output and "permission denied" in output:
        return (
            "This buildah keeps the caches of all users in one folder, and another user's is there.\n"
            "Use a folder of your own: export TMPDIR=$HOME/.cache"
        )
    if any(words in output for words in _NOT_STARTED):
        return (
            f"{container.engine.name} starts no container on this machine, as where it is itself one.\n"
            "buildah needs no runtime for it: --engine buildah (the package is called buildah, too)"
        )
    registry = container.base.partition("/")[0]
    if offline or any(words in output for words in _NOT_HAD):
        return (
            f"The base is {container.base}. Where {registry} cannot be asked, or has it no more:\n"
            f"  a mirror of it            --registry {registry}=HOST/PATH, or registry in torchbuild.toml\n"
            "  another image             --base IMAGE\n"
            "  a finished one by a file  container save FILE, where it was made; container load FILE here"
        )
    return "Its steps are in the Containerfile, which you may edit: an edited one is kept."


@contextlib.contextmanager
def runnable(
    engine: Engine, container: Container, image: str, words: tuple[str, ...], report: Reporter
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the image to run, or a temporary container of it, and the command in it.

    Raises:
        ContainerError: no container can be made of the image.
    """
    if not engine.row.start:
        yield image, words
        return
    for mount in container.mounts:
        if mount.target == CACHE and not mount.volume:
            with files.translate_errors(ContainerError, Path(mount.source)):
                Path(mount.source).mkdir(parents=True, exist_ok=True)
    name = _ask(engine, engine.row.start, {"{image}": image}, report).strip()
    try:
        yield name, words or _own_command(engine, image)
    finally:
        _ask(engine, engine.row.end, {"{container}": name}, report)


def _own_command(engine: Engine, image: str) -> tuple[str, ...]:
    captured = process.capture((engine.path, *_INSPECT, image), timeout=60)
    try:
        return tuple(parse_json(captured.stdout)["OCIv1"]["config"]["Cmd"])
    except (ValueError, LookupError, TypeError):
        raise ContainerError(
            f"{image} names no command (CMD).",
            looked=tuple(captured.error_text.splitlines()[-3:]),
            next_step="Say it: container run -- COMMAND",
        ) from None


def run_container(argv: Sequence[str], *, to_stderr: bool) -> int:
    """Run a container attached to our terminal; return its exit code.

    Raises:
        ContainerError: the engine itself failed, before anything ran in it (exit code 125).
    """
    code = attach(argv, env=os.environ, to_stderr=to_stderr)
    if code == 125:
        raise ContainerError(
            "The container did not start; the reason is in the output above.",
            looked=(" ".join(argv),),
            next_step="container write shows what it is given; --memory SIZE sets another limit, "
            "--engine NAME takes another program.",
        )
    return code


# ---------------- an image as a file


def save_image(engine: Engine, image: str, file: Path, report: Reporter) -> None:
    """Write an image into a file atomically.

    Raises:
        ContainerError: the engine cannot, or the file is there already.
    """
    if file.exists():
        raise ContainerError(f"{file} is there already, and nothing is written over it.")
    part = file.with_name(file.name + ".part")
    with files.translate_errors(ContainerError, file):
        part.unlink(missing_ok=True)
        _ask(engine, engine.row.save, {"{file}": str(part), "{image}": image}, report)
        files.replace(part, file)


def load_image(engine: Engine, file: Path, report: Reporter) -> None:
    """Load the image in a file.

    Raises:
        ContainerError: there is no such file, or the engine does not take it.
    """
    if not file.is_file():
        raise ContainerError(
            f"There is no {file}.", next_step="Make it where there is a network: container save FILE"
        )
    _ask(engine, engine.row.load, {"{file}": str(file), "{image}": ""}, report)


def _ask(engine: Engine, words: Iterable[str], fields: Mapping[str, str], report: Reporter) -> str:
    argv = [engine.path]
    for word in words:
        for name, value in fields.items():
            word = word.replace(name, value)
        argv.append(word)
    report.command(tuple(argv))
    captured = process.capture(argv)
    if captured.rc:
        raise ContainerError(
            f"{engine.row.name} could not: {' '.join(argv[1:])}",
            looked=tuple(captured.error_text.splitlines()[-3:]),
        )
    return captured.text
