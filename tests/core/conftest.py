"""What is decided is the same on every system: under Windows Python these tests only cost time.

`core` asks no system (`tests/test_layers.py`); Windows machines are planned for here, too.
"""

from __future__ import annotations

import sys

import pytest


def pytest_ignore_collect(config: pytest.Config) -> bool | None:
    """Leave this folder out under Windows, but for --slow."""
    return True if sys.platform == "win32" and not config.getoption("--slow") else None
