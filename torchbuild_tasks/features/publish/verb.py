"""`publish`: send packages to a folder that pip reads, or to an index; existing files are never replaced."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

from torchbuild_tasks.errors import PackageRefused
from torchbuild_tasks.options import BuildRequest, own_flag
from torchbuild_tasks.verbs import Outcome

if TYPE_CHECKING:
    from torchbuild_tasks.build.work import Reporter
    from torchbuild_tasks.features.publish.choose import File, Step


@dataclasses.dataclass(frozen=True, kw_only=True)
class PublishRequest(BuildRequest):
    """The words and flags of `publish`."""

    positionals = ("place",)
    takes = ("dry_run", "yes")

    place: str | None = own_flag(
        "a folder, which becomes an index, or the upload address of an index",
        metavar="FOLDER|URL",
        positional=True,
        sample=("folder or address of an index", "FOLDER|URL"),
    )
    file: tuple[str, ...] = own_flag(
        "publish this package; may be repeated (default: all in dist/packages of the checkout)",
        metavar="FILE",
        default=(),
    )
    index: str | None = own_flag(
        "address where pip reads the index (default: PyPI's for PyPI, else simple/ below the address)",
        metavar="URL",
    )


def run(request: PublishRequest, report: Reporter) -> Outcome:
    """Send packages to a folder or an index, after showing what would be sent."""
    planned, sent = send(request, report)
    return _outcome(request, planned, sent=sent)


def send(request: PublishRequest, report: Reporter) -> tuple[tuple[Step, ...], bool]:
    """Decide what to send, ask, and send it; return the plan, and whether it was carried out."""
    from torchbuild_tasks.catalog import load_catalog
    from torchbuild_tasks.features.publish import act
    from torchbuild_tasks.features.publish.choose import check_address, steps, too_large
    from torchbuild_tasks.system.signals import interruptible
    from torchbuild_tasks.text.words import counted

    place = str(request.place)
    online = "://" in place
    folder = Path(place).expanduser().absolute()
    with interruptible():
        paths = _packages(request, report)
        files = [act.look_at_file(path) for path in paths]
        projects = sorted({file.project for file in files})
        if online:
            check_address(place, files)
            there = act.files_at(place, request.index or "", projects)
            for warning in too_large(place, files, load_catalog().index_limit):
                report.note(warning)
        else:
            if folder.exists() and not folder.is_dir():
                raise PackageRefused(f"{folder} is a file; a folder becomes the index.")
            present = (each for project in projects for each in act.files_in(folder, project))
            there = {each.name: each.sha256 for each in present}
        planned = steps(files, there, place)
        sent = [step for step in planned if step.what == "send"]
        if request.dry_run or not sent and online:
            return planned, not request.dry_run
        for step in sent:
            report.note(f"{step.file.name} goes to {place}")
        if sent and not (request.yes or report.confirm(f"Publish {counted(len(sent), 'file')} to {place}?")):
            raise PackageRefused("Nothing was sent.", next_step="Add --yes to send what is listed.")
        if online:
            # The largest first: an index refuses too large files before any other is there.
            pairs = zip(paths, planned, strict=True)
            for path, step in sorted(pairs, key=lambda pair: -pair[1].file.size):
                if step.what == "send":
                    act.publish_to_index(place, path, report)
        else:
            act.publish_to_folder(folder, tuple(zip(paths, planned, strict=True)), report)
    return planned, True


def _packages(request: PublishRequest, report: Reporter) -> list[Path]:
    """Return the named files, else the packages of the checkout; say which of them cannot be sent there."""
    if request.file:
        paths = [*dict.fromkeys(Path(each).expanduser().absolute() for each in request.file)]
        if missing := [str(path) for path in paths if not path.is_file()]:
            raise PackageRefused(f"There is no {' and no '.join(missing)}.")
        return paths
    from torchbuild_tasks.context import read_named_build

    about = read_named_build(request)
    folder = (about.place.folder if about.place else about.main) / "dist/packages"
    online = "://" in str(request.place)  # no index takes what goes to a channel
    ends = ("*.whl", "*.tar.gz", *(() if online else ("*.conda",)))
    packages = sorted(path for end in ends for path in folder.glob(end))
    if not packages:
        raise PackageRefused(
            "There is no package yet.",
            looked=(f"looked for: {folder}/{', '.join(ends)}",),
            next_step="Make one: torchbuild package wheel, or name it: publish PLACE --file FILE",
        )
    for path in sorted({*folder.glob("*.zip"), *folder.glob("*.conda")} - {*packages}):
        report.note(f"{path.name} is left out: no index for pip takes it")
    return packages


def _outcome(request: PublishRequest, planned: tuple[Step, ...], *, sent: bool) -> Outcome:
    from torchbuild_tasks.text.show import columns, size_text

    value = {
        "place": request.place,
        "done": sent,
        "files": [{"name": s.file.name, "sha256": s.file.sha256, "what": s.what} for s in planned],
    }
    send = "sent" if sent else "would be sent"
    rows = [
        (send if step.what == "send" else "is there", size_text(step.file.size), step.file.name)
        for step in planned
    ]
    text = columns(rows, "")
    if sent and "://" not in str(request.place):
        index = Path(str(request.place)).expanduser().resolve().as_uri()
        for conda in (False, True):
            if file := next((step.file for step in planned if step.file.is_conda is conda), None):
                text += _install_line(file, index)
    return Outcome(value, text)


def _install_line(file: File, index: str) -> str:
    if file.is_conda:
        name = file.name.rsplit("-", 2)[0]
        return f"conda install -c {index} -c conda-forge {name}={file.version}\n"
    return f"pip install --extra-index-url {index} torch=={file.version}\n"
