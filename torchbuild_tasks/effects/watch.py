"""Waits until files are saved; what is saved while nobody waits is not forgotten."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Set
from pathlib import Path
from typing import TYPE_CHECKING, Final

from torchbuild_tasks.errors import UsageError

if TYPE_CHECKING:
    from watchfiles import Change

# Milliseconds without a further save that end a group of them (an editor writes several files,
# git hundreds), and how long a group may last.
_STEP: Final = 100
_GROUP: Final = 2000
_START: Final = 50


class Saves:
    """Watches a folder from now on. `counts` says of a path, relative with `/`, whether it matters.

    Raises:
        UsageError: the system does not let so many folders be watched.
    """

    def __init__(self, root: Path, counts: Callable[[str], bool]) -> None:
        from watchfiles import watch

        self._root, self._counts = root, counts
        self._changes: Iterator[Set[tuple[Change, str]]] = watch(
            root,
            watch_filter=lambda change, path: counts(self._relative(path)),
            debounce=_GROUP,
            step=_STEP,
            rust_timeout=_START,
            yield_on_timeout=True,
            # Left to itself watchfiles looks at every file again and again under WSL, where that
            # is needed for Windows' drives only; who has a checkout there says so.
            force_polling=None if "WATCHFILES_FORCE_POLLING" in os.environ else False,
        )
        self._next()  # the first question starts the watching

    def wait(self) -> tuple[str, ...]:
        """The files that were saved since the last answer, sorted; waits for one.

        Raises:
            KeyboardInterrupt: Ctrl-C.
        """
        while True:
            if found := self._next():
                return tuple(sorted({self._relative(path) for _, path in found}))

    def _next(self) -> Set[tuple[Change, str]]:
        try:
            return next(self._changes)
        except (OSError, RuntimeError) as error:  # the second is how watchfiles tells of a limit
            raise UsageError(
                f"{self._root} cannot be watched: {error}",
                next_step="On Linux each folder takes one of fs.inotify.max_user_watches; raise it with\n"
                "sudo sysctl fs.inotify.max_user_watches=524288",
            ) from None

    def _relative(self, path: str) -> str:
        with contextlib.suppress(ValueError):
            return Path(path).relative_to(self._root).as_posix()
        return path
