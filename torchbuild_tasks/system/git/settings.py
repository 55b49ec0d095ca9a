"""git's settings for one command, by the environment: anybody on the machine can read a command line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

_COUNT: Final = "GIT_CONFIG_COUNT"  # of git 2.31; with _KEY_n and _VALUE_n, read behind all files


def with_settings(environ: Mapping[str, str], settings: Sequence[str]) -> dict[str, str]:
    """Return an environment in which git has these NAME=VALUE settings, too.

    A name may hold an address with a login: `url.<base>.insteadOf`.
    """
    count = int(environ.get(_COUNT) or 0) if (environ.get(_COUNT) or "0").isdigit() else 0
    more = {_COUNT: str(count + len(settings))} if settings else {}
    for number, setting in enumerate(settings, count):
        name, _, value = setting.partition("=")
        more |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
    return {**environ, **more}
