"""What compilers say in other languages, put into English where a code does not say it already.

MSVC's messages carry their code in every language. Those of GCC, of the linker and of make
are told by a few words. Sources: the catalogues gcc.po and cpplib.po of GCC, bfd's and ld's of
binutils, and libc.po of glibc (strerror, strsignal).
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Iterator
from typing import Final, Literal

Kind = Literal["killed", "linker", "compiler", "python", "cmake", "make", "ninja", "words"]


def _any(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns))


# What MSVC's tools call an error in any language, by its number: C4xxx and LNK4xxx are warnings.
NUMBER: Final = r"(?:C[1-3]\d{3}|LNK[12]\d{3}|CVT\d{4}|RC[12]\d{3}|U1\d{3}|D80\d\d|MSB3721)"
# Sources: gcc.c and libiberty of GCC, clang's Driver, NVIDIA's messages, the kernel's log.
_KILLED: Final = _any(
    r"Killed signal terminated",
    r"Killed \(program",
    r"signal 9\b",
    r"^(?:\S{1,200}: )?Killed$",
    r"^(?:/bin/)?\w{0,8}sh: (?:line )?\d+: +\d+ Killed\b",
    r"Out of memory: Killed process",
)
_LINKER: Final = _any(
    r"undefined reference to ",
    r": cannot find -l",
    r"\bLNK[12]\d{3}\s?[:：]",
    r"ld returned \d",
    r"unresolved external",
    r"(?:lld|mold|gold|ld)(?:-link)?(?:\.exe)?: (?:fatal )?error: ",
    r"nvlink (?:error|fatal) *:",
    r"DSO missing from",
    r"relocation truncated to fit",
    r"PC-relative offset overflow",
    r"file not recognized: ",
    r"^ld: symbol\(s\) not found",
    r"(?:^|[\\/])ld(?:\.\w{2,4})?(?:\.exe)?: (?:cannot open |final link failed)",
)
_ERROR: Final = r"(?:fatal |catastrophic |internal compiler |Command line )?error(?: [A-Z#]\S{0,20}?)? ?:"
_COMPILER: Final = _any(
    rf"^[^\s|][^|]{{0,500}}?(?::\d+|\(\d+(?:,\d+)?(?:,\d+)?(?:,\d+)?\)) ?: {_ERROR}",
    rf"^[\w.+/\\:-]{{1,300}} ?: {_ERROR}",
    r"^(?:\w{1,40} : )?(?:nvcc|ptxas|cicc|cudafe\+\+|fatbinary) (?:fatal|error) *:",
    r"^LLVM ERROR: ",
    rf"(?:^|[\s:]){NUMBER}\s?[:：]",
)
_TRACEBACK: Final = r"^(?:Traceback \(most recent call last\):|\+ Exception Group Traceback)"
_EXCEPTION: Final = r"[A-Z]\w{0,80}(?:Error|Exception): "
EXCEPTION_LINE: Final = re.compile(r"(?:[A-Za-z_]\w{0,60}\.){0,8}[A-Z]\w{0,80}(?::|$)")
_PYTHON: Final = _any(_TRACEBACK, rf"^(?:E +)?(?:[A-Za-z_][\w.]{{0,100}}\.)?{_EXCEPTION}")
# What these say at the start of a line is a consequence, and no error of its own.
_NO_ERROR: Final = (
    r"(?!subprocess-exited|The build backend |builder for '|Failed |Could not build|metadata-gen"
    r"|legacy-install|command ')"
)
_WORDS: Final = _any(
    rf"^(?:ERROR|error|Error|fatal): {_NO_ERROR}",
    r"^Could not find .{0,300}(?:CMakeLists\.txt|third_party)",
    r"^(?:/bin/)?\w{0,8}sh: (?:line )?(?:\d+: )?[^:]{1,200}: (?:command )?not found",
    r"' is not recognized as an internal or external command",
    r"^terminate called ",
    r"^(?:Segmentation fault|Illegal instruction|Bus error )",
    r"^(?:Intel MKL FATAL|INTEL MKL) ERROR",
    r"^OMP: Error ",
    r"^THCudaCheck FAIL",
    r"^CreateProcess failed: ",
    r"^Error compiling Cython file",
)
_CAUSES: Final[tuple[tuple[Kind, re.Pattern[str]], ...]] = (
    ("killed", _KILLED),
    ("linker", _LINKER),
    ("compiler", _COMPILER),
    ("python", _PYTHON),
    ("words", _WORDS),
)
# Said in builds that go well.
_HARMLESS: Final = _any(
    r"^fatal: (?:[Nn]ot a git repository \(or any|No names found|no tag|No tags|ambiguous argument)",
    r"^ERROR: pip's dependency resolver does not currently",
    r"^(?:Error|ERROR|error): (?:0|no) ",
    r"\b0 (?:errors?|Error\(s\)|failures)\b",
    r": (?:warning|note|remark)(?: [A-Z#]\S{0,20}?)? ?: ",
    r"^(?:warning|note|remark|WARNING)\b",
    r"^\[ *(?:RUN|OK|PASSED|FAILED|SKIPPED|-{3,}|={3,}) *\]",
    r"::test_",
    r" (?:PASSED|SKIPPED|XFAIL|ok)$",
    r"^\d* *\| ",
    r"^raise \w",  # quoted source
)
_TOOL: Final = (
    r"(?:ccache|sccache|c\+\+|g\+\+|gcc|cc|clang(?:\+\+)?|nvcc|hipcc|cl|link|ld|ar|cmake|python\d?|ninja)"
)
# A command: what stands in it is a path, a definition or a flag.
_COMMAND: Final = _any(
    r"^(?:\$ |\+ |cd |: && )",
    r"^\[ *\d+[/%]",
    rf"^\S*?{_TOOL}(?:-?[\d.]+)?(?:\.exe)?\"? +(?:[-/@\"]|\S{{0,300}}[./=])",
)
_MARKER: Final = _any(
    r"^\S*make(?:\.exe)?(?:\[\d+\])?: \*\*\* (?!.*\(ignored\)$)",
    r"^ninja: build stopped",
    r"^-- Configuring incomplete",
    r"^(?:Build FAILED\.|Fehler beim Buildvorgang|生成失败|ビルドに失敗しました)",
    r"^NMAKE : fatal error U1077",
    r"^error: (?:command .{1,300} failed|metadata-generation-failed|legacy-install-failure)",
    r"^ERROR: (?:Failed (?:building|to build)|Could not build wheels|process \"|failed to solve)",
    r"^Failed to build ",
    r"^subprocess\.CalledProcessError: ",
    r"^\w{0,20}RuntimeError: Error (?:compiling objects|building extension)",
    r"^[\w.]{0,80}CompileError: command",
    r"^Command \".{1,300}\" failed with error code",
    r"^==> ERROR: A failure occurred",
    r"^CMake Error at \S{0,200}_generated_\S{1,200}\.cmake:\d",  # FindCUDA: nvcc's own words stand above
    r"^##\[error\]",
    r"^(?:Error|ERROR): Process completed with exit code [1-9]",
    r"returned a non-zero code: [1-9]",
)
_ON: Final = _any(
    r"-- (?!Configuring incomplete)",
    r"\[(?:\d+/\d+| *\d+%)\] ",
    r"Successfully |Finished processing dependencies",
    r"Build succeeded|Der Buildvorgang wurde erfolgreich|生成成功|ビルドに成功",
    r"running \w+$|building '|copying |creating ",
    r"Collecting |Requirement already |Installing collected |Preparing metadata",
)
_WELL: Final = _any(
    r"Successfully ",
    r"Build succeeded|Der Buildvorgang wurde erfolgreich|生成成功|ビルドに成功",
    r"Finished processing dependencies",
    r"-- (?:Install|Up-to-date)",
    r"\[(\d+)/\1\] ",
    r"\[100%\] ",
)
CONFIGURED: Final = re.compile(r"-- Configuring done")
PIP_BEGINS: Final = _any(
    r"(?:error|ERROR): (?:subprocess-exited-with-error|Command errored out)",
    r"╰─> \[",
    r"(?:error: |├─▶ |Caused by: )?The build backend returned an error",  # uv
)
PIP_ENDS: Final = _any(r"\[end of output\]", r"note: This error originates from a subprocess", r"-{20,}$")
STATUS: Final = re.compile(r"\[(?:\d+/\d+| *\d+%)\] ")
# What a compiler or linker says to lead up to an error.
LEADS: Final = _any(
    r"In file included",
    r"\s+from ",
    r"\S.{0,300}: [Ii]n ",
    r".{0,300}(?:required from|instantiat)",
    r".{0,300}: cannot find -l",
    r".{0,300}(?:relocation truncated to fit|offset overflow in |DSO missing from)",
)
# A warning of Python's, with where it was given.
WARNED: Final = re.compile(r"\b[A-Z][a-z]+Warning: ")
# Trials of CMake, which may fail: their source or target has this in its name.
TRIAL: Final = re.compile(r"cmTC_|CMakeTmp|CMakeScratch|TryCompile-")
# A program that says in its own words what is wrong.
COMPLAINT: Final = re.compile(
    r"^[\w./+-]{1,100}: .{0,400}(?:annot |not found|No such|ailed|denied|rror|No space|nvalid|nable to)"
)


def proof(text: str) -> Kind | None:
    """How a block begins that proves the failure, if this line begins one."""
    if text.startswith("FAILED: "):
        return "ninja"
    if text.startswith(("CMake Error at ", "CMake Error in ", "CMake Error: ", "CMake Error (dev)")):
        return None if _MARKER.match(text) else "cmake"
    if text.startswith(("ninja: error: ", "ninja: fatal: ")):
        return "words"
    return None


def cause(text: str) -> Kind | None:
    """What kind of error a line names, if any."""
    if _HARMLESS.search(text):
        return None
    return next((kind for kind, pattern in _CAUSES if pattern.search(text)), None)


def is_marker(text: str) -> bool:
    """Whether a line says that something before it has failed."""
    return _MARKER.search(text) is not None


def goes_on(text: str) -> bool:
    """Whether the build went on in order."""
    return _ON.match(text) is not None


def ended_well(text: str) -> bool:
    """Whether a line is among the last of a build that went well."""
    return _WELL.match(text.strip()) is not None


def is_harmless(text: str) -> bool:
    """Whether a line is a warning, a test's result, or said in builds that go well."""
    return _HARMLESS.search(text) is not None


