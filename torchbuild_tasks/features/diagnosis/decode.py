"""Decode lines of a log, without colours and the times of CI services, in English.

MSVC's messages have their code in every language; those of GNU's programs and git `translate` reads.
"""

from __future__ import annotations

import codecs
import contextlib
import itertools
import re
import zlib
from collections.abc import Iterable, Iterator
from typing import Final

from torchbuild_tasks.features.diagnosis.translate import in_english, is_other
from torchbuild_tasks.values import parse_json

# What MSVC's tools call an error in any language, by its number: C4xxx and LNK4xxx are warnings.
NUMBER: Final = r"(?:C[1-3]\d{3}|LNK[12]\d{3}|CVT\d{4}|RC[12]\d{3}|U1\d{3}|D80\d\d|MSB3721)"
WIDTH: Final = 2000  # characters of a line that are looked at
_SNIFFED: Final = 4096
_GUESSED: Final = 8192  # bytes of lines from which a code page is guessed

_ANSI: Final = re.compile(
    r"\x1b(?:\[[0-9;?]*[@-~]|[\]_][^\x07\x1b]{0,200}(?:\x07|\x1b\\)|[()][0-9A-B]|[=>78cDEHM])"
)
_TIME: Final = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?Z? "
# Prefixes of lines: of CI services, docker, MSBuild, and of pasted text.
_BEFORE: Final = re.compile(
    r"\ufeff?(?:"
    rf"(?:[^\t]{{1,80}}\t){{0,2}}\ufeff?{_TIME}(?:\d\d[OE]\+? ?|std(?:out|err) [FP] )?"  # CI, Kubernetes
    r"|\[\d{4}-\d\d-\d\d[T ][^\]]{8,30}\] |[A-Z][a-z]{2} \d\d \d\d:\d\d:\d\d "  # Jenkins
    r"|\d\d:\d\d:\d\d(?:\.\d+)? "
    r"| *#\d+ (?:\d+\.\d+ |(?=ERROR: ))|\d{1,5}\.\d{1,3} "  # docker
    r"| *\d+>"  # MSBuild
    r"|\[rank\d+\]: ?|\[default\d+\]: ?|\[\d+,\d+\]<std(?:err|out)>: ?|\(\w[^()]{0,60}pid=\d+[^()]{0,40}\) "
    r"|\d{1,3}: (?=Traceback |  File |\w{1,60}(?:Error|Exception): )|C/C\+\+: "  # MPI, Ray, srun, Gradle
    r"|[\w.-]{1,60}[-_]\d{1,3} +\| |\[pod/[^\]]{1,120}\] | => => # "  # compose, kubectl, buildx
    r"| {0,4}(?:│ ?)+(?=\S)| {0,4}│ (?=  \S)|\|(?: |$)(?! *[\^~|])"  # rattler-build, bitbake
    r"|\[(?:ERROR|INFO|WARN(?:ING)?|DEBUG|FATAL|STDERR|stderr|stdout)\] "  # loggers
    r"|\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} (?:- )?[\w.]{0,60}(?: - )?(?:ERROR|INFO|WARNING|DEBUG)\s*(?:-|:) "
    r"|(?:DEBUG|INFO|WARNING|ERROR|CRITICAL):[\w.]{1,60}:(?=\S| {2})"  # logging.basicConfig
    r"|- [\w.]{1,60} - (?:DEBUG|INFO|WARNING|ERROR|CRITICAL) - (?=\S)"
    r"| {6,8}> (?=\S| )|(?:  >> | {5})\d{1,7} {4}(?=\S)"  # nix, spack
    r"|test\w{1,100} \([\w.]{1,160}\) \.\.\. (?!ok$|FAIL|ERROR|skip|expected|unexpected)(?=\S)"  # unittest
    r"| {4,5}\| (?=[A-Z]\w{0,20} \w)"  # Poetry, PowerShell
    r"|:(?:info|debug|error|msg|notice|warn):\w{1,20} "  # MacPorts
    # cargo and others, which pass on what a compiler says
    r"|(?:[Ww]arning|WARN(?:ING)?): (?:[\w-]{1,60}@\d[\w.+-]{0,40}: )?(?="
    r"(?:\S{1,300}?(?::\d+(?::\d+)?|\(\d+(?:,\d+)?\))|cl|LINK|nvcc|[cg]\+\+|gcc|cc|clang\S{0,9}) ?: "
    rf"(?:fatal |internal compiler |Command line )?error(?: {NUMBER})?\s?: "
    r"|\S{0,200}\bld(?:\.\w{2,4})?: (?!warning)"
    r"|\S.{0,300}: undefined reference to )"
    r"|>(?:>>)? |`{1,3}(?=\S)|\[\d{1,2}(?:;\d{1,2}){0,3}m"  # pasted: quotes, code, colours without escape
    r")"
)
# GCC's colours, pasted without the escape, and the blanks with which a narrow terminal fills a line.
_PASTED: Final = re.compile(r"\[(?:\d{2}(?:;\d{2})?)?m\[K|(?<=\w) {40,}(?=\w)")
# Marks of bold text around what was pasted into a page.
_BOLD: Final = re.compile(r"^\*\*(?=[^\s*])|(?<=[^\s*/])\*\*$")
# Under which a structured log has its text.
_JSON_TEXT: Final = ("log", "message", "msg", "text", "line", "event", "stream")
_LOGFMT: Final = re.compile(r"(?:time|ts|t)=\"?[^\" ]{8,40}\"? (?:\w{1,20}=\S{1,80} ){0,4}msg=\"(.*)\"$")
# A line of Visual Studio's list of errors, as it is pasted.
_LISTED: Final = re.compile(rf"^\S{{2,8}}\t({NUMBER})\t")
# ASCII lines that may be in another language.
_OTHER: Final = re.compile(
    r"\bld\s?: |Fehler|[Ee]rreur|\berrore\b|\berro\b|error (?:grave|fatal)"
    r"|(?:^|[: ])(?:hata|fout|fel|virhe|fejl|chyba|hiba|eroare|varning|advarsel|varoitus|waarschuwing): "
)
# Of two that fit equally well the first is taken.
_CODE_PAGES: Final = ("cp1252", "cp850", "cp932", "cp949", "cp936", "cp950", "cp1251", "cp866")
_PACKED: Final = {
    b"\x1f\x8b": "gzip",
    b"PK\x03\x04": "zip",
    b"\xfd7zXZ\0": "xz",
    b"(\xb5/\xfd": "zstd",
    b"BZh": "bzip2",
}
_GZIP: Final = 31  # zlib's number for gzip's format
_WIDE: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def clean(line: str, before: re.Pattern[str] | None = None) -> str:
    """Return a line without colours and what stands before it, in English; the indentation stays.

    Args:
        line: the line.
        before: what stands before every line of this log, beside the times of CI services and the like.
    """
    line = bare(line, before)
    plain = line.isascii() and not _OTHER.search(line) and not is_other(line)
    return line if plain else in_english(line)


