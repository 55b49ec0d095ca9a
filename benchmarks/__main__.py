"""`nox -s bench`, or `nox -s bench -- startup` for one of them."""

from __future__ import annotations

import os
import platform
import sys

from benchmarks import (
    archs,
    caches,
    detection,
    download,
    eta,
    jobserver,
    loop,
    preflight,
    sample,
    startup,
    streaming,
    unpack,
)

ALL = {
    "startup": startup.main,
    "streaming": streaming.main,
    "sample": sample.main,
    "loop": loop.main,
    "download": download.main,
    "unpack": unpack.main,
    "archs": archs.main,
    "preflight": preflight.main,
    "detection": detection.main,
    "caches": caches.main,
    "eta": eta.main,
    "jobserver": jobserver.main,
}

if __name__ == "__main__":
    print(f"{platform.platform()}, {os.cpu_count()} cores, Python {platform.python_version()}", flush=True)
    for name in sys.argv[1:] or ALL:
        ALL[name]()
