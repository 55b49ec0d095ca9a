"""The first module of the `torchbuild` command: until a verb has begun, Ctrl-C ends it without a word."""

from __future__ import annotations

# In the interpreter: `signal` reads enum, which takes longer than all else here.
import _signal as signal  # type: ignore[import-not-found]


def main() -> None:
    """Give Ctrl-C the system's own action, then read the modules of the command and run it.

    Python's own is a traceback of the module that is being read just then. Raised while msgspec looks at a
    type, it crashed the interpreter (3 of 132 tries, with msgspec 0.23 under Python 3.11). `interruptible`
    has an action of its own while a verb runs, and puts this one back. An ignored one (nohup) stays ignored.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from torchbuild_tasks.fronts.console import main as run

    run()