def is_command(text: str) -> bool:
    """Whether a line is a command rather than what it said."""
    return _COMMAND.match(text) is not None and not proof(text)


def is_traceback(text: str) -> bool:
    """Whether a line begins a traceback of Python."""
    return re.match(_TRACEBACK, text) is not None


# ----------------


# A word for "error", and for "fatal error", as it stands between "a.cpp:1:2: " and ":".
_FATAL: Final = (
    "fataler Fehler",
    "schwerwiegender Fehler",
    "Schwerwiegender Fehler",
    "致命错误",
    "嚴重錯誤",
    "致命的エラー",
    "치명적 오류",
    "erreur fatale",
    "error fatal",
    "error grave",
    "errore irreversibile",
    "errore fatale",
    "erro fatal",
    "фатальная ошибка",
)
_TRANSLATED_ERROR: Final = (
    "Fehler",
    "错误",
    "錯誤",
    "エラー",
    "오류",
    "erreur",
    "errore",
    "erro",
    "ошибка",
)
_WARNING: Final = (
    "Warnung",
    "警告",
    "경고",
    "avertissement",
    "attention",
    "aviso",
    "avviso",
    "предупреждение",
)
_SENTENCES: Final = (
    (
        "undefined reference to ",
        ("undefinierter Verweis auf ", "Nicht definierter Verweis auf ", "référence indéfinie vers ")
        + ("未定义的引用", "定義されていない参照", "정의되지 않은 참조", "riferimento non definito a ")
        + ("referencia a .+? sin definir", "неопределённая ссылка на "),
    ),
    (
        "No such file or directory",
        ("Datei oder Verzeichnis nicht gefunden", "没有那个文件或目录", "沒有此一檔案或目錄")
        + ("そのようなファイルやディレクトリはありません", "그런 파일이나 디렉터리가 없습니다")
        + ("Aucun fichier ou dossier de ce (?:type|nom)", "No existe el (?:fichero|archivo) o el directorio")
        + ("File o directory non esistente", "Arquivo ou diretório (?:inexistente|não encontrado)")
        + ("Нет такого файла или каталога",),
    ),
    (
        "No space left on device",
        ("Auf dem Gerät ist kein Speicherplatz mehr verfügbar", "设备上没有空间")
        + ("デバイスに空き領域がありません", "Aucun espace disponible sur le périphérique"),
    ),
    (
        "Killed",
        ("Getötet", "已杀死", "已终止", "強制終了", "Processus arrêté", "Terminado \\(killed\\)", "Убито"),
    ),
)


