"""`container`: write a container's files for the planned build; build its image, run builds or a shell."""

from __future__ import annotations

import dataclasses
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from torchbuild_tasks.errors import ContainerError, UsageError
from torchbuild_tasks.options import BuildRequest, own_flag
from torchbuild_tasks.verbs import Outcome

if TYPE_CHECKING:
    from torchbuild_tasks.build.work import Reporter
    from torchbuild_tasks.features.container.act import Written
    from torchbuild_tasks.features.container.choose import Container, Engine
    from torchbuild_tasks.model import BuildPlan


@dataclasses.dataclass(frozen=True, kw_only=True)
class ContainerRequest(BuildRequest):
    """The words and flags of `container`."""

    actions = {
        "write": "write Containerfile, devcontainer.json and compose.yaml",
        "build": "make the image",
        "run": "make the image, and build torch in it or run -- COMMAND",
        "shell": "start a shell in it",
        "save": "write the image to a file",
        "load": "read the image from a file",
    }
    objects = {"save": ("file",), "load": ("file",)}
    trailing = True
    takes = (
        *("cpu", "cuda", "cuda_toolkit", "arch", "preset", "build_type", "mode", "set", "linker", "jobs"),
        *("jobserver", "offline", "dry_run", "out"),
    )

    file: str | None = own_flag(
        "file to write the image to, or to read it from",
        metavar="FILE",
        positional=True,
        sample=("file of the image", "image.tar"),
    )
    engine: str | None = own_flag(
        "podman, docker or buildah (default: the first that answers)", metavar="NAME", choices="engine"
    )
    base: str | None = own_flag("base image (default: a known one for this CUDA and system)", metavar="IMAGE")
    memory: str | None = own_flag(
        "memory that a container may use, such as 24G (default: seven eighths)", metavar="SIZE"
    )


def run(request: ContainerRequest, report: Reporter) -> Outcome:
    """Write a container's files from the plan; build its image, run the build or a shell in it."""
    from torchbuild_tasks.features.container import act
    from torchbuild_tasks.system.signals import interruptible

    if request.action == "load":
        engine = _engine(request)
        with interruptible():
            act.load_image(engine, Path(str(request.file)).expanduser().absolute(), report)
        return Outcome({"file": request.file}, "")
    if request.words and request.action != "run":
        raise UsageError(f"container {request.action} runs no command", next_step="container run -- COMMAND")
    return make(request, report)


def make(request: ContainerRequest, report: Reporter) -> Outcome:
    """Decide the container, write its files, and run the requested action."""
    from torchbuild_tasks.context import decide, look, require_checkout, writer
    from torchbuild_tasks.features.container import act
    from torchbuild_tasks.features.container.choose import make_container, read_image
    from torchbuild_tasks.features.container.look import look_at_host
    from torchbuild_tasks.plan.settings import read_size
    from torchbuild_tasks.system.files import refuse_outside
    from torchbuild_tasks.system.signals import interruptible

    memory = read_size(request.memory or "", "--memory")
    if request.base:
        read_image(request.base)
    question = look(request)
    root = require_checkout(question)
    engine = _engine(request, must=request.action != "write")
    container, plan = make_container(
        question,
        engine,
        look_at_host(question.facts.tree.root, os.environ),
        decide,
        image=request.base,
        registry=request.registry or question.settings.values.get("registry", ()),
        memory=memory,
    )
    folder = Path(request.out).expanduser().absolute() if request.out else root / act.FOLDER
    if not request.out:
        refuse_outside(root, folder, error=ContainerError)
    if request.dry_run:
        texts = act.texts(container, writer())
        text = "".join(f"# {folder / name}\n{data.decode()}\n" for name, data in texts.items())
        return Outcome(_value(container, folder), text)
    with interruptible():
        written = act.write_files(container, folder, writer())
        image = act.image_name(folder)
        if request.action == "write":
            return Outcome(
                _value(container, folder) | {"image": image, "kept": written.kept},
                _text(container, plan, written),
            )
        for name in written.kept:
            report.note(f"{folder / name} was edited by hand and is used as it is")
        if request.action == "build" or not act.has_image(engine, image):
            report.stage(f"make the image {image}")
            act.build_image(engine, container, folder, image, report, offline=request.offline)
        if request.action == "save":
            act.save_image(engine, image, Path(str(request.file)).expanduser().absolute(), report)
    if request.action in ("build", "save"):
        return Outcome(_value(container, folder) | {"image": image}, f"{image}\n")
    return _run(request, report, engine, container, image)


def _run(
    request: ContainerRequest, report: Reporter, engine: Engine, container: Container, image: str
) -> Outcome:
    from torchbuild_tasks.features.container.act import run_container, runnable
    from torchbuild_tasks.features.container.show import run_argv

    words = ("/bin/bash",) if request.action == "shell" else request.words
    tty = sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()
    with runnable(engine, container, image, words, report) as (name, command):
        argv = run_argv(engine.path, container, name, command, tty=tty)
        report.command(tuple(argv))
        code = run_container(argv, to_stderr=request.json)
    return Outcome({"exit_code": code, "image": image}, exit_code=code)


def _engine(request: ContainerRequest, *, must: bool = True) -> Engine:
    """Return the container engine; to write files only, any engine that supports them."""
    from torchbuild_tasks.catalog import load_catalog
    from torchbuild_tasks.facts.probe import Probe
    from torchbuild_tasks.features.container import choose
    from torchbuild_tasks.features.container.look import look_at_engines

    rows = load_catalog().engine
    wanted = request.engine
    if wanted and wanted not in (names := [row.name for row in rows]):
        raise UsageError(f"--engine {wanted} is none of: {', '.join(names)}")
    probe = Probe()
    rows = tuple(row for row in rows if (must or not row.start if wanted is None else row.name == wanted))
    try:
        return choose.choose_engine(look_at_engines(rows, probe), wanted)
    except ContainerError:
        if must:
            raise
        return choose.Engine(row=rows[0])


def _value(container: Container, folder: Path) -> dict[str, object]:
    from torchbuild_tasks.features.container.show import run_argv

    return {
        "folder": str(folder),
        "base": container.base,
        "choices": container.choices,
        "notes": container.notes,
        "run": run_argv(container.engine.name, container, "IMAGE", (), tty=False),
    }


def _text(container: Container, plan: BuildPlan, written: Written) -> str:
    """Return the files, the decisions, and the warnings of a build in it."""
    from torchbuild_tasks.text.show import columns, size_text

    rows = [
        (each.name, size_text(int(each.value)) if each.name == "memory" else each.value, each.because)
        for each in container.choices
    ]
    rows.append(("command", " ".join(container.command), "container run; container shell for a shell"))
    rows += [(each.name, each.value, each.because) for each in plan.choices if each.name == "jobs"]
    warnings = [f"! {each.text}" for each in plan.findings if each.status == "warn"]
    edited = [
        f"! {name} was edited by hand and stays as it is; remove it for a new one" for name in written.kept
    ]
    lines = [*(f"! {note}" for note in container.notes), *edited, *warnings]
    messages = "".join(f"{line}\n" for line in lines)
    return f"wrote {', '.join(written.files)} in {written.folder}\n{columns(rows)}{messages}"
