"""Translate messages of GNU's programs and git into English.

A few words between colons are listed here; messages are in data/messages.toml, which was read from the
programs' own catalogues.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from torchbuild_tasks.catalog import load_catalog
from torchbuild_tasks.catalog.failures import TextIndex

# The words for "error" and "fatal error" as they are between "a.cpp:1:2: " and ":".
_FATAL: Final = (
    "fataler Fehler",
    "schwerwiegender Fehler",
    "Schwerwiegender Fehler",
    "致命错误",
    "嚴重錯誤",
    "致命的エラー",
    "치명적 오류",
    "erreur fatale",
    "Erreur fatale",
    "Schwerwiegend",
    "error fatal",
    "error grave",
    "errore irreversibile",
    "errore fatale",
    "erro fatal",
    "фатальная ошибка",
    "krytyczny błąd",
    "błąd krytyczny",
    "ölümcül hata",
    "fatale fout",
    "ödesdigert fel",
    "критична помилка",
    "lỗi nghiêm trọng",
    "závažná chyba",
    "vakava virhe",
    "fatal fejl",
    "μοιραίο σφάλμα",
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
    "Erreur",
    "Errore",
    "Erro",
    "Ошибка",
    "błąd",
    "hata",
    "fout",
    "fel",
    "virhe",
    "fejl",
    "chyba",
    "hiba",
    "eroare",
    "помилка",
    "lỗi",
    "σφάλμα",
    "greška",
    "грешка",
    "памылка",
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
    "ostrzeżenie",
    "uyarı",
    "waarschuwing",
    "varning",
    "varoitus",
    "advarsel",
    "varování",
    "попередження",
    "cảnh báo",
    "προειδοποίηση",
)

# Translations in other versions than those of the catalogues.
_OTHER_VERSIONS: Final = (
    (
        "undefined reference to ",
        ("undefinierter Verweis auf ", "référence indéfinie vers ", "未定义的引用", "定義されていない参照")
        + ("정의되지 않은 참조", "riferimento non definito a ", "referencia a .+? sin definir"),
    ),
    (
        "No such file or directory",
        ("没有那个文件或目录", "沒有此一檔案或目錄", "그런 파일이나 디렉터리가 없습니다")
        + ("Aucun fichier ou dossier de ce nom", "No existe el fichero o el directorio")
        + ("Arquivo ou diretório inexistente",),
    ),
    ("No space left on device", ("设备上没有空间",)),
    ("Killed", ("已杀死", "已终止", "Processus arrêté", "Terminado \\(killed\\)")),
)
# What cmd and PowerShell print after the name of a program that they do not find, from public threads.
_NO_COMMAND: Final = (
    *(
        "ist entweder falsch geschrieben",
        "n'est pas reconnu en tant que commande",
        "no se reconoce como un comando",
    ),
    *(
        "non è riconosciuto come comando",
        "não é reconhecido como um comando",
        "не является внутренней или внешней",
    ),
    *("は、内部コマンド", "은(는) 내부 또는 외부 명령", "不是内部或外部命令", "不是內部或外部命令"),
    *("nie jest rozpoznawana jako polecenie", "iç ya da dış komut", "není názvem vnitřního"),
    *(
        "wurde nicht als Name eines Cmdlet",
        "n'est pas reconnu comme nom",
        "no se reconoce como nombre de un cmdlet",
    ),
    *(
        "não é reconhecido como nome de cmdlet",
        "non riconosciuto come nome di cmdlet",
        "не распознано как имя командлета",
    ),
    *("项识别为 cmdlet", "は、コマンドレット", "용어가 cmdlet"),
)
# A slot of printf, as gcc, bfd and git write it; gcc's %< and %> are quotes.
_SLOT: Final = re.compile(r"%(\d+\$)?[+#]*(?:(q)[+#]*)?(?:ld|lu|p[A-Z]|[A-Za-z])|%[<>]")
_LEAST: Final = 8  # characters of an ASCII message: a shorter one may be English
_OPEN: Final = "‘'\"“„»«‹「`"
_CLOSE: Final = "’'\"”“«»›」"
# Text that gcc quotes, with the note on its type after it.
_QUOTED: Final = rf"([{_OPEN}]\s?[^{_OPEN}{_CLOSE}]{{1,300}}[{_CLOSE}](?: \{{aka[^}}]{{1,200}}\}})?)"
_QUOTE: Final = rf"\s?[{_OPEN}{_CLOSE}]"
_QUOTE_AND_BLANK: Final = rf"[{_OPEN}{_CLOSE}]\s?"
_LOCAL_QUOTES: Final = re.compile(r"[„»«「]\s?([^„“»«「」]{1,300}?)\s?[“»«」]")
# Messages whose lines have no word for an error.
_SIGNS: Final = (
    *("fatal: ", "early EOF", "undefined reference to `%pT'", "%s: %s: undefined reference to '%s'"),
    *("multiple definition of `%pT'", "multiple definition of '%s'", "cannot find %s: %E"),
    *("%s: command not found", "%s: %s: bad interpreter", "Permission denied", "No space left on device"),
    *("Your local changes to the following files would be overwritten by %s:\n%%s", "can't create %s: %s"),
    *("repository '%s' does not exist", "not a git repository (or any of the parent directories): %s"),
    *("Killed", "Segmentation fault", "Illegal instruction", "cannot open shared object file"),
)


class Message(NamedTuple):
    """A message in another language: plain text that is in it, its pattern, and the template in English."""

    plain: str
    pattern: str
    english: str

    def translate(self, text: str) -> str:
        """Return a text with the template in place of this message."""
        pattern = re.compile(self.pattern)  # few are met: compiling all took most of a short reading
        return pattern.sub(_replacement(self.english, pattern.groupindex), text)


def is_other(text: str) -> bool:
    """Return whether an ASCII line holds a message in another language."""
    index, texts = _ascii_index()
    return any(texts[number] in text for number in index.find(text))


@functools.cache
def _ascii_index() -> tuple[TextIndex, tuple[str, ...]]:
    texts = (*_ascii(), *_NO_COMMAND)
    return TextIndex((text,) for text in texts), texts


@functools.cache
def _ascii() -> tuple[str, ...]:
    """Return the plain text of the messages that are ASCII in another language."""
    return tuple({each.plain for each in _messages() if each.plain.isascii() and len(each.plain) >= _LEAST})


def in_english(text: str) -> str:
    """Return a line with the known words and messages in English; everything else in it stays."""
    for pattern, english in _WORDS:
        text = pattern.sub(english, text)
    for message in _messages():
        if message.plain in text:
            text = message.translate(text)
    for pattern, english in _OTHERS:
        text = pattern.sub(english, text)
    return _LOCAL_QUOTES.sub(r"'\1'", text)


def _word(words: tuple[str, ...]) -> re.Pattern[str]:
    """Match one of these words between colons, with the spaces and width of the language's colon."""
    return re.compile(rf"(?:(?<=[:：\s])|^)(?:{'|'.join(words)})\s?[:：]\s?")


