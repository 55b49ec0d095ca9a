"""What the user and the tree have said about linking: it comes before what would be taken otherwise."""

from __future__ import annotations

from typing import Final

from torchbuild_tasks.core.question import Question
from torchbuild_tasks.core.variables import decide, is_off
from torchbuild_tasks.core.words import flag_words
from torchbuild_tasks.model import Finding

DEFAULT: Final = "default"
# With one of these the user decides about linking; CMake takes the first three instead of LDFLAGS.
OWN: Final = (
    "CMAKE_EXE_LINKER_FLAGS",
    "CMAKE_SHARED_LINKER_FLAGS",
    "CMAKE_MODULE_LINKER_FLAGS",
    "CMAKE_LINKER",
    "CMAKE_LINKER_TYPE",
    "USE_GOLD_LINKER",
)


def link_words(question: Question) -> tuple[str, ...]:
    """The words of LDFLAGS."""
    flags = decide(question, "LDFLAGS")
    return flag_words(flags.value) if flags else ()


def linker_folder(question: Question) -> str:
    """The folder in which a linker is called ld, for compilers that cannot be told its name."""
    return question.join(".torchbuild", "linker")


def own_linking(question: Question) -> str:
    """Why linking is left as the user has it; "" when it is ours to decide."""
    for name in OWN:
        asked = decide(question, name)
        if asked and asked.value and not is_off(asked.value):
            return f"{name} is set"
    known = {f"-fuse-ld={row.name}" for row in question.catalog.linker}
    ours = f"-B{linker_folder(question)}"
    for word in link_words(question):
        if word.startswith(("-fuse-ld=", "--ld-path=", "-B")) and word not in known and word != ours:
            return f"LDFLAGS has {word}"
    return ""


def unreached(question: Question) -> tuple[Finding, ...]:
    """Variables that CMake takes instead of LDFLAGS, so that what is asked for would not reach it."""
    names = [name for name in OWN[:3] if (asked := decide(question, name)) and asked.value]
    if not names:
        return ()
    text = f"{' and '.join(names)} is set, which CMake takes instead of LDFLAGS: --linker does not reach it"
    return (Finding(id="linker", status="warn", text=text, fix="Put -fuse-ld= into it, or drop it."),)


def kept_linker(question: Question) -> str:
    """The linker of a finished tree; "" where there is none to keep."""
    previous = question.facts.tree.previous
    if previous is None or previous.result != "ok" or question.request.clean:
        return ""
    return previous.inputs.get("linker", DEFAULT)
