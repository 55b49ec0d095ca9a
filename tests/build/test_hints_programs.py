"""What a program does, by its name on either system."""

from __future__ import annotations

from tests.support.for_each import each_case
from torchbuild_tasks.build.hints import program_kind


@each_case(
    ("name", "kind"),
    [
        ("cc1plus", "C++"),
        ("clang-14", "C++"),
        ("clang++", "C++"),
        ("cl.exe", "C++"),
        ("CL.EXE", "C++"),
        ("cc1", "C"),
        ("cicc", "CUDA"),
        ("cudafe++.exe", "CUDA"),
        ("ld", "link"),
        ("ld.gold", "link"),
        ("ld.lld", "link"),
        ("mold", "link"),
        ("link.exe", "link"),
        ("lld-link.exe", "link"),
        ("python3.11", "Python"),
        ("sh", ""),
        ("cmake", ""),
        ("clangd", ""),
        ("", ""),
    ],
)
def test_kinds(name: str, kind: str) -> None:
    assert program_kind(name) == kind
