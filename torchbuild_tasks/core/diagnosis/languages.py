"""What compilers say in other languages, put into English where a code does not say it already.

MSVC's messages carry their code in every language. Those of GCC, of the linker and of make
are told by a few words. Sources: the catalogues gcc.po and cpplib.po of GCC, bfd's and ld's of
binutils, and libc.po of glibc (strerror, strsignal).
"""

from __future__ import annotations

import re
from typing import Final

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
