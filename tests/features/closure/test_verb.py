"""What a person reads of a closure."""

from __future__ import annotations

from torchbuild_tasks.features.closure.verb import closure_text
from torchbuild_tasks.model.closure import Break, Closure, FoundLibrary

FOUND = FoundLibrary(name="_C.so", state="found", path="/t/_C.so", how="what `import torch` loads")
MISSING = FoundLibrary(name="libc10.so", state="missing", by="/t/_C.so")
BREAK = Break(
    kind="missing",
    status="error",
    library="libc10.so",
    chain=("/t/_C.so",),
    looked=("/lib", "/usr/lib"),
    text="libc10.so is missing.",
    fix="Install it.",
)


def test_a_broken_closure_with_its_chain_and_its_fix() -> None:
    closure = Closure(python="/p", libraries=(FOUND, MISSING), breaks=(BREAK,), seconds=1.23)
    assert closure_text(closure) == (
        "What `import torch` of /p loads:\n"
        "  _C.so      /t/_C.so  what `import torch` loads\n"
        "  libc10.so  -         missing\n"
        "x libc10.so is missing.\n"
        "    /t/_C.so\n"
        "  looked in: /lib, /usr/lib\n"
        "  -> Install it.\n"
        "1 libraries found, 1 missing: 1 will keep it from loading. It took 1.2 s.\n"
    )


def test_what_has_no_file_is_counted_and_not_listed() -> None:
    api = FoundLibrary(name="api-ms-win-crt-math-l1-1-0.dll", state="api set")
    text = closure_text(Closure(python="/p", libraries=(FOUND, api)))
    assert "api-ms" not in text
    assert "1 API sets of Windows: it closes." in text


def test_no_torch_is_one_sentence() -> None:
    assert closure_text(Closure(python="/p", problem="this Python has no torch")) == (
        "Nothing to follow: this Python has no torch.\n"
    )
