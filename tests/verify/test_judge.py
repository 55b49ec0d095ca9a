from __future__ import annotations

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from tests.support.for_each import each_case
from torchbuild_tasks.model import Expectation
from torchbuild_tasks.model.record import CheckResult, Outcome
from torchbuild_tasks.verify.judge import Observed, Seen, judge, means_same


def observed(
    check: str,
    values: Mapping[str, str] | None = None,
    *,
    outcome: Outcome = "passed",
    detail: str = "said",
    real: Mapping[str, str] | None = None,
) -> Observed:
    return Observed(
        checks={check: Seen(outcome=outcome, detail=detail, values=values or {})}, real=real or {}
    )


def one(expectation: Expectation, seen: Observed) -> CheckResult:
    (row,) = judge((expectation,), seen)
    return row


# ---------------------------------------------------------------- a check as a whole


@each_case("outcome", ["passed", "failed", "not possible"])
def test_without_a_key_the_row_is_the_result_of_the_check(outcome: Outcome) -> None:
    row = one(Expectation(check="matmul"), observed("matmul", outcome=outcome, detail="off by 2e-06"))
    assert row == CheckResult(check="matmul", outcome=outcome, detail="off by 2e-06")


def test_a_failed_row_says_why_it_was_wanted() -> None:
    expectation = Expectation(check="linalg", because="solvers need LAPACK")
    row = one(expectation, observed("linalg", outcome="failed", detail="no LAPACK"))
    assert row.detail == "no LAPACK (wanted because solvers need LAPACK)"


def test_a_skip_replaces_whatever_was_seen() -> None:
    expectation = Expectation(check="linalg", skip="the sample has no torch.linalg")
    row = one(expectation, observed("linalg", outcome="failed", detail="no attribute"))
    assert row == CheckResult(check="linalg", outcome="not possible", detail="the sample has no torch.linalg")


def test_the_rows_keep_the_order_of_the_expectations() -> None:
    names = ("numpy", "conv", "import", "conv")
    rows = judge([Expectation(check=name) for name in names], observed("conv"))
    assert tuple(row.check for row in rows) == names
    assert [row.outcome for row in rows] == ["not possible", "passed", "not possible", "passed"]


@each_case(("check", "key"), [("conv", ""), ("config", "USE_OPENMP")])
def test_after_a_failed_import_the_rest_is_not_possible(check: str, key: str) -> None:
    row = one(Expectation(check=check, key=key, wanted="1"), observed("import", outcome="failed"))
    assert (row.outcome, row.detail) == ("not possible", "torch could not be imported")


def test_a_check_that_the_probe_does_not_know_has_not_passed() -> None:
    row = one(Expectation(check="teleport"), observed("import"))
    assert (row.outcome, row.detail) == ("not possible", "the probe did not report this check")


# ---------------------------------------------------------------- a part of what a check says


def test_a_part_that_agrees() -> None:
    row = one(
        Expectation(check="config", key="USE_OPENMP", wanted="1"), observed("config", {"USE_OPENMP": "ON"})
    )
    assert row == CheckResult(check="config: USE_OPENMP", outcome="passed", detail="ON")


def test_a_part_that_differs_says_seen_wanted_and_why() -> None:
    expectation = Expectation(check="config", key="BUILD_TYPE", wanted="Debug", because="--build-type Debug")
    row = one(expectation, observed("config", {"BUILD_TYPE": "Release"}))
    assert row.outcome == "failed"
    assert row.detail == "Release, wanted Debug (wanted because --build-type Debug)"


def test_a_part_that_torch_does_not_say() -> None:
    row = one(Expectation(check="config", key="USE_XCCL", wanted="0"), observed("config"))
    assert (row.outcome, row.detail) == ("not possible", "this torch does not say USE_XCCL, wanted 0")


def test_a_part_of_a_check_that_failed_points_to_the_failure() -> None:
    seen = observed(
        "config", outcome="failed", detail="AttributeError: no __config__\n  at torch/__init__.py:1"
    )
    row = one(Expectation(check="config", key="USE_MPI", wanted="0"), seen)
    assert (row.outcome, row.detail) == ("not possible", "config failed: AttributeError: no __config__")


