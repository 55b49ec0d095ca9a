"""scikit-build-core, with MAX_JOBS understood as PyTorch's users expect it."""

import os

from scikit_build_core import build as _backend
from scikit_build_core.build import *  # noqa: F403 - the hooks of PEP 517 and 660

__all__ = _backend.__all__

if os.environ.get("MAX_JOBS"):
    os.environ.setdefault("CMAKE_BUILD_PARALLEL_LEVEL", os.environ["MAX_JOBS"])
