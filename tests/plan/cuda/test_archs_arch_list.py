"""The grammar of TORCH_CUDA_ARCH_LIST."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.for_each import each_case
from tests.support.machines import ask
from torchbuild_tasks.plan.cuda.archs import UnknownArch, arch_list, capability, read_archs, sort_archs
from torchbuild_tasks.plan.cuda.values import Arch, Capability


@each_case(
    ("text", "meant"),
    [
        ("8.6", "8.6"),
        ("8.6;9.0+PTX", "8.6;9.0+PTX"),
        ("9.0+PTX 8.6", "8.6;9.0+PTX"),
        ("8.6, 8.0", "8.0;8.6"),
        ("9.0a;12.0f", "9.0a;12.0f"),
        ("8.6;8.6+PTX", "8.6+PTX"),
        ("9.0 10.3", "9.0;10.3"),
        (" 8.6 ; ", "8.6"),
        ("Ampere", "8.0;8.6"),
        ("Turing+PTX", "7.5+PTX"),
        ("ampere+tegra", "8.7"),
    ],
)
def test_what_a_list_means(text: str, meant: str) -> None:
    assert arch_list(read_archs(ask(), text)) == meant


@each_case(
    ("text", "says"),
    [
        ("", "empty"),
        (";", "empty"),
        ("Amper", "did you mean Ampere?"),
        ("sm_86", "write 8.6"),
        ("compute_90a", "write 9.0a"),
        ("86", "write 8.6"),
        ("9", "write 9.0"),
        ("8,6", "write 8.6"),
        ("12", "write 12.0"),
        ("sm_120a", "write 12.0a"),
        ("8.6+ptxx", "is not an architecture"),
        ("8.66", "is not an architecture"),
    ],
)
def test_what_is_none(text: str, says: str) -> None:
    with pytest.raises(UnknownArch, match=says.replace("?", r"\?")):
        read_archs(ask(), text)


def test_numbers_are_compared_as_numbers() -> None:
    assert capability("10.3") > capability("9.0") > capability("8.9")
    assert capability("10.7") < capability("12.0")


entries = st.builds(
    Arch,
    capability=st.builds(Capability, st.integers(3, 19), st.integers(0, 9), st.sampled_from(["", "a", "f"])),
    ptx=st.booleans(),
)


@given(st.lists(entries, min_size=1, max_size=8))
def test_what_is_written_is_read_back(archs: list[Arch]) -> None:
    assert read_archs(ask(), arch_list(sort_archs(archs))) == sort_archs(archs)
