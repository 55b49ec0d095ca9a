"""What was meant by a word that no verb takes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.for_each import each_case
from torchbuild_tasks.errors import UsageError
from torchbuild_tasks.fronts.parsing import parse, unknown_verb


def said(words: list[str], verb: str = "plan") -> str:
    """Return what a refusal says and advises."""
    with pytest.raises(UsageError) as caught:
        parse(verb, words)
    return f"{caught.value.what}\n{caught.value.next_step}"


@each_case(
    ("words", "said_of_it"),
    [
        (["--source", 'C:\\my pt" --jobs 4'], 'out: --source "C:\\my pt" --jobs 4'),
        (["--source", 'C:\\my pt"'], 'out: --source "C:\\my pt"'),
        (["--source", 'D:" --jobs 4'], "out: --source D:\\ --jobs 4"),
        (["--source", '"C:\\pt"'], "out: --source C:\\pt"),
        (["--source='C:\\pt'"], "out: --source C:\\pt"),
        (["--source", "'C:\\my", "pt'"], 'quotes: --source "C:\\my ..."'),
    ],
)
def test_quotes_that_windows_shells_leave_in_a_path(words: list[str], said_of_it: str) -> None:
    assert said_of_it in said(words)


def test_quotes_of_a_word_and_of_a_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert said(["'C:\\x y'"], "diagnose").startswith("LOG 'C:\\x y': ")
    monkeypatch.setenv("TORCHBUILD_SOURCE", '"C:\\x y"')
    assert 'in cmd: set "TORCHBUILD_SOURCE=C:\\x y"' in said([])
    monkeypatch.delenv("TORCHBUILD_SOURCE")
    (tmp_path / "'it's'").mkdir()
    for source in (str(tmp_path / "'it's'"), "it's", "/pt's"):
        assert parse("plan", ["--source", source]).source == source
    monkeypatch.chdir(tmp_path)
    assert parse("plan", ["--source", "'it's'"]).source == "'it's'"


@each_case(
    ("words", "instead"),
    [
        (["-DUSE_CUDA=0"], "--set USE_CUDA=0"),
        (["-DUSE_CUDA:BOOL=OFF"], "--set USE_CUDA=OFF"),
        (["-D", "USE_CUDA=0"], "--set USE_CUDA=0"),
        (["-DBUILD_TEST"], "--set BUILD_TEST=1"),
        (["--USE_CUDA=0"], "--set USE_CUDA=0"),
        (["--USE_CUDA", "0"], "--set USE_CUDA=0"),
        (["-USE_NCCL=OFF"], "--set USE_NCCL=OFF"),
        (["USE_CUDA=0"], "--set USE_CUDA=0"),
        (["--set", "USE_CUDA", "=", "0"], "--set USE_CUDA=0"),
        (["--set", "-DUSE_CUDA=0"], "--set USE_CUDA=0"),
        (["--set", "USE_CUDA", "=0"], "--set USE_CUDA=0"),
        (["--set", "USE_CUDA=", "0"], "--set USE_CUDA=0"),
        (["--set", "USE_NCCL=0", "--set", "MAX_JOBS", "4"], "--set MAX_JOBS=4"),
        (["CXX=g++-12"], "--set CXX=g++-12"),
        (["--use-distributed=0"], "--set USE_DISTRIBUTED=0"),
        (["--no-distributed"], "--set USE_DISTRIBUTED=0"),
        (["--without-nccl"], "--set USE_NCCL=0"),
        (["--disable-kineto"], "--set USE_KINETO=0"),
        (["--with-mkldnn"], "--set USE_MKLDNN=1"),
        (["--build-test"], "--set BUILD_TEST=1"),
        (["-DCMAKE_CXX_FLAGS=-O2 -g"], '--set "CMAKE_CXX_FLAGS=-O2 -g"'),
    ],
)
def test_a_switch_of_the_build_is_given_with_set(words: list[str], instead: str) -> None:
    text = said(words)
    assert text.endswith(f"Write: {instead}")
    assert "did you mean" not in text


@each_case(
    ("word", "instead"),
    [
        ("--no-cuda", "--cpu"),
        ("--without-cuda", "--cpu"),
        ("--disable-cuda", "--cpu"),
        ("--cpu-only", "--cpu"),
        ("--no-gpu", "--cpu"),
        ("--no-cpu", "--cuda"),
        ("--gpu", "--cuda"),
        ("--with-cuda", "--cuda"),
        ("--enable-cuda", "--cuda"),
        ("--use_cuda", "--cuda"),
        ("--cpus=8", "--jobs 8"),
        ("--cuda-version=12.6", "--cuda-toolkit 12.6"),
        ("--cuda-arch=8.6", "--arch 8.6"),
        ("--debug", "--build-type Debug"),
        ("--no-cache", "--cache none"),
        ("--ccache", "--cache ccache"),
        ("--no-jobserver", "--jobserver off"),
        ("--venv=x", "--python x"),
        ("--tag=v2.6.0", "--torch v2.6.0"),
        ("--generator=Ninja", "--set CMAKE_GENERATOR=Ninja"),
        ("--cxx=g++-12", "--set CXX=g++-12"),
        ("--cc", "--set CC=NAME"),
        ("--march=native", "--set CXXFLAGS=-march=native"),
        ("--no-tests", "--set BUILD_TEST=0"),
        ("--asan", "--set USE_ASAN=1"),
        ("--no-sccache", "--cache none"),
        ("--cuda=12.4", "--cuda --cuda-toolkit 12.4"),
        ("12.4", "--cuda-toolkit 12.4"),
        ("2.6.0", "--torch 2.6.0"),
    ],
)
def test_another_tools_flag_is_answered_by_ours(word: str, instead: str) -> None:
    assert said([word]).endswith(f"Write: {instead}")


@each_case(
    ("word", "says"),
    [
        ("--online", "Leave out --offline"),
        ("--no-clean", "Leave out --clean"),
        ("--no-offline", "Leave out --offline"),
        ("--preflight", "done unless --no-preflight is given"),
        ("--rocm", "not supported"),
        ("--xpu", "not supported"),
        ("--use-mps", "not supported"),
    ],
)
def test_a_near_flag_is_not_one_that_means_the_contrary(word: str, says: str) -> None:
    text = said([word])
    assert says in text and "did you mean" not in text


def test_a_verb_without_switches_does_not_send_to_set() -> None:
    assert "--set" not in said(["-DUSE_CUDA=0"], "clean")


@each_case(
    ("words", "says"),
    [
        (["\u2013cuda"], "Write it as: --cuda"),
        (["\u2014cuda"], "Write it as: --cuda"),
        (["\u2013\u2013cuda"], "Write it as: --cuda"),
        (["\u2212j", "4"], "Write it as: -j"),
        (["-\u2013cuda"], "Write it as: --cuda"),
        (["\u2013jobs=4"], "Write it as: --jobs=4"),
        (["\u2013cudda"], "Write it as: --cudda"),
        (["--cuda\u00a0--offline"], "Write it as: --cuda --offline"),
        (["--cuda\u200b"], "Write it as: --cuda"),
        (["--preset", "\u201cdev\u201d"], "straight"),
        (["--set", "CXXFLAGS=\u2018-O2\u2019"], "straight"),
    ],
)
def test_letters_of_print_are_named(words: list[str], says: str) -> None:
    text = said(words)
    assert "U+" in text and says in text


def test_a_dash_of_print_before_the_verb() -> None:
    assert unknown_verb("\u2013version", ["plan"]).next_step == "Write it as: --version"


def test_a_log_may_begin_with_a_dash_of_print() -> None:
    assert parse("diagnose", ["\u2013my.log"]).log == "\u2013my.log"  # type: ignore[attr-defined]


@each_case("word", ["--größe", "--lto", "--cudnn", "--prefix", "--nproc-per-node", "--tap"])
def test_a_word_of_another_tool_is_no_slip_of_a_flag(word: str) -> None:
    assert "did you mean" not in said([word])


@each_case(
    ("word", "flag"), [("--verbos", "--verbose"), ("--job", "--jobs"), ("--build_typ", "--build-type")]
)
def test_a_slip_is(word: str, flag: str) -> None:
    assert f"did you mean {flag}?" in said([word])