def _word(words: tuple[str, ...]) -> re.Pattern[str]:
    """One of these words between colons, with whatever spaces and width the language gives the colon."""
    return re.compile(rf"(?<=[:：\s])(?:{'|'.join(words)})\s?[:：]\s?")


_TRANSLATED_WORDS: Final = (
    (_word(_FATAL), "fatal error: "),
    (_word(_TRANSLATED_ERROR), "error: "),
    (_word(_WARNING), "warning: "),
    *((re.compile("|".join(said)), english) for english, said in _SENTENCES),
    (re.compile(r"(?<=ld)\s?: (?!cannot find|warning)\D{0,40}?(-l[\w:.+-]{2,60})"), r": cannot find \1"),
)
# Any of these in a block of a log, in one of these encodings, is worth a look at its line.
TRANSLATED_SIGNS: Final = tuple(
    dict.fromkeys(
        word.encode(encoding)
        for encoding, words in (
            ("utf-8", ("错误", "錯誤", "エラー", "오류", "ошибка", "已杀死")),
            ("gb18030", ("错误", "已杀死")),
            ("cp932", ("エラー",)),
            ("cp949", ("오류",)),
            ("cp1251", ("ошибка",)),
            ("cp866", ("ошибка",)),
            ("utf-8", ("Fehler: ", "rreur", "errore: ", "erro: ")),
        )
        for word in words
    )
)


