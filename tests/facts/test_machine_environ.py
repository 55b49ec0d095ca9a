from __future__ import annotations

from torchbuild_tasks.facts.machine import relevant_environ

ENVIRON = {
    "USE_CUDA": "0",
    "use_cuda": "1",
    "CC": "gcc",
    "AWS_SECRET": "s",
    "XUSE_": "x",
    "USE_": "",
    "MAX_JOBS": "4",
}


def test_keeps_what_a_pattern_names_and_nothing_else() -> None:
    kept = relevant_environ(ENVIRON, ["USE_*", "CC", "MAX_J?BS"])
    assert kept == {"CC": "gcc", "MAX_JOBS": "4", "USE_": "", "USE_CUDA": "0"}
    assert list(kept) == sorted(kept)


def test_without_patterns_nothing_is_kept() -> None:
    assert relevant_environ(ENVIRON, []) == {}


def test_plain_names_match_completely() -> None:
    assert relevant_environ({"CCC": "", "CC_": "", "C": ""}, ["CC"]) == {}


def test_windows_has_no_case_and_keeps_the_spelling_of_the_pattern() -> None:
    environ = {"Use_Cuda": "0", "MKLPRODUCTDIR": "x", "cc": "cl", "PATH": "p", "LIBUV_ROOTS": "y"}
    patterns = ["USE_*", "MKLProductDir", "CC", "libuv_ROOT"]
    kept = relevant_environ(environ, patterns, ignore_case=True)
    assert kept == {"CC": "cl", "MKLProductDir": "x", "USE_CUDA": "0"}
    assert relevant_environ(environ, patterns) == {}
