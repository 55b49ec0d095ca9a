from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.facts.fakes import CLANG, GCC, FakeProbe, link, machine, windows_machine, write
from tests.facts.windows_11 import cl, windows_11
from tests.support.capabilities import needs_symlinks, skip_without
from torchbuild_tasks.facts.compilers import look_for_compilers
from torchbuild_tasks.facts.probe import Output, Probe
from torchbuild_tasks.facts.windows import look_at_windows
from torchbuild_tasks.model import Tool, Windows

DEBIAN = {
    "/usr/bin/x86_64-linux-gnu-g++-12": GCC.format(name="g++"),
    "/usr/bin/x86_64-linux-gnu-gcc-12": GCC.format(name="gcc"),
}


def debian(root: Path, programs: dict[str, str | Output | None] | None = None, **environ: str) -> FakeProbe:
    """Debian's compilers: everything is a link to one of two programs."""
    door = machine(root, programs={**DEBIAN, **(programs or {})}, environ=environ)
    for short in ("g++", "gcc"):
        link(root, f"/usr/bin/{short}-12", f"x86_64-linux-gnu-{short}-12")
        link(root, f"/usr/bin/{short}", f"{short}-12")
    link(root, "/usr/bin/c++", "g++")
    link(root, "/usr/bin/cc", "gcc")
    # A table of answers knows a program by one name; the kernel knows it by all its links.
    for name in ("g++", "g++-12", "c++", "gcc", "gcc-12", "cc"):
        real = door.realpath(f"/usr/bin/{name}")
        door.outputs[f"/usr/bin/{name}"] = door.outputs[real]
    return door


def brief(tools: tuple[Tool, ...]) -> list[tuple[str, str | None, str | None, str | None]]:
    return [(tool.name, tool.path, tool.version, tool.found_via) for tool in tools]


@needs_symlinks
def test_links_to_one_compiler_are_one_compiler(tmp_path: Path) -> None:
    assert brief(look_for_compilers(debian(tmp_path))) == [
        ("g++", "/usr/bin/g++", "12.2.0", "PATH"),
        ("gcc", "/usr/bin/gcc", "12.2.0", "PATH"),
    ]


@needs_symlinks
def test_the_other_names_of_a_compiler_are_kept(tmp_path: Path) -> None:
    cxx, cc = look_for_compilers(debian(tmp_path, CC="gcc-12"))[::-1]
    assert cxx.aliases == ("/usr/bin/c++", "/usr/bin/g++-12")
    assert (cc.path, cc.aliases) == ("/usr/bin/gcc-12", ("/usr/bin/gcc", "/usr/bin/cc"))


@needs_symlinks
def test_the_same_folder_twice_on_path_changes_nothing(tmp_path: Path) -> None:
    door = debian(tmp_path, PATH="/usr/bin:/bin:/usr/bin")
    link(tmp_path, "/bin", "usr/bin")
    assert len(look_for_compilers(door)) == 2


@needs_symlinks
def test_one_question_for_each_compiler(tmp_path: Path) -> None:
    door = debian(tmp_path)
    look_for_compilers(door)
    assert sorted(door.asked) == ["/usr/bin/g++ --version", "/usr/bin/gcc --version"]


@needs_symlinks
def test_cxx_of_the_environment_comes_first_and_is_called_by_its_family(tmp_path: Path) -> None:
    tools = look_for_compilers(debian(tmp_path, CXX="c++", CC="/usr/bin/gcc-12"))
    assert brief(tools) == [
        ("g++", "/usr/bin/c++", "12.2.0", "environment CXX"),
        ("gcc", "/usr/bin/gcc-12", "12.2.0", "environment CC"),
    ]


@needs_symlinks
@pytest.mark.parametrize(
    ("value", "via"),
    [
        ("ccache gcc", "environment CC through ccache"),
        ("/usr/bin/ccache gcc -m64", "environment CC through ccache with -m64"),
        ("gcc -B '/my dir'", "environment CC with -B '/my dir'"),
        ("ccache distcc gcc", "environment CC through ccache through distcc"),
        ("  gcc ", "environment CC"),
    ],
)
def test_a_launcher_and_options_are_distinguished_from_the_compiler(
    tmp_path: Path, value: str, via: str
) -> None:
    door = debian(tmp_path, {"/usr/bin/ccache": "ccache version 4.7.5"}, CC=value)
    assert brief(look_for_compilers(door))[0] == ("gcc", "/usr/bin/gcc", "12.2.0", via)


@needs_symlinks
def test_a_path_with_a_blank_is_one_word(tmp_path: Path) -> None:
    door = debian(tmp_path, {"/my tools/g++": GCC.format(name="g++")}, CXX="/my tools/g++")
    assert brief(look_for_compilers(door))[0] == ("g++", "/my tools/g++", "12.2.0", "environment CXX")


