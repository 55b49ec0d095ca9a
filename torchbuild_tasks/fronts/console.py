"""The `torchbuild` command: Invoke's program over the same collection."""

from __future__ import annotations

import sys
import traceback
from types import TracebackType

from invoke.exceptions import Exit, ParseError
from invoke.program import Program

from torchbuild_tasks import version
from torchbuild_tasks.errors import UsageError
from torchbuild_tasks.fronts.invoke_tasks import make_namespace
from torchbuild_tasks.fronts.parsing import unknown_word
from torchbuild_tasks.text.visible import visible


class TorchbuildProgram(Program):
    """Invoke's program; a mistyped verb is refused with the nearest one."""

    def parse_tasks(self) -> None:
        """Parse the verbs and their flags."""
        try:
            super().parse_tasks()
        except ParseError as error:
            text = str(error)
            if text.startswith("No idea what '"):
                text = unknown_word(text.split("'")[1])
            raise Exit(visible(text), code=UsageError.exit_code) from None


def _tell_bug(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Print the traceback of a bug; the error in it may hold a name of somebody else's."""
    sys.stderr.write(visible("".join(traceback.format_exception(kind, error, trace))))


def main() -> None:
    """Entry point of the console script."""
    sys.excepthook = _tell_bug
    TorchbuildProgram(name="torchbuild", namespace=make_namespace(), version=version()).run()


if __name__ == "__main__":
    main()
