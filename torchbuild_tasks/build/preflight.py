"""Try the compilers and the linker of a build on small files, before hours are spent on it.

The second part parses the programs' output: an object's architectures, a cache's answer. The third makes
the planned linker callable, and links with it. The folder of a trial holds only its files, and is removed.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import struct
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple, NoReturn

from torchbuild_tasks.build.lost_cache import find_lost
from torchbuild_tasks.build.work import Reporter, Work
from torchbuild_tasks.errors import PreflightFailed
from torchbuild_tasks.model import BuildPlan, LinkerPlan, LinkTrial, Preflight, Trial
from torchbuild_tasks.system import process
from torchbuild_tasks.system.files import state_dir, translate_errors, unlink
from torchbuild_tasks.system.remove import is_folder, remove_tree
from torchbuild_tasks.text.words import with_and

FOLDER: Final = "preflight"
SECONDS: Final = 300.0  # seconds for one command; a longer one hangs
_CACHE_LOG: Final = "cache.log"
_ADDS_FLAGS: Final = ("NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS")
_WITHOUT: Final = "Build without it: " + " ".join(
    f"--set CMAKE_{language}_COMPILER_LAUNCHER=" for language in ("C", "CXX", "CUDA")
)
_NO_CODE: Final = "does not contain device code"


def preflight(work: Work) -> Work:
    """Compile the planned files, look into the object, compile again where a cache is planned.

    Raises:
        PreflightFailed: a compiler fails, or makes code for other architectures than planned.
    """
    planned = work.plan.preflight
    if planned is None:
        return work
    start = time.monotonic()
    with trial_folder(work.root, planned.sources) as folder:
        bench = _TrialRunner(work, folder)
        for trial in planned.trials:
            bench.compile(trial)
        names = " and ".join(_name(trial.argv[0]) for trial in planned.trials)
        proved = [f"{names} compile", bench.look_into(planned), *bench.ask_caches(planned)]
    work.report.note(f"Pre-flight, {time.monotonic() - start:.1f} s: {'; '.join(filter(None, proved))}.")
    return work


@contextlib.contextmanager
def trial_folder(root: Path, sources: Mapping[str, str]) -> Iterator[Path]:
    """Make a folder of ours in the checkout with exactly these files (text by name).

    It has one name, so that what a killed run left is found and removed by the next; the
    checkout's lock keeps two from using it. It goes however the body ends.

    Raises:
        PreflightFailed: the files cannot be written.
    """
    folder = state_dir(root) / FOLDER
    with translate_errors(PreflightFailed, folder):
        _remove(folder)
        folder.mkdir()
    try:
        for name, text in sources.items():
            with translate_errors(PreflightFailed, folder / name):
                (folder / name).write_bytes(text.encode())
        yield folder
    finally:
        with contextlib.suppress(OSError):
            _remove(folder)


def _remove(folder: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        if is_folder(folder.lstat()):
            remove_tree(folder)
        else:
            unlink(folder)


class _TrialRunner:
    """Runs the commands of one pre-flight in its folder, and writes them to the log."""

    def __init__(self, work: Work, folder: Path) -> None:
        self._work = work
        self._folder = folder
        self._environ = dict(work.env)

    def compile(self, trial: Trial) -> None:
        """Compile one file, bypassing caches."""
        again = ANEW.get(cache_of(trial.launcher))
        changes = {again: "1"} if again else {}
        argv = (*trial.launcher, *trial.argv)
        captured = self._run(argv, changes)
        if captured.rc != 0 and trial.launcher and find_lost(_output(captured).splitlines()):
            captured = self._run(argv, changes)  # which starts another server
        if captured.rc == 0 and not (self._folder / trial.output).is_file():
            self._fail("ended well and made no object file", argv, captured)
        if captured.rc != 0 and trial.launcher and self._run(trial.argv).rc == 0:
            alone = f"{_name(trial.argv[0])} compiles without it"
            self._fail(f"{_ending(captured)}, and {alone}", argv, captured, _WITHOUT)
        if captured.rc != 0:
            self._fail(_ending(captured), argv, captured)

    def look_into(self, planned: Preflight) -> str:
        """Compare the architectures of the object with the planned ones; return a phrase for the note."""
        if not planned.cubin:
            return ""
        argv: tuple[str, ...] = (planned.cuobjdump, "--list-elf", "--list-ptx", planned.cubin)
        if planned.cuobjdump:
            captured = self._run(argv)
            if captured.rc != 0 and _NO_CODE not in _output(captured):
                return f"the cubin was not looked into, for cuobjdump {_ending(captured)}"
            archs = read_listed_archs(_output(captured))
        else:
            archs = read_object_archs((self._folder / planned.cubin).read_bytes())
            argv = (planned.cubin,)
        if same_archs(planned.archs, archs):
            return f"the cubin holds {with_and(archs)}"
        raise PreflightFailed(
            "The compiled kernel is not for the planned architectures.",
            looked=(
                f"planned: {with_and(planned.archs)}",
                f"found:   {with_and(archs) or 'none'}  (by {shlex.join(argv)})",
                *(f"$ {self._line(trial)}" for trial in planned.trials if trial.output == planned.cubin),
                *(f"{name}={self._environ[name]}" for name in _ADDS_FLAGS if self._environ.get(name)),
            ),
            next_step="A launcher or a script around nvcc that drops or adds -gencode does this, and so do "
            f"{' and '.join(_ADDS_FLAGS)}.\n{self._log_hint()}",
        )

    def ask_caches(self, planned: Preflight) -> Iterator[str]:
        """Compile again through each cache; warn if a cache does not answer."""
        hits: dict[str, list[str]] = {}
        for trial in planned.trials:
            cache = cache_of(trial.launcher)
            if not cache:
                continue
            unlink(self._folder / trial.output)
            answer = self._ask(cache, trial)
            if answer.hit:
                hits.setdefault(cache, []).append(_name(trial.argv[0]))
                continue
            self._work.report.note(
                f"Warning: {cache} did not keep what {_name(trial.argv[0])} had compiled a moment before "
                f"({answer.reason}). The build works, but the cache will not make a later one faster."
            )
        for cache, names in hits.items():
            yield f"{cache} hits for {with_and(names)}"

    def _ask(self, cache: str, trial: Trial) -> Answer:
        argv = (*trial.launcher, *trial.argv)
        if cache == "sccache":
            count = (trial.launcher[0], "--show-stats", "--stats-format", "json")
            before = self._run(count)
            self._run(argv)
            return sccache_answer(before.text, self._run(count).text)
        log = self._folder / _CACHE_LOG
        unlink(log, missing_ok=True)
        self._run(argv, {CCACHE_LOG: str(log)})
        return ccache_answer(log.read_text("utf-8", "replace") if log.is_file() else "")

    def _run(self, argv: tuple[str, ...], changes: dict[str, str] | None = None) -> process.Captured:
        """Run a command; log it with its output, and show them with --verbose."""
        log = self._work.ledger.log
        self._work.report.command(argv)
        log.write(f"$ {shlex.join(argv)}\n".encode(errors="replace"))
        environ = {**self._environ, **(changes or {})}
        captured = process.capture(argv, env=environ, cwd=self._folder, timeout=SECONDS)
        for output in filter(None, (captured.stdout, captured.stderr)):
            block = output if output.endswith(b"\n") else output + b"\n"
            log.write(block)
            self._work.report.block(block)
        return captured

    def _fail(self, how: str, argv: tuple[str, ...], result: process.Captured, advice: str = "") -> NoReturn:
        from torchbuild_tasks.features.diagnosis.act import build_scanner, explain_output

        scanner = build_scanner(self._work)
        output = _output(result)
        scanner.feed_block(output.encode(errors="replace") + b"\n")
        lines = scanner.found.text if scanner.found else scanner.last
        known = explain_output(self._work, f"{output}\n{how}")
        why = (known.cause, known.fix, known.command and f"$ {known.command}") if known else (advice,)
        raise PreflightFailed(
            f"The planned compilers do not work: {_name(argv[0])} {how}.",
            looked=(*lines, f"$ {shlex.join(argv)}"),
            next_step="\n".join(filter(None, (*why, self._log_hint()))),
        )

    def _log_hint(self) -> str:
        path = self._work.ledger.log.path
        return f"The whole output: {path}\n--no-preflight goes on without this check."

    @staticmethod
    def _line(trial: Trial) -> str:
        return shlex.join((*trial.launcher, *trial.argv))


def _ending(captured: process.Captured) -> str:
    if captured.timed_out:
        return f"did not end within {SECONDS:.0f} s"
    return f"was ended by signal {-captured.rc}" if captured.rc < 0 else f"ended with exit code {captured.rc}"


def _name(path: str) -> str:
    return Path(path).name


def _output(captured: process.Captured) -> str:
    return captured.output.replace("\r\n", "\n")


# The variable that makes each cache compile and store the result: the first pass must really compile.
ANEW: Final[Mapping[str, str]] = {"ccache": "CCACHE_RECACHE", "sccache": "SCCACHE_RECACHE"}
CCACHE_LOG: Final = "CCACHE_LOGFILE"

_LISTED: Final = re.compile(r"^(ELF|PTX) file +\d+: .*\bsm_(\w+)\.(?:cubin|ptx)\s*$", re.MULTILINE)
# 3.x: "Result: cache hit (direct)"; 4.x: "Result: direct_cache_hit", and lines about its storage.
_RESULT: Final = re.compile(r"\] Result: (?!local_|remote_|primary_|secondary_)(.+)$", re.MULTILINE)
# The words of a fat binary: mark, version, size of its header, size of what follows; then of each image.
_FATBIN: Final = b"\x50\xed\x55\xba"
_HEAD: Final = struct.Struct("<IHHQ")
_HEAD_OF_IMAGE: Final = struct.Struct("<HHIQ")
_ARCH_AT: Final = 28
_KINDS: Final = {1: "compute", 2: "sm"}
_HIT: Final = re.compile(r"(direct|preprocessed)_cache_hit|cache hit \(")


class Answer(NamedTuple):
    """Whether a cache had the object; `reason` is why not, in the cache's own words."""

    hit: bool
    reason: str = ""