@needs_symlinks
def test_an_open_quote_is_no_crash(tmp_path: Path) -> None:
    first = look_for_compilers(debian(tmp_path, CXX='g++ -DX="'))[0]
    assert (first.path, first.version) == ("/usr/bin/g++", "12.2.0")


@needs_symlinks
@pytest.mark.parametrize("value", ["", "   ", "ccache"])
def test_a_variable_without_a_compiler_names_none(tmp_path: Path, value: str) -> None:
    tools = look_for_compilers(debian(tmp_path, CXX=value))
    assert [tool.found_via for tool in tools] == ["PATH", "PATH"]


@needs_symlinks
def test_a_variable_that_names_nothing_is_a_miss_of_its_own(tmp_path: Path) -> None:
    tools = look_for_compilers(debian(tmp_path, CXX="/opt/none/clang++", CC="gcc-99"))
    assert tools[:2] == (
        Tool(name="clang++", found_via="environment CXX", looked=("/opt/none/clang++",)),
        Tool(name="gcc", found_via="environment CC", looked=("/usr/bin",)),
    )
    assert [tool.path for tool in tools[2:]] == ["/usr/bin/g++", "/usr/bin/gcc"]


@needs_symlinks
def test_the_host_compiler_of_nvcc_that_is_not_there_is_a_miss(tmp_path: Path) -> None:
    missing = look_for_compilers(debian(tmp_path, CUDAHOSTCXX="/opt/none/g++-10"))[0]
    assert (missing.path, missing.found_via) == (None, "environment CUDAHOSTCXX")


@needs_symlinks
def test_the_host_compiler_of_nvcc_comes_last(tmp_path: Path) -> None:
    own: dict[str, str | Output | None] = {"/opt/gcc/bin/g++": GCC}
    tools = look_for_compilers(debian(tmp_path, own, CUDAHOSTCXX="/opt/gcc/bin/g++"))
    assert [tool.path for tool in tools] == ["/usr/bin/g++", "/usr/bin/gcc", "/opt/gcc/bin/g++"]


@needs_symlinks
def test_a_folder_may_be_the_host_compiler_of_nvcc(tmp_path: Path) -> None:
    assert not [
        tool for tool in look_for_compilers(debian(tmp_path, CUDAHOSTCXX="/usr/bin")) if not tool.path
    ]


@needs_symlinks
def test_a_gcc_of_a_software_collection_is_found_newest_first(tmp_path: Path) -> None:
    wanted = [f"/opt/rh/gcc-toolset-{n}/root/usr/bin/g++" for n in (12, 9)]
    tools = look_for_compilers(debian(tmp_path, dict.fromkeys(wanted, GCC)))
    assert [tool.path for tool in tools[2:]] == wanted


@needs_symlinks
def test_a_c_driver_in_cxx_is_named_for_what_it_is(tmp_path: Path) -> None:
    assert brief(look_for_compilers(debian(tmp_path, CXX="gcc")))[0][:2] == ("gcc", "/usr/bin/gcc")


@needs_symlinks
def test_numbered_compilers_come_after_plain_ones_newest_first(tmp_path: Path) -> None:
    others: dict[str, str | Output | None] = {
        f"/opt/bin/g++-{number}": f"g++-{number} (x) {number}.1.0\nFree Software Foundation"
        for number in ("9", "13", "10")
    }
    others["/opt/bin/gcc-ar-13"] = others["/opt/bin/g++-x"] = "not a compiler"
    tools = look_for_compilers(debian(tmp_path, others, PATH="/usr/bin:/opt/bin"))
    assert [tool.version for tool in tools] == ["12.2.0", "12.2.0", "13.1.0", "10.1.0", "9.1.0"]


@needs_symlinks
def test_clang_is_one_program_with_two_sides(tmp_path: Path) -> None:
    door = machine(tmp_path, programs={"/usr/lib/llvm-14/bin/clang-14": CLANG})
    for name in ("clang", "clang++", "clang-14", "clang++-14"):
        link(tmp_path, f"/usr/bin/{name}", "../lib/llvm-14/bin/clang-14")
        door.outputs[f"/usr/bin/{name}"] = Output(0, CLANG)
    assert brief(look_for_compilers(door)) == [
        ("clang++", "/usr/bin/clang++", "14.0.6", "PATH"),
        ("clang", "/usr/bin/clang", "14.0.6", "PATH"),
    ]


