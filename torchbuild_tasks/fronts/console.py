"""The `torchbuild` command: Invoke's program over the same collection."""

from __future__ import annotations

from invoke.exceptions import Exit, ParseError
from invoke.program import Program

from torchbuild_tasks import version
from torchbuild_tasks.errors import UsageError
from torchbuild_tasks.fronts.invoke_tasks import make_namespace
from torchbuild_tasks.fronts.parsing import unknown_word


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
            raise Exit(text, code=UsageError.exit_code) from None


def main() -> None:
    """Entry point of the console script."""
    TorchbuildProgram(name="torchbuild", namespace=make_namespace(), version=version()).run()


if __name__ == "__main__":
    main()