def bare(line: str, before: re.Pattern[str] | None = None) -> str:
    """Return a line as `clean` does, in its own language."""
    line = without_colours(line)
    if before is not None:
        line = before.sub("", line)
    if line.startswith('{"'):
        line = _of_json(line)
    elif logfmt := _LOGFMT.match(line):
        line = logfmt[1].replace('\\"', '"')
    if "\r" in line:  # what a progress bar has written over
        line = line.rstrip("\r").rpartition("\r")[2]
    line = line[:WIDTH]
    while head := _BEFORE.match(line):
        line = line[head.end() :]
    line = _PASTED.sub("", line)
    if "**" in line:
        line = _BOLD.sub("", line)
    return _LISTED.sub(r"error \1: ", line) if "\t" in line else line


def without_colours(line: str) -> str:
    """Return a line without a terminal's colours and other sequences."""
    return _ANSI.sub("", line) if "\x1b" in line else line


def _of_json(line: str) -> str:
    """Return the text of a line of a structured log (docker's json-file, structlog)."""
    try:
        fields = parse_json(line)
    except ValueError:
        return line
    texts = (fields[key] for key in _JSON_TEXT if isinstance(fields.get(key), str))
    return next((text for text in texts if text not in ("stdout", "stderr")), line).rstrip("\n")


