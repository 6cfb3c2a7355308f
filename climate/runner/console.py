"""Terminal output of `climate up`: whole lines, each after the name of its process."""

import os
import select
from typing import TextIO

COLOURS = (36, 33, 32, 35, 34, 31)
PATIENCE = 0.2
"""Seconds to wait for a slow reader of a line; after that lines are dropped."""
LONGEST_LINE = 64 * 1024
PIECE = 4096
"""Bytes that a terminal or pipe which reports room takes without blocking."""


class Console:
    """Writer of one open file, with colours on a terminal.  A closed or blocked reader never stops climate."""

    def __init__(self, out: TextIO, *, colours: bool) -> None:
        self._file = out.fileno()
        self._colours = colours
        self._width = len("postgres")
        self._dropped = 0

    def line(self, name: str, number: int, text: str) -> None:
        """Write one line of the process `name`; `number` selects its colour."""
        self._width = max(self._width, len(name))
        front = f"{name:<{self._width}} |"
        if self._colours:
            front = f"\x1b[{COLOURS[number % len(COLOURS)]}m{front}\x1b[0m"
        self._write(f"{front} {text}\n")

    def say(self, text: str) -> None:
        """Write one line of the runner."""
        self._write(f"\x1b[1m{text}\x1b[0m\n" if self._colours else f"{text}\n")

    def _write(self, text: str) -> None:
        if self._dropped:
            text = f"({self._dropped} lines were dropped: the reader is too slow)\n{text}"
        data = memoryview(text.encode(errors="replace"))
        while data:
            # After one line was dropped, none waits until there is room again.
            if not self._has_room(0 if self._dropped else PATIENCE):
                self._dropped += 1
                return
            try:
                data = data[os.write(self._file, data[:PIECE]) :]
            except OSError:
                return
        self._dropped = 0

    def _has_room(self, seconds: float) -> bool:
        return bool(select.select([], [self._file], [], seconds)[1])


class Lines:
    """Output of one process, split into lines.  The file is non-blocking; it is closed at its end."""

    def __init__(self, file: int) -> None:
        self._file = file
        self._rest = b""
        self.ended = False

    def read(self) -> list[str]:
        """Return the complete lines; a very long one is split, and the last one may lack a line end."""
        try:
            data = os.read(self._file, 65536)
        except BlockingIOError:
            return []
        *whole, self._rest = (self._rest + data).split(b"\n")
        self.ended = not data
        if self._rest and (self.ended or len(self._rest) > LONGEST_LINE):
            whole, self._rest = [*whole, self._rest], b""
        if self.ended:
            os.close(self._file)
        return [line.decode(errors="replace").rstrip("\r") for line in whole]
