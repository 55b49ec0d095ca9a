"""A line as it was meant: colours, times, languages, encodings."""

# ruff: noqa: E501  (what programs say)

from __future__ import annotations

import pytest

from tests.support.for_each import each_case
from torchbuild_tasks.features.diagnosis.decode import (
    WIDTH,
    Decoder,
    clean,
    guess_code_page,
    is_binary,
    recoded,
    wide_encoding,
)


@each_case(
    ("line", "said"),
    [
        ("FAILED: a.o", "FAILED: a.o"),
        ("2024-05-01T12:34:56.7890123Z FAILED: a.o", "FAILED: a.o"),
        ("build\tRun make\t2024-05-01T12:34:56.7890123Z FAILED: a.o", "FAILED: a.o"),
        ("#12 123.4   a.cpp:1: error: x", "  a.cpp:1: error: x"),
        ("453.4       ModuleNotFoundError: x", "      ModuleNotFoundError: x"),
        ("  12>c:\\a.cpp(1): error C2065: x", "c:\\a.cpp(1): error C2065: x"),
        ("Apr 02 18:29:34 FAILED: a.o", "FAILED: a.o"),
        ("[2024-05-01T12:34:56.789Z] FAILED: a.o", "FAILED: a.o"),
        ("> >>> import torch", "import torch"),
        ("`Traceback (most recent call last):`", "Traceback (most recent call last):`"),
        ("\x1b[01m\x1b[Ka.cpp:1:2:\x1b[m\x1b[K \x1b[01;31m\x1b[Kerror: \x1b[m\x1b[Kx", "a.cpp:1:2: error: x"),
        ("[91mmake[1]: *** [all] Error 2", "make[1]: *** [all] Error 2"),
        ("Receiving objects: 10%\rReceiving objects: 100%, done.\r", "Receiving objects: 100%, done."),
        ("a.cpp:3:5: Fehler: »x« wurde nicht definiert", "a.cpp:3:5: error: 'x' wurde nicht definiert"),
        ("a.cpp:2:10: schwerwiegender Fehler: x.h: Datei oder Verzeichnis nicht gefunden",
         "a.cpp:2:10: fatal error: x.h: No such file or directory"),
        ("x:1:9: 致命错误：a.h：没有那个文件或目录", "x:1:9: fatal error: a.h：No such file or directory"),
        ("a.cpp:2:1: 警告：unused", "a.cpp:2:1: warning: unused"),
        ("a.cpp:1:2: Fehler: »x« wurde in diesem Gültigkeitsbereich nicht definiert",
         "a.cpp:1:2: error: 'x' was not declared in this scope"),
        ("bash: nvcc: Kommando nicht gefunden.", "bash: nvcc: command not found"),
        ("a.cpp:(.text+0x5): referencia a `ncclSend' sin definir",
         "a.cpp:(.text+0x5): undefined reference to `ncclSend'"),
        ("a.cpp:(.text+0x5)\xa0: définitions multiples de «\xa0q()\xa0»;",
         "a.cpp:(.text+0x5)\xa0: multiple definition of `q()';"),
        ("cc1plus: erreur: valeur «\xa0zork\xa0» erronée pour l'option «\xa0-march=\xa0»",
         "cc1plus: error: bad value 'zork' for '-march=' switch"),
        ("g++: Fehler: unbekannte Kommandozeilenoption »-fzork«",
         "g++: error: unrecognized command-line option '-fzork'"),
        ("Erreur fatale: ne peut créer /proc/a.o: Permission non accordée",
         "fatal error: can't create /proc/a.o: Permission denied"),
        (" │ │ CMake Error at CMakeLists.txt:3 (project):", "CMake Error at CMakeLists.txt:3 (project):"),
        ('{"log":"a.cpp:1: error: x\\n","stream":"stderr"}', "a.cpp:1: error: x"),
        ("INFO:builder:-- Configuring incomplete", "-- Configuring incomplete"),
        ('{"no": "json', '{"no": "json'),
        ("/usr/bin/ld : ne peut pas trouver -lcudart : x", "/usr/bin/ld: cannot find -lcudart : x"),
        ("/usr/bin/ld: -lcudart が見つかりません", "/usr/bin/ld: cannot find -lcudart が見つかりません"),
        ("| ModuleNotFoundError: No module named 'yaml'", "ModuleNotFoundError: No module named 'yaml'"),
        ("      |     ^~~~", "      |     ^~~~"),
        ("a.cpp:1:2: [01;31m[Kfatal error: [m[Kx.h", "a.cpp:1:2: fatal error: x.h"),
        ("error: parameter packs not expa" + " " * 60 + "nded with", "error: parameter packs not expanded with"),
        ("make: *** Aucune règle pour fabriquer la cible « a.h ». Arrêt.", "make: *** No rule to make target 'a.h'. Arrêt."),
        ("'cl' n'est pas reconnu en tant que commande interne",
         "'cl' is not recognized as an internal or external command interne"),
        ('Der Befehl "ninja" ist entweder falsch geschrieben oder',
         "'ninja' is not recognized as an internal or external command oder"),
        ("'nvcc' 不是内部或外部命令，也不是", "'nvcc' is not recognized as an internal or external command，也不是"),
    ],
)  # fmt: skip
def test_what_was_said(line: str, said: str) -> None:
    assert clean(line) == said