# ---------------------------------------------------------------- architectures


def read_listed_archs(listing: str) -> tuple[str, ...]:
    """Parse `cuobjdump --list-elf --list-ptx`: "sm_86" for machine code, "compute_90" for PTX."""
    archs = _LISTED.findall(listing)
    kinds = {"ELF": "sm", "PTX": "compute"}
    named = [f"{prefix}_{name}" for each, prefix in kinds.items() for kind, name in archs if kind == each]
    return tuple(dict.fromkeys(named))


def read_object_archs(data: bytes) -> tuple[str, ...]:
    """Read the architectures from the fat binaries in an object file of nvcc's, ELF or COFF.

    A fat binary is a header and one entry for each image (as written by nvcc 12.4 and 13.0,
    compressed or not; NVIDIA does not document the layout). An entry has its size, kind and architecture.
    """
    archs: list[str] = []
    at = data.find(_FATBIN)
    while at >= 0:
        archs += _images(data, at)
        at = data.find(_FATBIN, at + 1)
    return tuple(dict.fromkeys(sorted(archs, key=lambda each: each.startswith("compute"))))


def _images(data: bytes, at: int) -> Iterator[str]:
    try:
        _, _, header, size = _HEAD.unpack_from(data, at)
        place = at + header
        end = min(at + header + size, len(data))
        while place < end:
            kind, _, header, size = _HEAD_OF_IMAGE.unpack_from(data, place)
            (arch,) = struct.unpack_from("<I", data, place + _ARCH_AT)
            if kind in _KINDS:
                yield f"{_KINDS[kind]}_{arch}"
            place += max(header + size, 1)
    except struct.error:
        return