@needs_symlinks
def test_ccache_links_are_seen_through_and_never_started(tmp_path: Path) -> None:
    door = debian(tmp_path, {"/usr/bin/ccache": None}, PATH="/usr/lib/ccache:/usr/bin")
    for name in ("g++", "c++", "g++-12", "gcc"):
        link(tmp_path, f"/usr/lib/ccache/{name}", "../../bin/ccache")
    assert brief(look_for_compilers(door)) == [
        ("g++", "/usr/lib/ccache/g++", "12.2.0", "PATH through ccache"),
        ("g++", "/usr/bin/g++", "12.2.0", "PATH"),
        ("gcc", "/usr/lib/ccache/gcc", "12.2.0", "PATH through ccache"),
        ("gcc", "/usr/bin/gcc", "12.2.0", "PATH"),
    ]
    assert not any("ccache" in command for command in door.asked)


@needs_symlinks
def test_a_ccache_link_without_a_compiler_behind_it_has_no_version(tmp_path: Path) -> None:
    door = machine(tmp_path, programs={"/usr/bin/ccache": "ccache version 4.7.5"})
    link(tmp_path, "/usr/bin/g++", "ccache")
    assert brief(look_for_compilers(door))[0] == ("g++", "/usr/bin/g++", None, "PATH through ccache")


@pytest.mark.parametrize(
    "said", [None, Output(1, "g++ 12.2.0"), Output(0, "\0\1rubbish"), Output(-9, "")], ids=str
)
def test_a_compiler_that_does_not_answer_is_there_without_a_version(
    tmp_path: Path, said: Output | None
) -> None:
    door = machine(tmp_path, programs={"/usr/bin/g++": said, "/usr/bin/cc": GCC.format(name="cc")})
    tools = {tool.path: tool for tool in look_for_compilers(door)}
    assert tools["/usr/bin/g++"].version is None
    assert tools["/usr/bin/cc"].version == "12.2.0"
    assert tools["/usr/bin/cc"].name == "gcc"


def test_gcc_without_a_version_in_its_first_lines_is_queried_the_other_way(tmp_path: Path) -> None:
    door = machine(tmp_path, programs={"/usr/bin/g++": "wrapped g++, Free Software Foundation"})
    door.outputs["/usr/bin/g++ -dumpfullversion -dumpversion"] = Output(0, "13.2.1\n")
    assert look_for_compilers(door)[0].version == "13.2.1"


def test_another_maker_goes_by_its_side(tmp_path: Path) -> None:
    said = "Intel(R) oneAPI DPC++/C++ Compiler 2024.0.2 (2024.0.2.20231213)"
    door = machine(tmp_path, programs={"/opt/icpx": said}, environ={"CXX": "/opt/icpx"})
    assert brief(look_for_compilers(door))[0] == ("c++", "/opt/icpx", "2024.0.2", "environment CXX")


def test_no_compiler_at_all_says_where_we_looked(tmp_path: Path) -> None:
    tools = look_for_compilers(machine(tmp_path, environ={"PATH": "/a:/b"}))
    assert tools == (Tool(name="c++", looked=("/a", "/b")), Tool(name="cc", looked=("/a", "/b")))


def test_only_a_c_compiler_leaves_c_plus_plus_missing(tmp_path: Path) -> None:
    tools = look_for_compilers(machine(tmp_path, programs={"/usr/bin/gcc": GCC.format(name="gcc")}))
    assert [(tool.name, tool.path) for tool in tools] == [("gcc", "/usr/bin/gcc"), ("c++", None)]


@pytest.mark.integration
def test_the_real_compilers_have_versions() -> None:
    found = [tool for tool in look_for_compilers(Probe(environ=os.environ)) if tool.path]
    if not found:
        skip_without("C++ compiler")
    assert all(tool.version and tool.found_via for tool in found)


def windows(root: Path, **more: str) -> list[tuple[str, str | None, str | None, str | None]]:
    """The compilers of a Windows 11 with further variables."""
    door = windows_11(root, **more)
    return brief(look_for_compilers(door, look_at_windows(door, "C:\\none")))


def test_every_toolset_of_visual_studio_is_a_compiler_newest_first(tmp_path: Path) -> None:
    assert windows(tmp_path) == [
        ("cl", cl("14.44.35207"), "19.44.35211", "vswhere"),
        ("cl", cl("14.38.33130"), "19.38.33133", "vswhere"),
        ("cl", cl("14.29.30133"), "19.29.30154", "vswhere"),
    ]


def test_the_cl_of_an_active_shell_is_one_of_them(tmp_path: Path) -> None:
    folder = cl("14.38.33130").rpartition("\\")[0]
    found = windows(tmp_path, Path=folder, CC="cl", CXX="cl.exe")
    assert [(tool[1], tool[3]) for tool in found] == [
        (cl("14.38.33130"), "environment CXX"),
        (cl("14.44.35207"), "vswhere"),
        (cl("14.29.30133"), "vswhere"),
    ]


