from __future__ import annotations

from tests.facts.cuda.canned import HOST_CONFIG
from tests.support.for_each import each_case
from torchbuild_tasks.facts.cuda.toolkit_folder import Limits, host_limits

# As they stand in the headers of these releases (read out of NVIDIA's wheels).
TESTS = {
    "11.7": (11, 14, 1910, 1940),
    "11.8": (11, 15, 1910, 1940),
    "12.0": (12, 15, 1910, 1940),
    "12.4": (13, 18, 1910, 1950),
    "12.9": (14, 20, 1910, 1950),
    "13.0": (15, 21, 1920, 1950),
    "13.2": (15, 22, 1920, 1960),
    "13.5": (16, 23, 1920, 1960),
}


@each_case("release", TESTS)
def test_the_limits_of_a_release(release: str) -> None:
    gcc, clang, first, below = TESTS[release]
    text = HOST_CONFIG.format(gcc=gcc, clang=clang, msc_min=first, msc_below=below)
    assert host_limits(text) == Limits(gcc, clang - 1, (first, below))
    assert host_limits(text.replace("\n", "\r\n")) == Limits(gcc, clang - 1, (first, below))


def test_clangs_of_other_makers_have_limits_of_their_own() -> None:
    text = """\
#if defined(__GRCO_CLANG_COMPILER__)
#if (__GRCO_CLANG_COMPILER__ == 1) && ((__clang_major__ < 16) || (__clang_major__ > 20))
#endif
#if defined(__HORIZON__)
#if (__clang_major__ >= 22) || (__clang_major__ < 3)
#endif
"""
    assert host_limits(text) == Limits()


def test_a_comment_is_no_limit() -> None:
    assert host_limits("#endif /* __GNUC__ > 15 */\n// #if __GNUC__ > 9\n") == Limits()


def test_a_version_that_is_refused_itself() -> None:
    assert host_limits("#if __GNUC__ >= 8\n").gcc == 7
    assert host_limits("#if defined(__clang__)\n#if __clang_major__ > 9\n").clang == 9


@each_case("text", ["", "\0", "#if __GNUC__ > x", "#if _MSC_VER < 1900"])
def test_what_says_nothing(text: str) -> None:
    assert host_limits(text) == Limits()
