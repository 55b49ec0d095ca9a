"""Which environment variables reach CMake; asked by both eras."""

import os
import re

# CMAKE_PREFIX_PATH and the generator are left out: CMake reads those from the environment itself,
# and separates the paths as the platform does.
FORWARDED = re.compile(
    r"(BUILD_|USE_|CMAKE_(?!PREFIX_PATH$|GENERATOR))\w+"
    r"|\w+EXITCODE(__TRYRUN_OUTPUT)?"
    r"|BLAS|WERROR|TORCH_CUDA_ARCH_LIST|CUDA_NVCC_EXECUTABLE",
    re.ASCII,
)


def forwarded_env() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if FORWARDED.fullmatch(name)}


if __name__ == "__main__":
    print("\n".join(forwarded_env()))