def in_english(text: str) -> str:
    """A line with these words in English; everything else in it stays."""
    for pattern, english in _TRANSLATED_WORDS:
        text = pattern.sub(english, text)
    return text


# ----------------
# A line of a log as it was meant: without what a terminal, a CI service or a code page did to it


WIDTH: Final = 2000  # characters of a line that are looked at
_SNIFFED: Final = 4096
_GUESSED: Final = 8192  # bytes of lines from which a code page is guessed

_ANSI: Final = re.compile(
    r"\x1b(?:\[[0-9;?]*[@-~]|\][^\x07\x1b]{0,200}(?:\x07|\x1b\\)|[()][0-9A-B]|[=>78cDEHM])"
)
_TIME: Final = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?Z? "
# What CI services, docker and MSBuild put before every line, and people who paste it.
_BEFORE: Final = re.compile(
    r"\ufeff?(?:"
    rf"(?:[^\t]{{1,80}}\t){{0,2}}\ufeff?{_TIME}(?:\d\d[OE]\+? ?)?"  # GitHub, Azure, GitLab
    r"|\[\d{4}-\d\d-\d\d[T ][^\]]{8,30}\] |[A-Z][a-z]{2} \d\d \d\d:\d\d:\d\d "  # Jenkins
    r"|\d\d:\d\d:\d\d(?:\.\d+)? "
    r"| *#\d+ \d+\.\d+ |\d{1,5}\.\d{1,3} "  # docker
    r"| *\d+>(?! )| *\d+>(?= \S)"  # MSBuild
    r"|\[rank\d+\]: ?|C/C\+\+: "  # torchrun, Gradle
    r"|>(?:>>)? |`{1,3}(?=\S)|\[\d{1,2}(?:;\d{1,2}){0,3}m"  # pasted: quotes, code, colours without escape
    r")"
)
# A line of Visual Studio's list of errors, as it is pasted.
_LISTED: Final = re.compile(rf"^\S{{2,8}}\t({NUMBER})\t")
# ASCII lines that may be in another language.
_OTHER: Final = re.compile(r"\bld\s?: |Fehler|[Ee]rreur|\berrore\b|\berro\b|error (?:grave|fatal)")
# Of two that fit equally well the first is taken.
_CODE_PAGES: Final = ("cp1252", "cp850", "cp932", "cp949", "cp936", "cp950", "cp1251", "cp866")
_WIDE: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def clean(line: str) -> str:
    """What a program said: no colours, no time of a CI service, English; the indentation stays."""
    if "\x1b" in line:
        line = _ANSI.sub("", line)
    if "\r" in line:  # what a progress bar has written over
        line = line.rstrip("\r").rpartition("\r")[2]
    line = line[:WIDTH]
    while before := _BEFORE.match(line):
        line = line[before.end() :]
    if "\t" in line:
        line = _LISTED.sub(r"error \1: ", line)
    return line if line.isascii() and not _OTHER.search(line) else in_english(line)