def same_archs(planned: tuple[str, ...], built: tuple[str, ...]) -> bool:
    """Say whether an object holds exactly the planned architectures.

    Machine code of sm_120f is listed as sm_120; cuobjdump 12.4 also lists sm_90a of nvcc 13.0 as sm_90.
    """
    return all(code in built or _bare(code) in built for code in planned) and set(built) <= {
        each for code in planned for each in (code, _bare(code))
    }


def _bare(code: str) -> str:
    return code.rstrip("af") if code.startswith("sm_") else code


# ---------------------------------------------------------------- caches


def cache_of(launcher: tuple[str, ...]) -> str:
    """Return the cache of a launcher whose hits can be counted: ccache, sccache, or ""."""
    program = re.split(r"[/\\]", launcher[0])[-1].lower() if launcher else ""
    name = program.removesuffix(".exe")
    return name if name in ANEW else ""


def ccache_answer(log: str) -> Answer:
    """Read ccache's log of one command."""
    results = _RESULT.findall(log)
    if any(_HIT.match(result) for result in results):
        return Answer(hit=True)
    return Answer(hit=False, reason=", ".join(dict.fromkeys(results)) or "its log says nothing")


def sccache_answer(before: str, after: str) -> Answer:
    """Tell from `sccache --show-stats --stats-format json` before and after a command whether it was a hit.

    One nvcc command is several entries in that cache, and all of them must be there.
    """
    from torchbuild_tasks.features.cache.stats import sccache_report

    report = sccache_report(before, after)
    if report is None:
        return Answer(hit=False, reason="its statistics cannot be read")
    hits, misses = (sum(counted.values()) for counted in (report.hits, report.misses))
    if hits and not misses and not report.not_cached:
        return Answer(hit=True)
    reason = f"{hits} hits and {misses} misses" if hits or misses else "it was not asked for anything"
    return Answer(hit=False, reason=", ".join(report.not_cached) or reason)


