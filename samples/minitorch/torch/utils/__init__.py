"""Where the native half was installed; in an editable install that is not beside this file."""

from pathlib import Path

from torch import _C

cmake_prefix_path = str(Path(_C.__file__).parent / "share" / "cmake")
