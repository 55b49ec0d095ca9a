"""Watch a checkout for `build --watch`: select relevant files, and wait for the next save."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Set
from pathlib import Path
from typing import TYPE_CHECKING, Final

from torchbuild_tasks.build import ownership
from torchbuild_tasks.build.outputs import patterns, starts_build
from torchbuild_tasks.errors import UsageError
from torchbuild_tasks.plan.question import Question
from torchbuild_tasks.system.signals import interruptible

if TYPE_CHECKING:
    from watchfiles import Change


# Milliseconds without a further save that end a group of them (an editor writes several files,
# git hundreds), and how long a group may last.
_STEP: Final = 100
_GROUP: Final = 2000
_START: Final = 50


class Saves:
    """Watches a folder from its creation on. `counts` says whether a path (relative, with `/`) is relevant.

    Raises:
        UsageError: the system does not let so many folders be watched.
    """

    def __init__(self, root: Path, counts: Callable[[str], bool]) -> None:
        from watchfiles import watch

        self._root = root
        self._changes: Iterator[Set[tuple[Change, str]]] = watch(
            root,
            watch_filter=lambda change, path: counts(self._relative(path)),
            debounce=_GROUP,
            step=_STEP,
            rust_timeout=_START,
            yield_on_timeout=True,
            # Under WSL watchfiles polls every file by default, which only Windows' drives need;
            # users with a checkout there set its variable.
            force_polling=None if "WATCHFILES_FORCE_POLLING" in os.environ else False,
        )
        self._next()  # the first call starts watching

    def wait(self, say: Callable[[], None] = lambda: None) -> tuple[str, ...]:
        """Wait for a save; return the files saved since the last answer, sorted.

        Args:
            say: tells the user that it waits, once Ctrl-C ends the wait.

        Raises:
            Interrupted: Ctrl-C or SIGTERM.
        """
        with interruptible():
            say()
            while True:
                if changes := self._next():
                    return tuple(sorted({self._relative(path) for _, path in changes}))

    def _next(self) -> Set[tuple[Change, str]]:
        try:
            return next(self._changes)
        except (OSError, RuntimeError) as error:  # watchfiles raises the second for a limit
            raise UsageError(
                f"{self._root} cannot be watched: {error}",
                next_step="On Linux each folder takes one of fs.inotify.max_user_watches; raise it with\n"
                "sudo sysctl fs.inotify.max_user_watches=524288",
            ) from None

    def _relative(self, path: str) -> str:
        with contextlib.suppress(ValueError):
            return Path(path).relative_to(self._root).as_posix()
        return path


def watch_sources(root: Path, question: Question) -> Saves:
    """Watch the saves of what is built in a checkout from now on."""
    within = ownership.within(root, Path(question.build_dir))
    outputs = patterns(question.catalog, question.era).below(within)
    return Saves(root, lambda path: starts_build(path, outputs))