def wide_encoding(start: bytes) -> str | None:
    """Return the encoding of a log that takes two bytes a character, by its first bytes; else None.

    PowerShell writes such files with `>`.
    """
    if start.startswith(_WIDE):
        return "utf-16"
    start = start[:_SNIFFED]
    even = start[0::2].count(0)
    odd = start[1::2].count(0)
    if odd > len(start) // 5 and even < odd // 10:
        return "utf-16-le"
    if even > len(start) // 5 and odd < even // 10:
        return "utf-16-be"
    return None


def packed_by(start: bytes) -> str:
    """Return the program that has packed this file, by its first bytes; "" for none."""
    return next((program for magic, program in _PACKED.items() if start.startswith(magic)), "")


def unpacked(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Yield a log unpacked if gzip has packed it, up to where it is damaged; any other unchanged."""
    first = next(chunks, b"")
    if packed_by(first) != "gzip":
        yield first
        yield from chunks
        return
    unpack = zlib.decompressobj(_GZIP)
    with contextlib.suppress(zlib.error):  # the rest is damaged
        for chunk in itertools.chain([first], chunks):
            yield unpack.decompress(chunk)
            while unpack.eof and (rest := unpack.unused_data):
                unpack = zlib.decompressobj(_GZIP)
                yield unpack.decompress(rest)


def recoded(start: bytes, chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield a log of two bytes a character as UTF-8; every other one as it is."""
    encoding = wide_encoding(start)
    if encoding is None:
        yield from chunks
        return
    decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
    for chunk in chunks:
        yield decoder.decode(chunk).encode(errors="replace")
    yield decoder.decode(b"", final=True).encode(errors="replace")


def is_binary(start: bytes) -> bool:
    """Return whether these first bytes are not text in any encoding that logs have."""
    start = start[:_SNIFFED]
    if wide_encoding(start):
        return False
    strange = sum(start.count(code) for code in range(32) if code not in b"\t\n\r\x1b\b\f")
    return strange > len(start) // 20


class Decoder:
    """Decode lines: UTF-8, and where one is not, the code page that fits all such lines so far."""

    def __init__(self) -> None:
        self._seen = b""
        self._code_page = ""

    def __call__(self, line: bytes) -> str:
        """Return the text of one line."""
        try:
            return line.decode()
        except UnicodeDecodeError:
            return line.decode(self._page(line), errors="replace")

    def _page(self, line: bytes) -> str:
        if not self._code_page or len(self._seen) < _GUESSED:
            self._seen += line[:WIDTH] + b"\n"
            self._code_page = guess_code_page(self._seen)
        return self._code_page


def guess_code_page(data: bytes) -> str:
    """Return the code page in which these bytes look most like a language."""
    return max(_CODE_PAGES, key=lambda name: _likeness(data, name))


def _likeness(data: bytes, code_page: str) -> float:
    """Return the share of letters that are usual in a code page's languages; -1 when it cannot be it."""
    try:
        letters = [letter for letter in data.decode(code_page) if not letter.isascii()]
    except UnicodeDecodeError:
        return -1.0
    usual = sum(1 for letter in letters if _is_usual(letter, code_page))
    return usual / max(1, len(letters))


def _is_usual(letter: str, code_page: str) -> bool:
    match code_page:
        case "cp932":  # half-width kana are what other code pages look like in it
            kana = "\u3040" <= letter <= "\u30ff" or letter in "、。」「"
            return kana or 0x88 <= letter.encode(code_page)[0] <= 0x97
        case "cp949":
            return "\uac00" <= letter <= "\ud7a3"
        case "cp1251" | "cp866":
            return "а" <= letter <= "я" or letter in "ёАБВГДЕИКЛМНОПРСТУФЦЧШЭЯ"
        case "cp1252" | "cp850":
            return letter in "äöüßÄÖÜéèêàâçùûîôëïñáíóúãõìòÉÈÊÀÇ«»\xa0"
    # Of Chinese the usual characters stand first in the table (GB 2312 and Big5, level 1).
    first, last = (0xB0, 0xD7) if code_page == "cp936" else (0xA4, 0xC6)
    lead = letter.encode(code_page)[0]
    return first <= lead <= last or letter in "，。：；“”（）、"