def wide_encoding(start: bytes) -> str | None:
    """The encoding of a log by its first bytes, where it takes two bytes a character; else None.

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


def recoded(start: bytes, chunks: Iterable[bytes]) -> Iterator[bytes]:
    """A log of two bytes a character in UTF-8, by its first bytes; every other one as it is."""
    encoding = wide_encoding(start)
    if encoding is None:
        yield from chunks
        return
    decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
    for chunk in chunks:
        yield decoder.decode(chunk).encode(errors="replace")
    yield decoder.decode(b"", final=True).encode(errors="replace")


def is_binary(start: bytes) -> bool:
    """Whether these first bytes are no text in any encoding that logs have."""
    start = start[:_SNIFFED]
    if wide_encoding(start):
        return False
    strange = sum(start.count(code) for code in range(32) if code not in b"\t\n\r\x1b\b\f")
    return strange > len(start) // 20


class Decoder:
    """Makes text of lines: UTF-8, and where one is not, the code page that fits all such lines so far."""

    def __init__(self) -> None:
        self._seen = b""
        self._code_page = ""

    def __call__(self, line: bytes) -> str:
        """The text of one line."""
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
    """The code page in which these bytes look most like a language."""
    return max(_CODE_PAGES, key=lambda name: _likeness(data, name))


def _likeness(data: bytes, code_page: str) -> float:
    """The share of letters that are usual for the languages of a code page; -1 when it cannot be it."""
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
            return letter in "äöüßÄÖÜéèêàâçùûîôëïñáíóúãõìò«»\xa0"
    # Of Chinese the usual characters stand first in the table (GB 2312 and Big5, level 1).
    first, last = (0xB0, 0xD7) if code_page == "cp936" else (0xA4, 0xC6)
    lead = letter.encode(code_page)[0]
    return first <= lead <= last or letter in "，。：；“”（）、"


# ----------------
# plain text that tells where in a long log something may be said, so that the rest is not read


# One of these is in what every failure of a build says somewhere; none is in a usual compile command.
SIGNS: Final = (
    *("rror:", "rror ", "ERROR", "FAIL", "ailed", "atal ", "Traceback", "egmentation fault", "core dumped"),
    *("Killed", "signal 9", "*** ", "build stopped", "of output", "-" * 20, "-- Configuring"),
    *("ndefined ", "nresolved", "/ld: ", "/ld\u00a0: ", "annot ", "ould not", "ot found", "No s"),
)
# One of these is in what a build says as soon as it has failed, while what runs beside it goes on.
PROOF_SIGNS: Final = (b"FAILED: ", b"CMake Error", b": *** [", b"ninja: error: ", b"ninja: fatal: ")
# Looked for at the start of a log only.
FIRST_SIGNS: Final = (
    *(
        "rror\t",
        "[error]",
        "atal:",
        "rreur",
        "ehler: ",
        "xception: ",
        "terminate called",
        "llegal instruction",
    ),
    *(
        "truncated to fit",
        "offset overflow",
        "DSO missing",
        "ot recognized",
        "nsupported",
        "is not ",
        "ould NOT",
    ),
    *("is unknown", "non-zero code"),
)


class Places:
    """Where the signs stand in a block; each is looked for again only where it was passed."""

    def __init__(self, block: bytes, signs: tuple[bytes, ...]) -> None:
        self._block = block
        if not block.isascii():
            signs += TRANSLATED_SIGNS
        self._next = dict.fromkeys(signs, 0)

    def line_after(self, at: int) -> int:
        """The start of the first line from `at` on that holds a sign; the end when there is none."""
        block, end = self._block, len(self._block)
        for sign, place in self._next.items():
            if place < at or at == 0:
                found = block.find(sign, at)
                self._next[sign] = end if found < 0 else found
        first = min(self._next.values())
        return end if first == end else block.rfind(b"\n", 0, first) + 1