def test_a_part_known_from_a_check_that_could_not_be_made() -> None:
    seen = observed("numpy", {"built_with": "OFF"}, outcome="not possible")
    assert one(Expectation(check="numpy", key="built_with", wanted="1"), seen).outcome == "failed"


# ---------------------------------------------------------------- lists and series


@each_case(
    ("value", "wanted", "outcome", "detail"),
    [
        ("sm_80 sm_90 compute_90", "compute_90 sm_80 sm_90", "passed", "sm_80 sm_90 compute_90"),
        ("sm_80", "sm_80 sm_80", "passed", "sm_80"),
        ("sm_80", "sm_80 compute_80", "failed", "sm_80, wanted sm_80 compute_80; without compute_80"),
        ("sm_80 sm_86", "sm_80", "failed", "sm_80 sm_86, wanted sm_80; with sm_86"),
        ("sm_90", "sm_90a", "failed", "sm_90, wanted sm_90a; without sm_90a; with sm_90"),
        ("", "sm_75", "failed", "nothing, wanted sm_75; without sm_75"),
    ],
)
def test_architectures_are_a_set(value: str, wanted: str, outcome: Outcome, detail: str) -> None:
    seen = observed("cuda_arch_list", {"arch_list": value}, outcome="not possible")
    row = one(Expectation(check="cuda_arch_list", key="arch_list", wanted=wanted), seen)
    assert row == CheckResult(check="cuda_arch_list: arch_list", outcome=outcome, detail=detail)


@each_case(
    ("value", "wanted", "outcome"),
    [
        ("13.0", "13.0", "passed"),
        ("10.0.130", "10.0", "passed"),
        ("12.1", "12.10", "failed"),
        ("12", "12.0", "failed"),
        ("12.8", "13.0", "failed"),
        ("None", "13.0", "failed"),
    ],
)
def test_the_cuda_of_torch_begins_as_the_planned_one(value: str, wanted: str, outcome: Outcome) -> None:
    row = one(Expectation(check="import", key="cuda", wanted=wanted), observed("import", {"cuda": value}))
    assert row.outcome == outcome


# ---------------------------------------------------------------- where torch lies


@each_case(
    ("file", "folder", "outcome"),
    [
        ("/home/ci/pytorch/torch/__init__.py", "/home/ci/pytorch", "passed"),
        ("/home/ci/pytorch-old/torch/__init__.py", "/home/ci/pytorch", "failed"),
        ("/venv/lib/torch/__init__.py", "/home/ci/pytorch", "failed"),
        ("/home/ci/PyTorch/torch/__init__.py", "/home/ci/pytorch", "failed"),
        (r"C:\Home\CI\PyTorch\torch\__init__.py", "c:/home/ci/pytorch", "passed"),
        (r"C:\Work\other\torch\__init__.py", r"C:\Home\CI\PyTorch", "failed"),
        (r"C:\src\pytorch-old\torch\__init__.py", r"C:\src\pytorch", "failed"),
        (r"\\server\Share\pytorch\torch\__init__.py", r"\\SERVER\share/pytorch", "passed"),
        (r"C:\src\torch\__init__.py", r"D:\src", "failed"),
        ("/home/a\\b/torch/__init__.py", "/home/A\\B", "failed"),
        ("/home/ci/pytorch/torch/__init__.py", "", "failed"),
    ],
)
def test_inside_asks_for_the_folder(file: str, folder: str, outcome: Outcome) -> None:
    row = one(Expectation(check="import", key="inside", wanted=folder), observed("import", {"file": file}))
    assert (row.check, row.outcome) == ("import: inside", outcome)


def test_what_leads_to_another_torch_is_named() -> None:
    """A line that another checkout left in a Python that both share."""
    seen = observed("import", {"file": "/other/torch/__init__.py", "led_by": "/venv/lib/old.pth"})
    row = one(Expectation(check="import", key="inside", wanted="/src"), seen)
    assert "/venv/lib/old.pth names its folder: take that out" in row.detail