def test_a_line_without_end_is_cut() -> None:
    assert len(clean("x" * 10 * WIDTH)) == WIDTH


CODE_PAGES = {
    "cp936": "LINK : fatal error LNK1104: 无法打开文件“python38.lib”",
    "cp932": "LINK : fatal error LNK1104: ファイル 'python38.lib' を開くことができません。",
    "cp949": "LINK : fatal error LNK1104: 'python38.lib' 파일을 열 수 없습니다.",
    "cp950": "LINK : fatal error LNK1104: 無法開啟檔案 'python38.lib'",
    "cp1252": 'LINK : fatal error LNK1104: Datei "python38.lib" kann nicht geöffnet werden.',
    "cp850": 'LINK : fatal error LNK1104: Datei "python38.lib" kann nicht geöffnet werden.',
    "cp850 ": "Échec de la génération.",
    "cp1251": 'LINK : fatal error LNK1104: не удается открыть файл "python38.lib"',
    "cp866": 'LINK : fatal error LNK1104: не удается открыть файл "python38.lib"',
}


@each_case(("name", "line"), CODE_PAGES.items())
def test_the_code_page_of_a_line_is_guessed(name: str, line: str) -> None:
    assert guess_code_page(line.encode(name.strip())) == name.strip()
    assert Decoder()(line.encode(name)) == line


def test_utf_8_is_never_guessed_at() -> None:
    decode = Decoder()
    for line in CODE_PAGES.values():
        assert decode(line.encode()) == line


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_a_log_of_two_bytes_a_character(encoding: str) -> None:
    data = "one\r\nFAILED: ü.o\r\n".encode(encoding)
    assert wide_encoding(data) in ("utf-16", encoding)
    chunks = [data[:7], data[7:9], data[9:]]
    assert b"".join(recoded(data, chunks)).decode("utf-8-sig") == "one\r\nFAILED: ü.o\r\n"


@pytest.mark.parametrize("data", [b"plain\n", "ä€\n".encode(), b"\xef\xbb\xbfone\n", b"\xc4\xe3\n", b""])
def test_other_logs_stay_as_they_are(data: bytes) -> None:
    assert wide_encoding(data) is None
    assert b"".join(recoded(data, [data])) == data
    assert not is_binary(data)


def test_a_program_is_no_log() -> None:
    assert is_binary(b"\x7fELF\x02\x01\x01" + bytes(range(256)) * 4)
    assert not is_binary("FAILED: a.o\n".encode("utf-16"))
    assert not is_binary(b"\x1b[31mred\x1b[0m\n")
