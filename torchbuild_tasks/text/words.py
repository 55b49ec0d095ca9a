"""Words: nearest matches of mistyped ones, quoting, and the words of a line of flags."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence
from typing import Final

# Characters that are special in cmd and PowerShell: `ninja>=1.13` would write a file.
_OF_SHELLS: Final = re.compile(r"[<>|&^();,'`{}@#*?\[\]]")
_PLAIN: Final = re.compile(r"[\w./\\:+@=,-]+")
_READ_IN_QUOTES: Final = re.compile(r"[$`\"!\n]|\\\Z")
DRIVE: Final = re.compile(r"[A-Za-z]:[\\/]")
_SLIP: Final = 3  # letters
_MOST: Final = 200  # characters of an error message of another program or library


def shell_line(argv: Sequence[str], *, windows: bool) -> str:
    """Return a command line for a POSIX shell, or for both cmd and PowerShell."""
    if not windows:
        return shlex.join(argv)
    from subprocess import list2cmdline

    words = (list2cmdline((word,)) for word in argv)
    quoted = [f'"{word}"' if _OF_SHELLS.search(word) and word[:1] != '"' else word for word in words]
    return " ".join((*map(_begin_bare, quoted[:1]), *quoted[1:]))


def _begin_bare(program: str) -> str:
    """Return the first word of a command with its drive in front of the quotes.

    PowerShell takes a line that begins with a quote for a text, and cmd none that begins with &
    (learn.microsoft.com/powershell/module/microsoft.powershell.core/about/about_parsing).
    """
    return f'{program[1:4]}"{program[4:]}' if program[:1] == '"' and DRIVE.match(program[1:]) else program


def as_program(path: str) -> str:
    """Quote a program that a command begins with, for sh, cmd or PowerShell."""
    return _begin_bare(as_word(path))


def unset_line(name: str, *, windows: bool) -> str:
    """Return what takes a variable out of the environment of a shell."""
    return f"set {name}= (cmd) or Remove-Item Env:{name} (PowerShell)" if windows else f"unset {name}"


def remove_line(folder: str, *, windows: bool) -> str:
    """Return what removes a folder with all that is in it."""
    word = as_word(folder)
    if not windows:
        return f"rm -r {word}"
    return f"rmdir /s /q {word} (cmd) or Remove-Item -Recurse -Force -LiteralPath {word} (PowerShell)"


def in_turn(*commands: str, windows: bool) -> str:
    """Return commands of which each runs if the one before went well; PowerShell 5.1 knows no &&."""
    return (", then " if windows else " && ").join(filter(None, commands))


def as_word(text: object) -> str:
    """Quote a path or value as one word of a command for sh, cmd or PowerShell.

    What is read within double quotes, too ($, `, quotes), stands in single ones, which cmd does not know: it
    reads % in any quotes. Only sh reads ! there, and no path with a drive.
    """
    word = str(text)
    if _PLAIN.fullmatch(word):
        return word
    read = word.replace("!", "") if DRIVE.match(word) else word
    return shlex.quote(word) if _READ_IN_QUOTES.search(read) else f'"{word}"'


def counted(number: int, one: str, many: str = "") -> str:
    """Return a number and what is counted, such as "1 file" or "2 files"; `many` where no "s" makes it."""
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"


def numbers_in(text: str) -> list[int]:
    """Return the integers in a version or a name, as a key for sorting."""
    return [int(number) for number in re.findall(r"\d+", text)]


def flag_words(text: str) -> tuple[str, ...]:
    """Return the words of CXXFLAGS, LDFLAGS or CXX, as a shell splits them."""
    try:
        return tuple(shlex.split(text))
    except ValueError:  # an open quote, which the build itself reports
        return tuple(text.split())


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Return the known word nearest to a mistyped one, ignoring case."""
    import difflib

    own = word.casefold()
    folded = {item.casefold(): item for item in known}
    matches = difflib.get_close_matches(own, folded, n=3, cutoff=0.6)
    return next((folded[match] for match in matches if _is_like_behind(own, match)), None)


def _is_like_behind(one: str, other: str) -> bool:
    """Say whether words are alike behind what they begin with: torchtext is no torch-scatter."""
    import difflib
    import os.path

    begun = len(os.path.commonprefix((one, other)))
    rest = (one[begun:], other[begun:])
    return max(map(len, rest)) <= _SLIP or difflib.SequenceMatcher(None, *rest).ratio() > 0.5


def is_host(text: str) -> bool:
    """Say whether a text can be the name or the address of a host (RFC 1123; in other letters by IDNA)."""
    try:
        name = text.encode("idna").decode()
    except UnicodeError:
        return False
    return re.fullmatch(r"[A-Za-z0-9_.:%-]+", name) is not None


def url_host(host: str) -> str:
    """Return a host as it stands in an address: one with colons (IPv6) in brackets."""
    return f"[{host}]" if ":" in host else host


def say_bad_port(url: str) -> str:
    """Say why host and port of an address cannot be read; without the port's own words if it has a login."""
    authority = re.split(r"[/?#]", url.partition("://")[2] if "://" in url else url, maxsplit=1)[0]
    port = authority.rpartition("]")[2].partition(":")[2]
    if "@" in url or not port or "[" in port:
        return "its host or port cannot be read"
    if ":" in port:
        return f"{authority!r} is no host and port; an IPv6 address stands in brackets: [::1]"
    return f"{port!r} is no port, which is a number up to 65535"


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return the end of a sentence with the nearest known word; "" if none is near."""
    near = nearest(word, known)
    return f"; did you mean {near}?" if near else ""


def close_to(word: str, known: Iterable[str]) -> str | None:
    """Return a known word that differs by one or two letters, or by a missing beginning.

    Stricter than `nearest`: it is for words that may well be right, of another program.
    """
    import difflib

    folded = {item.casefold(): item for item in known if item != word}
    own = word.casefold()
    parts = set(own.split("_"))
    for other, item in folded.items():  # USE_QNNPACK
        if parts < set(other.split("_")) <= parts | {"pytorch", "torch"}:
            return item
    matches = difflib.get_close_matches(own, folded, n=1, cutoff=0.84)
    if matches:
        return folded[matches[0]]
    for other, item in folded.items():  # DEBGU, CUDA_ARCH_LIST
        if sorted(other) == sorted(own) or ("_" in own and other.endswith(f"_{own}")):
            return item
    return None


def is_one_slip(word: str, other: str) -> bool:
    """Say whether words differ by case, or by one letter: missing, added, wrong or swapped with the next."""
    if word == other:
        return False
    if word.casefold() == other.casefold():
        return True
    start = next(
        (at for at, (a, b) in enumerate(zip(word, other, strict=False)) if a != b), min(len(word), len(other))
    )
    one, two = word[start:], other[start:]
    swapped = one[:2] == two[1::-1] and one[2:] == two[2:]
    return one[1:] == two[1:] or one[1:] == two or one == two[1:] or (len(one) > 1 and swapped)


def clock(seconds: float) -> str:
    """Return a time, in whole seconds, for display: 4:05, 1:02:03; what is behind the point is left out."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def first_few(names: Sequence[str], most: int = 6) -> str:
    """Return the first names of a list, and the number of the others."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


def with_and(words: Iterable[str]) -> str:
    """Return words as one says them, each once: "a, b and c"."""
    once = list(dict.fromkeys(words))
    return " and ".join(filter(None, (", ".join(once[:-1]), *once[-1:])))


def first_lines(lines: Sequence[str], most: int) -> tuple[str, ...]:
    """Return the first of some lines, and one with the number of the others."""
    more = len(lines) - most
    return (*lines[:most], *([f"and {more} more"] if more > 0 else []))


def in_short(error: Exception | str) -> str:
    """Return an error's message, at most 200 characters: `zipfile` quotes headers of an archive."""
    text = str(error).strip() or type(error).__name__
    return text if len(text) <= _MOST else f"{text[:_MOST]} …"