def test_inside_follows_links_on_both_sides() -> None:
    real = {"/home/me/pytorch": "/data/pytorch", "/venv/torch/__init__.py": "/data/pytorch/torch/__init__.py"}
    seen = observed("import", {"file": "/venv/torch/__init__.py"}, real=real)
    assert one(Expectation(check="import", key="inside", wanted="/home/me/pytorch"), seen).outcome == "passed"


def test_the_compiled_half_is_requested_by_itself() -> None:
    seen = observed("import", {"file": "/src/torch/__init__.py", "extension": "/old/torch/_C.so"})
    row = one(Expectation(check="import", key="extension_inside", wanted="/src"), seen)
    assert (row.outcome, row.detail) == ("failed", "/old/torch/_C.so, wanted it inside /src")


# ---------------------------------------------------------------- when two texts mean the same

YES = ("1", "ON", "On", "TRUE", "True", "yes", "enabled")
NO = ("0", "OFF", "Off", "FALSE", "False", "None", "no", "disabled", "")


@given(st.sampled_from(YES), st.sampled_from(YES), st.sampled_from(NO), st.sampled_from(NO))
def test_switches_agree_by_meaning(yes: str, also_yes: str, no: str, also_no: str) -> None:
    assert means_same(yes, also_yes)
    assert means_same(no, also_no)
    assert not means_same(yes, no)
    assert not means_same(no, yes)


@each_case(
    ("value", "wanted", "agree"),
    [
        ("2.13.0+cpu", "2.13.0", True),
        ("2.13.0", "2.13", True),
        ("2.13.0a0+gitcf30153", "2.13.0a0", True),
        ("2.13.0a0+gitcf30153", "2.13.0", False),
        ("2.13.0+cpu", "2.13.0+cu126", False),
        ("2.13.0", "2.13.0+cpu", False),
        ("2.13.0.post2", "2.13.0", False),
        ("12.4", "12.4.0", True),
        ("GCC 13.3", "GCC 13", False),
        ("mkl", "MKL", True),
        ("201703", "1", False),
        ("Release", "", False),
    ],
)
def test_versions_and_other_texts(value: str, wanted: str, agree: bool) -> None:
    assert means_same(value, wanted) is agree


def test_a_linked_compiler_is_the_same_compiler() -> None:
    real = {"/usr/bin/c++": "/usr/bin/g++-13", "/usr/bin/g++": "/usr/bin/g++-13"}
    assert means_same("/usr/bin/c++", "/usr/bin/g++", real)
    assert not means_same("/usr/bin/c++", "/usr/bin/g++")


def test_windows_takes_no_notice_of_case_and_slashes() -> None:
    cl, same_cl = r"C:\VS\bin\cl.exe", "c:/vs/BIN/CL.exe"
    assert means_same(cl, same_cl, {cl: cl, same_cl: same_cl})
    assert not means_same("/opt/CC", "/opt/Cc/", {"/opt/CC": "/opt/CC", "/opt/Cc/": "/opt/Cc"})


@given(st.text())
def test_every_text_means_the_same_as_itself(text: str) -> None:
    assert means_same(text, text)


PARTS = st.sampled_from(["", "version", "inside", "USE_MPI"])
CHECKS = st.sampled_from(["import", "config", "conv"])
OUTCOMES: st.SearchStrategy[Outcome] = st.sampled_from(["passed", "failed", "not possible"])
TEXTS = st.text(max_size=8)


@given(
    st.lists(st.builds(Expectation, check=CHECKS, key=PARTS, wanted=TEXTS, because=TEXTS, skip=TEXTS)),
    st.dictionaries(
        CHECKS, st.builds(Seen, outcome=OUTCOMES, detail=TEXTS, values=st.dictionaries(PARTS, TEXTS))
    ),
)
def test_nothing_passes_unless_the_probe_saw_it(
    expectations: list[Expectation], checks: dict[str, Seen]
) -> None:
    rows = judge(expectations, Observed(checks=checks))
    assert len(rows) == len(expectations)
    for expectation, row in zip(expectations, rows, strict=True):
        if expectation.skip or expectation.check not in checks:
            assert row.outcome == "not possible"
        elif not expectation.key:
            assert row.outcome == checks[expectation.check].outcome