_WORDS: Final = (
    (_word(_FATAL), "fatal error: "),
    (_word(_TRANSLATED_ERROR), "error: "),
    (_word(_WARNING), "warning: "),
)
_OTHERS: Final = (
    (
        re.compile(
            rf"[{_OPEN}]([^{_OPEN}{_CLOSE}]{{1,300}})[{_CLOSE}]\s?に対する定義されていない参照(?:です)?"
        ),
        r"undefined reference to '\1'",
    ),
    *((re.compile("|".join(texts)), english) for english, texts in _OTHER_VERSIONS),
    (
        re.compile(
            rf".{{0,40}}?[{_OPEN}]\s?([^{_OPEN}{_CLOSE}]{{1,100}}?)\s?[{_CLOSE}]"
            rf"\s?(?:{'|'.join(map(re.escape, _NO_COMMAND))})"
        ),
        r"'\1' is not recognized as an internal or external command",
    ),
    (
        re.compile(r"(?<=ld)\s?: (?!cannot find|warning|library not found)\D{0,40}?(-l[\w:.+-]{2,60})"),
        r": cannot find \1",
    ),
)


@functools.cache
def _messages() -> tuple[Message, ...]:
    """Return all messages in all languages, the longest first: one may contain another."""
    found = [message for row in load_catalog().message for message in _read(row.english, row.translations)]
    return tuple(sorted(found, key=lambda message: len(message.pattern), reverse=True))


