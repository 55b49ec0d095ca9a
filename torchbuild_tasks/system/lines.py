"""Split the output of a program into complete lines, with bounded memory."""

from __future__ import annotations

from typing import Final

LINE_LIMIT: Final = 8 * 1024  # bytes of a line that are kept


class Blocks:
    """Splits bytes into blocks of complete lines, with bounded memory.

    Each line of a block ends with a newline. Of a line longer than `LINE_LIMIT` bytes the rest is
    left out, so one without end costs nothing.

    Args:
        carriage_return: whether a carriage return ends a line too.
    """

    def __init__(self, *, carriage_return: bool = True) -> None:
        self._ends_too = carriage_return
        self._rest = b""
        self._after_cr = False

    def feed(self, chunk: bytes) -> bytes:
        """Return the lines that this chunk completes; empty when there is none."""
        if not chunk:
            return b""
        data = chunk[1:] if self._after_cr and chunk.startswith(b"\n") else chunk
        self._after_cr = self._ends_too and chunk.endswith(b"\r")
        if self._ends_too and b"\r" in data:
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        end = data.rfind(b"\n") + 1
        if not end:
            self._rest = (self._rest + data)[:LINE_LIMIT]
            return b""
        block = b"".join((self._rest, memoryview(data)[:end]))
        self._rest = data[end : end + LINE_LIMIT]
        return _cut_long_lines(block)

    def end(self) -> bytes:
        """Return the last line, if it had no end."""
        rest = self._rest
        self._rest = b""
        return rest + b"\n" if rest else b""


def _cut_long_lines(block: bytes) -> bytes:
    """Shorten the lines that are longer than the limit."""
    at = 0
    while at < len(block):  # from one line end within the limit to the next
        at = block.rfind(b"\n", at, at + LINE_LIMIT + 1) + 1
        if not at:
            return b"\n".join([line[:LINE_LIMIT] for line in block.split(b"\n")])
    return block
