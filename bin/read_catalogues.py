"""Write data/messages.toml again from the message catalogues of gettext that this machine has.

    python bin/read_catalogues.py [FOLDER ...]

A FOLDER is like /usr/share/locale, which is always read (Debian has
gcc's in gcc-12-locales, glibc's in libc-l10n).
"""

from __future__ import annotations

import gettext
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

DATA: Final = Path(__file__).parents[1] / "torchbuild_tasks/data/messages.toml"
LANGUAGES: Final = (
    "de",
    "fr",
    "es",
    "it",
    "pt_BR",
    "ru",
    "ja",
    "ko",
    "zh_CN",
    "zh_TW",
    "pl",
    "tr",
    "sv",
    "uk",
    "cs",
    "hu",
    "nl",
    "da",
    "fi",
    "ro",
    "el",
    "vi",
)
# By program: the messages that kinds.toml and failures/ know in English.
WANTED: Final[Mapping[str, tuple[str, ...]]] = {
    "gcc": (
        "%qD was not declared in this scope",
        "%qE undeclared (first use in this function)",
        "%qE has not been declared",
        "%q#T has no member named %qE",
        "%qT has no member named %qE",
        "%qD is not a member of %qT",
        "%qE does not name a type",
        "%qE in namespace %qE does not name a type",
        "no matching function for call to %<%D(%A)%>",
        "unrecognized command-line option %qs",
        "unrecognized command-line option %<-%s%>",
        "unrecognized command-line option %<-%s%>; did you mean %<-%s%>?",
        "unrecognized argument in option %qs",
        "bad value %qs for %<-march=%> switch",
        "bad value %qs for %<-mtune=%> switch",
        "%s: all warnings being treated as errors",
        "%s: some warnings being treated as errors",
        "%s signal terminated program %s",
        "cannot execute %qs: %s",
        "internal compiler error: ",
        "redefinition of %q#D",
    ),
    "ld": (
        "%X%P: %C: undefined reference to `%pT'\n",
        "%X%P: %C: multiple definition of `%pT'",
        "%P: cannot find %s: %E\n",
        "%F%P: %pB: file not recognized: %E\n",
        "%F%P: cannot open output file %s: %E\n",
        "%F%P: final link failed: %E\n",
        "%F%P: %pB: error adding symbols: %E\n",
        " relocation truncated to fit: %s against `%pT'",
    ),
    "bfd": (
        "DSO missing from command line",
        "%pB: undefined reference to symbol '%s'",
        "file format not recognized",
        "file in wrong format",
        "file truncated",
        "%pB: relocation %s against %s%s`%s' can not be used when making %s%s",
        "memory exhausted",
        "%pB: relocation %s against `%s' can not be used when making a shared object; recompile with -fPIC",
    ),
    "gold": ("%s: %s: undefined reference to '%s'\n", "multiple definition of '%s'"),
    "gas": (
        "no such instruction: `%s'",
        "selected processor does not support `%s'",
        "Fatal error: ",
        "can't create %s: %s",
    ),
    "make": (
        "%sNo rule to make target '%s', needed by '%s'%s",
        "%sNo rule to make target '%s'%s",
        "missing separator",
        "recipe commences before first target",
    ),
    "bash": (
        "%s: command not found",
        "%s: cannot execute binary file",
        "%s: %s: bad interpreter",
        "%s: line %d: ",
        "%s: unbound variable",
        "syntax error near unexpected token `%s'",
        "syntax error: unexpected end of file",
        "unexpected EOF while looking for matching `%c'",
    ),
    "coreutils": (
        "cannot stat %s",
        "cannot access %s",
        "cannot open %s for reading",
        "cannot create regular file %s",
        "cannot create directory %s",
        "failed to access %s",
        "failed to run command %s",
        "error writing %s",
    ),
    "tar": ("This does not look like a tar archive", "Unexpected EOF in archive", "%s: Cannot open"),
    "bison": ("require bison %s, but have %s",),
    "git": (
        "fatal: ",
        "error: ",
        "unable to access '%s'",
        "repository '%s' not found",
        "reference is not a tree: %s",
        "not a git repository (or any of the parent directories): %s",
        "clone of '%s' into submodule path '%s' failed",
        "Unable to checkout '%s' in submodule path '%s'",
        "No url found for submodule path '%s' in .gitmodules",
        "pathspec '%s' did not match any file(s) known to git",
        "patch failed: %s:%ld",
        "%s: patch does not apply",
        "Your local changes to the following files would be overwritten by %s:\n%%s",
        "Your local changes to the following files would be overwritten by checkout:\n%%s"
        "Please commit your changes or stash them before you switch branches.",
        "Your local changes to the following files would be overwritten by merge:\n%%s"
        "Please commit your changes or stash them before you merge.",
        "The following untracked working tree files would be overwritten by checkout:\n%%s"
        "Please move or remove them before you switch branches.",
        "The following untracked working tree files would be overwritten by merge:\n%%s"
        "Please move or remove them before you merge.",
        "repository '%s' does not exist",
        "early EOF",
        "RPC failed; %s",
        "Remote branch %s not found in upstream %s",
        "CONFLICT (%s): Merge conflict in %s",
        "could not apply %s... %s",
        "corrupt patch at line %d",
        "Unable to create '%s.lock': %s",
    ),
    "libc": (
        "No such file or directory",
        "No space left on device",
        "Permission denied",
        "Operation not permitted",
        "Too many open files",
        "Cannot allocate memory",
        "File too large",
        "File size limit exceeded",
        "Read-only file system",
        "Disk quota exceeded",
        "File name too long",
        "Text file busy",
        "Connection refused",
        "Connection timed out",
        "Name or service not known",
        "Temporary failure in name resolution",
        "Segmentation fault",
        "Illegal instruction",
        "Bus error",
        "Aborted",
        "Killed",
        "cannot open shared object file",
        "error while loading shared libraries",
        "symbol lookup error",
    ),
}
# What stands before a message of ld: severity, program, place.
_LED: Final = re.compile(r"^(?:%[XFP]|%[CD]|[ \u00a0]?: )+(?: )?")
_SLOT: Final = re.compile(r"%(?:\d+\$)?[+#]*(?:q[+#]*)?(?:ld|lu|p[A-Z]|[A-Za-z])|%[<>]")
_LEAST: Final = 2  # characters of plain text, or it has no meaning