def _read(english: str, translations: tuple[str, ...]) -> Iterator[Message]:
    for template in translations:
        yield Message(_plain(template), _pattern(template.partition("\n")[0]), english)


def _plain(template: str) -> str:
    """Return the longest piece of a template that stands in the line as it is."""
    pieces = re.split(r"[\0\s]{2,}|\0|[^\S ]", _SLOT.sub("\0", template.partition("\n")[0]))
    return max(pieces, key=len).strip()


def _pattern(template: str) -> str:
    """Return the pattern of a template; its groups are named after the slots of the English one."""
    parts: list[str] = []
    at = number = 0
    for slot in _SLOT.finditer(template):
        parts.append(_literal(template[at : slot.start()]))
        at = slot.end()
        if slot[0] in ("%<", "%>"):
            parts.append(_QUOTE if slot[0] == "%>" else _QUOTE_AND_BLANK)
            continue
        number += 1
        name = f"(?P<a{slot[1].rstrip('$') if slot[1] else number}>"
        whole = (
            r"\S{1,300})" if slot.start() == 0 else r"\S.{0,300}?)" if at < len(template) else r"\S.{0,300})"
        )
        parts.append(name + (_QUOTED if slot[2] else whole[:-1]) + ")")
    return "".join([*parts, _literal(template[at:])])


def _literal(text: str) -> str:
    """Return the pattern of plain text; the blank within French quotes is often pasted as any other."""
    return re.escape(text).replace("«\xa0", r"«\s").replace("\xa0»", r"\s»")


def _replacement(english: str, groups: Mapping[str, int]) -> str:
    """Return the English template with references to the groups; one on another line is left empty."""
    number = 0

    def refer(slot: re.Match[str]) -> str:
        nonlocal number
        if slot[0] in ("%<", "%>"):
            return "'"
        number += 1
        return rf"\g<a{number}>" if f"a{number}" in groups else ""

    return _SLOT.sub(refer, english.replace("\\", r"\\"))


def _signs() -> tuple[str, ...]:
    rows = [row for row in load_catalog().message if row.english in _SIGNS]
    return tuple(_plain(text) for row in rows for text in row.translations)


# Any of these in a block of a log, in one of these encodings, makes its line worth reading.
TRANSLATED_SIGNS: Final = tuple(
    dict.fromkeys(
        word.encode(encoding)
        for encoding, words in (
            (
                "utf-8",
                (
                    "错误",
                    "錯誤",
                    "エラー",
                    "오류",
                    "ошибка",
                    "已杀死",
                    "błąd",
                    "помилка",
                    "lỗi",
                    "σφάλμα",
                    "greška",
                    "грешка",
                ),
            ),
            ("utf-8", ("hata: ", ": fout: ", ": fel: ", ": virhe: ", ": fejl: ", ": chyba: ")),
            ("gb18030", ("错误", "已杀死")),
            ("cp932", ("エラー",)),
            ("cp949", ("오류",)),
            ("cp1251", ("ошибка",)),
            ("cp866", ("ошибка",)),
            ("utf-8", ("Fehler: ", "rreur", "errore: ", "erro: ")),
            ("utf-8", (*_signs(), *_NO_COMMAND)),
            ("gb18030", ("不是内部或外部命令",)),
            ("cp932", ("は、内部コマンド",)),
            ("cp949", ("내부 또는 외부 명령",)),
            ("cp866", ("не является внутренней",)),
            (
                "utf-8",
                tuple(
                    each
                    for _, texts in _OTHER_VERSIONS
                    for each in texts
                    if "\\" not in each and "." not in each
                ),
            ),
        )
        for word in words
    )
)
# Those of languages that can do without other letters.
ASCII_SIGNS: Final = tuple(sign for sign in TRANSLATED_SIGNS if sign.isascii() and len(sign) >= _LEAST)
