"""A package is named where it has the very file that lacks, and not where it has others of the same part."""

from __future__ import annotations

from tests.features.diagnosis.test_premises import read
from tests.support.for_each import each_case

_DEBIAN = "Setting up zlib1g-dev (1:1.2.13) ...\n/usr/lib/x86_64-linux-gnu\n"
_FEDORA = "/usr/lib64/gcc/x86_64-redhat-linux/14\n"


@each_case(
    "system, error, fix",
    [
        (_DEBIAN, "a.c:1:10: fatal error: turbojpeg.h: No such file or directory", "libturbojpeg0-dev"),
        (_DEBIAN, "a.c:1:10: fatal error: jpeglib.h: No such file or directory", "install libjpeg-dev"),
        (_DEBIAN, "a.c:1:10: fatal error: mpi.h: No such file or directory", "install libopenmpi-dev"),
        (_DEBIAN, "/usr/bin/ld: cannot find -lGLU: No such file or directory", "install libglu1-mesa-dev"),
        (_DEBIAN, "/usr/bin/ld: cannot find -lXext: No such file or directory", "install libxext-dev"),
        (_DEBIAN, "/usr/bin/ld: cannot find -lgmock: No such file or directory", "install libgmock-dev"),
        (_DEBIAN, "/bin/sh: 1: curl: not found", "install curl."),
        (_DEBIAN, "/bin/sh: 1: glslangValidator: not found", "install glslang-tools"),
        (_FEDORA, "a.c:1:10: fatal error: turbojpeg.h: No such file or directory", "pkgconfig(libturbojpeg)"),
        (_FEDORA, "/bin/sh: line 1: ffmpeg: command not found", "dnf provides '*bin/ffmpeg'"),
    ],
)
def test_the_package_has_the_file(system: str, error: str, fix: str) -> None:
    assert fix in read(f"{system}{error}\n").diagnoses[0].fix
