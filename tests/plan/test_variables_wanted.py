"""The first question, before facts about CUDA are gathered: does anything name it?"""

from __future__ import annotations

from typing import Any

import pytest

from torchbuild_tasks.catalog import load_catalog
from torchbuild_tasks.options import BuildRequest
from torchbuild_tasks.plan.settings import Settings
from torchbuild_tasks.plan.variables import may_be_cuda


@pytest.mark.parametrize(
    ("flags", "settings", "environ"),
    [
        ({"cuda": True}, {}, {}),
        ({"arch": "8.6"}, {}, {}),
        ({"set": ("USE_CUDA=ON",)}, {}, {}),
        ({}, {"values": {"cuda": True}}, {}),
        ({}, {"values": {"cuda_toolkit": "13.0"}}, {}),
        ({}, {"variables": {"USE_CUDA": "1"}}, {}),
        ({}, {}, {"USE_CUDA": "1"}),
    ],
)
def test_who_speaks_of_cuda_is_heard(
    flags: dict[str, Any], settings: dict[str, Any], environ: dict[str, str]
) -> None:
    assert may_be_cuda(BuildRequest(**flags), Settings(**settings), environ, load_catalog())


def test_a_cpu_build_speaks_of_none() -> None:
    request = BuildRequest(set=("BUILD_TEST=1",))
    assert not may_be_cuda(request, Settings(), {"CUDA_HOME": "/usr/local/cuda"}, load_catalog())
