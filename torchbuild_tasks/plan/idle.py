"""Tell of flags of the command line that do nothing in this build, for another flag or the system."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from torchbuild_tasks.model import Finding
from torchbuild_tasks.options import flag_name
from torchbuild_tasks.plan.question import Question
from torchbuild_tasks.plan.variables import is_cuda


class _Idle(NamedTuple):
    """Flags, when they do nothing, where they would do something, and what makes them do it."""

    names: tuple[str, ...]
    idle: Callable[[Question], bool]
    only: str
    fix: str | Callable[[Question], str] = ""
    values: tuple[str, ...] = ()  # of the flag, where only these do nothing


def _is_cpu(question: Question) -> bool:
    return not is_cuda(question) and not question.request.cuda


def _is_without_cache(question: Question) -> bool:
    return question.value("cache", "auto") == "none"


def _is_alone(question: Question) -> bool:
    """Say whether the compiler cache is named, and is one of this machine only."""
    cache = question.value("cache", "auto")
    return cache in ("auto", "ccache", "sccache") and not any(name in question.decided for name in _SHARED_BY)


def _is_offline(question: Question) -> bool:
    return bool(question.given("offline")) and "file:" not in question.value("mirror", "")


def _is_wheel(question: Question) -> bool:
    """Say whether the user wants a wheel's libraries; --auto takes them by itself, or compiles."""
    request = question.request
    return bool(request.from_wheel) and not (request.mixed or request.auto)


def _has_companions(question: Question) -> bool:
    return bool(question.given("with_") or question.given("with_extension"))


def against_cuda(question: Question) -> str:
    """Return what stands on the command line and contradicts --cuda."""
    wanted = question.assignments.get("USE_CUDA")
    return "--cpu" if question.request.cpu else f"--set USE_CUDA={wanted}" if wanted else ""


def _flags_of_cuda(question: Question) -> str:
    """Return --cuda, and a toolkit where none is known to be here."""
    if question.facts.cuda is None or question.given("cuda_toolkit"):
        return "--cuda"
    from torchbuild_tasks.plan.cuda.advice import flags_of_cuda  # a CPU build does without

    return flags_of_cuda(question)


def _add_cuda(question: Question) -> str:
    against = against_cuda(question)
    flags = _flags_of_cuda(question)
    return f"put {flags} in the place of {against}" if against else f"add {flags}"


_COMPILED: Final = "where something is compiled, and --from-wheel compiles nothing"
# What --set says in place of a flag.
_TWINS: Final = {
    "arch": ("TORCH_CUDA_ARCH_LIST",),
    "cuda_toolkit": ("CUDA_HOME", "CUDA_PATH", "CUDA_TOOLKIT_ROOT_DIR", "CUDAToolkit_ROOT", "CUDACXX"),
}
# Variables of sccache and ccache that name a shared cache, whatever --cache says.
_SHARED_BY: Final = (
    *("SCCACHE_BUCKET", "SCCACHE_REDIS", "SCCACHE_REDIS_ENDPOINT", "SCCACHE_MEMCACHED", "SCCACHE_GCS_BUCKET"),
    *("SCCACHE_WEBDAV_ENDPOINT", "SCCACHE_AZURE_CONNECTION_STRING", "SCCACHE_GHA_ENABLED"),
    *("CCACHE_REMOTE_STORAGE", "CCACHE_SECONDARY_STORAGE"),
)
_TABLE: Final = (
    _Idle(
        (
            *("arch", "build_type", "jobs", "jobserver", "cache", "cache_dir", "cache_read_only"),
            *("toolset", "with_helper", "cuda_toolkit"),
        ),
        lambda question: _is_wheel(question) and not _has_companions(question),
        _COMPILED,
    ),
    _Idle(
        ("no_preflight", "cache_size", "linker", "distribute", "preset", "reproducible"), _is_wheel, _COMPILED
    ),
    _Idle(("cuda_toolkit", "arch"), _is_cpu, "with --cuda", _add_cuda),
    _Idle(("preset",), _is_cpu, "with --cuda", _add_cuda, ("old-gpu",)),
    _Idle(("toolset",), lambda question: question.facts.host.os != "windows", "on Windows"),
    _Idle(("cache_size", "cache_dir", "cache_read_only"), _is_without_cache, "with a compiler cache"),
    _Idle(("cache_read_only",), _is_alone, "with a shared cache", "name one: --cache redis://HOST"),
    _Idle(("mirror", "allow_http"), _is_offline, "where something may be downloaded"),
    _Idle(
        ("allow_http",),
        lambda question: bool(question.given("require_hashes")),
        "without --require-hashes, since it is for files whose hash is not known",
    ),
    _Idle(("patch_dir",), lambda question: bool(question.given("no_patches")), "without --no-patches"),
    _Idle(
        ("with_", "with_extension"),
        lambda question: bool(question.request.target) and not question.request.mixed,
        "where torch is installed, and --target installs nothing",
    ),
)


def check_idle(question: Question) -> Iterator[Finding]:
    """Report these flags; a settings file and the environment serve builds of every kind."""
    told = set()
    for row in _TABLE:
        twins = [twin for name in row.names for twin in _TWINS.get(name, ())]
        for twin in twins:
            if question.assignments.get(twin) and row.idle(question):
                yield _report(question, row, f"--set {twin}={question.assignments[twin]}")
        for name in row.names:
            given = question.given(name)
            if name in told or not given or given[1] != "flag" or not row.idle(question):
                continue
            if row.values and given[0] not in row.values:
                continue
            told.add(name)
            value = given[0]
            words = [flag_name(name)]
            if value is not True:
                words += list(value) if isinstance(value, tuple) else [str(value)]
            yield _report(question, row, " ".join(words))


def _report(question: Question, row: _Idle, said: str) -> Finding:
    way = row.fix(question) if callable(row.fix) else row.fix
    fix = f"Drop it, or {way}." if way else "Drop it."
    id = "device" if "CUDA" in row.only.upper() else "flags"
    return Finding.warn(id, f"{said} has an effect only {row.only}", fix)