def main(*folders: Path) -> None:
    """Write the rows: each message with its translations, without the name of their language."""
    rows = []
    for program, messages in WANTED.items():
        catalogues = list(_catalogues(program, (*folders, Path("/usr/share/locale"))))
        for message in messages:
            translations = dict.fromkeys(
                _plain(found, program)
                for each in catalogues
                if (found := each.gettext(message)) != message and _is_translation(message, found)
            )
            if translations:
                rows.append((_plain(message, program), tuple(translations)))
    DATA.write_text(_HEAD + "".join(_row(*row) for row in rows), "utf-8")
    print(f"{len(rows)} messages, {sum(len(texts) for _, texts in rows)} translations")


def _catalogues(program: str, folders: tuple[Path, ...]) -> Iterator[gettext.GNUTranslations]:
    for language in LANGUAGES:
        for folder in folders:
            for path in sorted((folder / language / "LC_MESSAGES").glob(f"{program}*.mo"))[-1:]:
                if path.stem.rstrip("-0123456789") == program:
                    with path.open("rb") as file:
                        yield gettext.GNUTranslations(file)


def _plain(message: str, program: str = "") -> str:
    message = _LED.sub("", message).strip("\n")
    # What make puts before and behind: stars, "Stop." or nothing.
    return message.removeprefix("%s").removesuffix("%s") if program == "make" else message


def _is_translation(message: str, text: str) -> bool:
    slots = sorted(_SLOT.findall(_plain(message)))
    numbered = [re.sub(r"\d+\$", "", each) for each in _SLOT.findall(_plain(text))]
    return len(_SLOT.sub("", _plain(text)).strip(" '`:")) >= _LEAST and sorted(numbered) == slots


def _row(english: str, translations: tuple[str, ...]) -> str:
    listed = "".join(f"  {_quoted(each)},\n" for each in translations)
    head = f"\n[[message]]\nenglish = {_quoted(english)}\n"
    return f"{head}translations = [\n{listed}]\n"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


_HEAD: Final = """\
# Messages of gcc, ld, as, make, bash, git, coreutils, tar, bison and glibc, as templates of printf:
# `english` and its `translations`. Written by bin/read_catalogues.py from their message
# catalogues (gcc.mo, ld.mo, bfd.mo, gas.mo, make.mo, bash.mo, git.mo, coreutils.mo, tar.mo, bison.mo, libc.mo
# of Debian 12: gcc 12.2, binutils 2.40, make 4.3, bash 5.2, git 2.39, coreutils 9.1, glibc 2.36). CMake,
# Ninja, pip, nvcc and clang have none; MSVC's messages carry their numbers.
"""

if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