def test_the_clangs_and_gccs_of_windows_are_on_path(tmp_path: Path) -> None:
    clang = "clang version 19.1.0\r\nTarget: x86_64-pc-windows-msvc\r\n"
    door = windows_machine(
        tmp_path,
        programs={
            "C:\\bin\\clang-cl.exe": clang,
            "C:\\bin\\clang.exe": clang,
            "C:\\bin\\clang++.exe": clang,
            "C:\\bin\\g++.exe": "g++.exe (Rev2) 14.1.0\r\nFree Software Foundation",
            "C:\\bin\\cc.exe": "no such name on Windows",
        },
    )
    found = look_for_compilers(door, Windows(looked=("there",)))
    assert brief(found)[:4] == [
        ("clang-cl", "C:\\bin\\clang-cl.exe", "19.1.0", "PATH"),
        ("clang++", "C:\\bin\\clang++.exe", "19.1.0", "PATH"),
        ("clang", "C:\\bin\\clang.exe", "19.1.0", "PATH"),
        ("g++", "C:\\bin\\g++.exe", "14.1.0", "PATH"),
    ]
    assert found[4:] == (Tool(name="cl", looked=("there", "C:\\Windows\\system32", "C:\\bin")),)


def test_a_variable_of_windows_may_hold_blanks_quotes_and_a_launcher(tmp_path: Path) -> None:
    first = windows(tmp_path, CC=f'"C:\\x y\\sccache.exe" "{cl("14.38.33130")}" /nologo')[0]
    assert first == (
        "cl",
        cl("14.38.33130"),
        "19.38.33133",
        "environment CC through sccache with /nologo",
    )
    assert windows(tmp_path / "bare", CXX=cl("14.29.30133"))[0][3] == "environment CXX"
    missing = windows(tmp_path / "gone", CC="C:\\gone\\cl.exe", CXX="clang-cl")
    assert missing[:2] == [
        ("clang-cl", None, None, "environment CXX"),
        ("cl", None, None, "environment CC"),
    ]


@pytest.mark.parametrize(
    ("said", "version"),
    [
        (
            Output(0, "", "Microsoft (R) C/C++-Optimierungscompiler Version 19.29.30154 für x64\r\n"),
            "19.29.30154",
        ),
        (Output(2, "", "usage: cl"), None),
        (None, None),
    ],
    ids=["its first line", "no line of it", "hangs"],
)
def test_a_cl_without_a_version_resource_is_started(
    tmp_path: Path, said: Output | None, version: str | None
) -> None:
    door = windows_machine(tmp_path, programs={"C:\\bin\\cl.exe": said})
    assert look_for_compilers(door, Windows())[0].version == version


@pytest.mark.parametrize(
    ("path", "environ", "files", "loaded"),
    [
        ("/opt/gxx/bin/g++", {}, {"/opt/gxx/lib64/libstdc++.so.6": ""}, False),
        (
            "/opt/gxx/bin/g++",
            {"LD_LIBRARY_PATH": "/x:/opt/gxx/lib64"},
            {"/opt/gxx/lib64/libstdc++.so.6": ""},
            True,
        ),
        (
            "/opt/gxx/bin/g++",
            {},
            {"/opt/gxx/lib/libstdc++.so.6": "", "/etc/ld.so.conf.d/gxx.conf": "/opt/gxx/lib\n"},
            True,
        ),
        # Debian's loader looks into /usr/local/lib, and GCC installs into lib64.
        (
            "/usr/local/bin/g++",
            {},
            {"/usr/local/lib64/libstdc++.so.6": "", "/etc/ld.so.conf.d/libc.conf": "/usr/local/lib\n"},
            False,
        ),
        ("/opt/gxx/bin/g++", {}, {}, None),
        ("/usr/bin/g++", {}, {"/usr/lib64/libstdc++.so.6": ""}, None),
    ],
)
def test_whether_the_loader_finds_the_libraries_beside_a_compiler(
    tmp_path: Path, path: str, environ: dict[str, str], files: dict[str, str], loaded: bool | None
) -> None:
    programs = {path: GCC.format(name="g++")}
    door = machine(tmp_path, programs=programs, environ={"CXX": path, **environ}, files=files)
    assert look_for_compilers(door)[0].loaded is loaded


def test_a_compiler_with_a_sysroot_says_the_c_library_of_its_headers(tmp_path: Path) -> None:
    own, header = "/opt/gxx/bin/g++", "/opt/gxx/sysroot/usr/include/features.h"
    door = machine(tmp_path, programs={own: GCC.format(name="g++")}, environ={"CXX": own})
    door.outputs[f"{own} -print-sysroot"] = Output(0, "/opt/gxx/sysroot\n")
    assert look_for_compilers(door)[0].libc is None
    write(tmp_path, {header: "#define\t__GLIBC__\t2\n#define\t__GLIBC_MINOR__\t17\n"})
    assert look_for_compilers(door)[0].libc == "glibc 2.17"
