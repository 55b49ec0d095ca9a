"""CMake's install scripts as CMake 3.31 writes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchbuild_tasks.build.install.rules import Rule, read_manifest, read_rules, rules_of

TOP = """\
if(CMAKE_INSTALL_COMPONENT STREQUAL "Unspecified" OR NOT CMAKE_INSTALL_COMPONENT)
  file(INSTALL DESTINATION "${{CMAKE_INSTALL_PREFIX}}/lib" TYPE SHARED_LIBRARY FILES "/b/libc10 (1).so")
  if(EXISTS "$ENV{{DESTDIR}}${{CMAKE_INSTALL_PREFIX}}/lib/libc10.so")
    file(RPATH_CHECK FILE "$ENV{{DESTDIR}}${{CMAKE_INSTALL_PREFIX}}/lib/libc10.so" RPATH "$ORIGIN")
  endif()
  file(INSTALL DESTINATION "${{CMAKE_INSTALL_PREFIX}}/include" TYPE FILE MESSAGE_NEVER FILES
    "/s/a.h"
    "/s/b \\"x\\".h"
    )
endif()
if(NOT CMAKE_INSTALL_LOCAL_ONLY)
  include("{inner}/cmake_install.cmake")
endif()
"""
INNER = """\
file(INSTALL DESTINATION "${CMAKE_INSTALL_PREFIX}/include/c10" TYPE DIRECTORY FILES
    "/s/c10/." "/b/c10/" FILES_MATCHING REGEX "/[^/]*\\\\.h$" REGEX "/CMakeFiles$" EXCLUDE)
file(INSTALL DESTINATION "/abs" TYPE FILE RENAME "y.py" PERMISSIONS OWNER_READ FILES "/s/x.py")
"""


@pytest.fixture
def scripts(tmp_path: Path) -> Path:
    inner = tmp_path / "c10"
    inner.mkdir()
    (tmp_path / "cmake_install.cmake").write_text(TOP.format(inner=inner.as_posix()), "utf-8")
    (inner / "cmake_install.cmake").write_text(INNER, "utf-8")
    return tmp_path


def test_the_rules_of_all_scripts(scripts: Path) -> None:
    prefix = "${CMAKE_INSTALL_PREFIX}"
    assert read_rules(scripts) == [
        Rule(f"{prefix}/lib", ("/b/libc10 (1).so",)),
        Rule(f"{prefix}/include", ("/s/a.h", '/s/b "x".h')),
        Rule(f"{prefix}/include/c10", ("/s/c10/.", "/b/c10/"), (r"/[^/]*\.h$",), ("/CMakeFiles$",)),
        Rule("/abs", ("/s/x.py",)),
    ]


def test_the_rules_of_one_library_are_run_alone(tmp_path: Path) -> None:
    block = """if(CMAKE_INSTALL_COMPONENT STREQUAL "Unspecified" OR NOT CMAKE_INSTALL_COMPONENT)
  file(INSTALL DESTINATION "${CMAKE_INSTALL_PREFIX}/lib" TYPE SHARED_LIBRARY FILES "/b/lib/libNAME.so")
  if(EXISTS "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/lib/libNAME.so")
    file(RPATH_CHANGE FILE "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/lib/libNAME.so" NEW_RPATH "$ORIGIN")
  endif()
endif()
"""
    blocks = [block.replace("NAME", name) for name in ("torch_cpu", "torch", "torch_cuda")]
    (tmp_path / "cmake_install.cmake").write_text("set(X 1)\n" + "\n".join(blocks), "utf-8")
    assert rules_of(tmp_path, ["/b/lib/libtorch.so"]) == blocks[1]
    assert rules_of(tmp_path, ["/b/lib/libother.so"]) == "\n"


def test_a_script_that_is_missing_is_no_empty_one(scripts: Path) -> None:
    (scripts / "c10/cmake_install.cmake").unlink()
    with pytest.raises(OSError, match=r"cmake_install\.cmake"):
        read_rules(scripts)


def test_the_manifest(tmp_path: Path) -> None:
    assert read_manifest(tmp_path) == []
    (tmp_path / "install_manifest.txt").write_text("/t/a.h\n/t/b c.so", "utf-8")
    assert read_manifest(tmp_path) == ["/t/a.h", "/t/b c.so"]
    (tmp_path / "install_manifest.txt").write_bytes(b"C:\\pt\\torch/lib/a.dll\n\\\\nas\\pt/a.h\n/t/a\\b.h")
    assert read_manifest(tmp_path) == ["C:/pt/torch/lib/a.dll", "//nas/pt/a.h", "/t/a\\b.h"]