# ---------------------------------------------------------------- the linker
# A compiler that cannot be given a linker's name finds it as `ld` in a folder of ours.

_NAMES_LINKER: Final = ("-fuse-ld", "--ld-path")  # a GCC before 12 stops at -fuse-ld=mold, also with -c
LINK_SECONDS: Final = 60.0  # seconds for one command; a longer one hangs


def try_linker(plan: BuildPlan, report: Reporter) -> str:
    """Make the linker callable, and try it where the plan has a trial: link and run a library and a program.

    Returns:
        Why it does not link here; "" when it does.

    Raises:
        PreflightFailed: it fails, and the user named it; or the compiler fails without any linker.
    """
    linker = plan.linker
    if linker is None:
        return ""
    if linker.folder and not os.access(linker.program, os.X_OK):
        return _refuse(linker, f"{linker.program} is not a program", (), report)
    place_linker(plan)
    if linker.trial is None:
        return ""
    start = time.monotonic()
    with trial_folder(Path(plan.source), linker.trial.sources) as folder:
        reason, output = _run_trial(linker.trial, folder, report)
        if reason:
            _compile_alone(linker.trial, folder, report)
    if reason:
        return _refuse(linker, reason, output, report)
    took = time.monotonic() - start
    report.note(f"Pre-flight, {took:.1f} s: linked and ran a library and a program with {linker.program}.")
    return ""


def place_linker(plan: BuildPlan) -> None:
    """Create the linker's link in the folder that the plan's LDFLAGS name, if they name one."""
    if plan.linker and plan.linker.folder:
        program = Path(plan.linker.program).absolute()
        link_linker(Path(plan.source), Path(plan.linker.folder), program)


def link_linker(root: Path, folder: Path, program: Path) -> None:
    """Create a link `ld` to `program` in `folder`, a folder of ours.

    Raises:
        PreflightFailed: the link cannot be made.
    """
    link = folder / "ld"
    state_dir(root)
    with translate_errors(PreflightFailed, link):
        folder.mkdir(exist_ok=True)
        if link.is_symlink() and link.readlink() == program:
            return
        unlink(link, missing_ok=True)
        link.symlink_to(program)


def _run_trial(trial: LinkTrial, folder: Path, report: Reporter) -> tuple[str, tuple[str, ...]]:
    """Return why the trial failed ("" if it did not), and the end of its output."""
    for argv in (*trial.commands, trial.run):
        report.command(argv)
        captured = process.capture(argv, env=os.environ, cwd=folder, timeout=LINK_SECONDS)
        output = captured.output.splitlines()
        if captured.rc != 0:
            first = next((line for line in output if "error" in line.lower()), "")
            reason = f"{Path(argv[0]).name} ended with exit code {captured.rc}"
            reason += f": {first}" if first else ""
            return reason, (*output[-10:], f"$ {shlex.join(argv)}")
    if trial.mark.encode() not in (folder / trial.library).read_bytes():
        return "the compiler called another linker", (f"$ {shlex.join(trial.commands[0])}",)
    return "", ()


def _compile_alone(trial: LinkTrial, folder: Path, report: Reporter) -> None:
    """Compile the first file of a trial without a link: one that fails says nothing of the linker.

    Raises:
        PreflightFailed: the compiler fails, so no other linker helps; CMake would stop after all downloads.
    """
    words = (word for word in trial.commands[0] if not word.startswith(_NAMES_LINKER))
    argv = (*words, "-c")
    report.command(argv)
    captured = process.capture(argv, env=os.environ, cwd=folder, timeout=LINK_SECONDS)
    if captured.rc != 0:
        raise PreflightFailed(
            f"{argv[0]} does not compile a file of a few lines: exit code {captured.rc}.",
            looked=(*captured.output.splitlines()[-10:], f"$ {shlex.join(argv)}"),
            next_step="Put it right, or name another compiler: --set CXX=PATH. To go on without this check: "
            "--no-preflight",
        )


def _refuse(linker: LinkerPlan, reason: str, output: tuple[str, ...], report: Reporter) -> str:
    """Raise if the user named the linker, else report that the build continues without it."""
    if linker.demanded:
        raise PreflightFailed(
            f"The linker {linker.name} ({linker.program}) does not link here: {reason}.",
            looked=output,
            next_step="Leave it out (--linker default), name another, or go on without this check "
            "(--no-preflight).",
        )
    report.note(f"The linker {linker.name} does not link here ({reason}); the build continues without it.")
    return f"it does not link here ({reason})"
