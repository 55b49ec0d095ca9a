"""What a debugger finds on a machine and in a build."""

from __future__ import annotations

import msgspec


class Debugging(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What attaching a debugger to the built torch needs.

    `python` is the interpreter of `environment` without links, `gdb` the debugger's path. `ptrace_scope` is
    Yama's (None where there is no Yama). `debug_info` tells of each built library of torch whether it has any
    (None: unknown). `gdbinit` is that of the checkout, `commands` the compile_commands.json of the build.
    """

    environment: str
    python: str
    gdb: str | None = None
    debugpy: bool = False
    ptrace_scope: int | None = None
    debug_info: tuple[tuple[str, bool | None], ...] = ()
    gdbinit: str | None = None
    commands: str | None = None
