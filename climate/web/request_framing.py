"""Framing of HTTP requests: finds the end of a request while it arrives; the server's own parser checks it."""

import re
from enum import Enum

LONGEST_HEAD = 64 * 1024
"""Bytes of a request's line and headers."""

LONGEST_BODY = 1024 * 1024
"""Bytes of a buffered body; only uploads of images are longer."""

_HEAD_END = b"\r\n\r\n"
# Without backtracking: a head may consist of zeros.
_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*+0*+([0-9]*+)[ \t]*+\r\n", re.IGNORECASE)
_FRAMED = re.compile(rb"\r\ntransfer-encoding:", re.IGNORECASE)
_ASKS_FIRST = re.compile(rb"\r\nexpect:[ \t]*100-continue[ \t]*\r\n", re.IGNORECASE)
FIRST_PIECE = 64 * 1024
"""Bytes of a long body that must arrive before it occupies a thread."""

_LONGEST_SIZE_LINE = 1024
_MOST_DIGITS = 19


class Arrival(Enum):
    """Progress of a request that arrives."""

    HEAD = "head"
    """Its head is not complete."""
    BODY = "body"
    """Its body is not complete."""
    WHOLE = "whole"
    """The whole request, or invalid HTTP, which the parser refuses."""
    LONG = "long"
    """Its head, and the first bytes of a body that is too long to buffer."""
    ENDLESS = "endless"
    """A head beyond the limit."""


class Framing:
    """Bytes of one request so far; `feed` reads each byte once."""

    def __init__(self) -> None:
        self.data = bytearray()
        self._end: int | None = None
        self._at: int | None = None
        """Offset of the next chunk size."""
        self._long_from: int | None = None
        """Bytes that must have arrived of a request with a long body."""
        self.asks_first = False
        """Whether the client waits for 100 Continue; its Expect header is removed from `data`."""

    @property
    def in_head(self) -> bool:
        """Return whether the head is still incomplete."""
        return self._end is None and self._at is None

    def feed(self, piece: bytes) -> Arrival:
        """Add received bytes."""
        searched = max(0, len(self.data) - len(_HEAD_END))
        self.data += piece
        if self.in_head:
            head = self.data.find(_HEAD_END, searched)
            if head < 0:
                return Arrival.ENDLESS if len(self.data) > LONGEST_HEAD else Arrival.HEAD
            head = self._without_question(head)
            result = self._begin_body(bytes(self.data[: head + 2]), head + len(_HEAD_END))
            if result is not None:
                return result
        return self._inspect()

    def _without_question(self, head: int) -> int:
        """Remove the Expect header from the head; return where the head ends then."""
        text = bytes(self.data[: head + 2])
        shorter = _ASKS_FIRST.sub(b"\r\n", text)
        self.asks_first = shorter != text
        self.data[: head + 2] = shorter
        return len(shorter) - 2

    def _begin_body(self, head: bytes, start: int) -> Arrival | None:
        """Derive from the head how the end of the body is found; None: by `_inspect`."""
        length = _LENGTH.search(head)
        if _FRAMED.search(head):
            self._at = start
        elif length is None:
            return Arrival.WHOLE
        else:
            size = int(length[1][: _MOST_DIGITS + 1] or b"0")
            self._end = start + size
            if size > LONGEST_BODY:
                self._long_from = start + FIRST_PIECE
        return None

    def _inspect(self) -> Arrival:
        if self._long_from is not None:
            return Arrival.LONG if len(self.data) >= self._long_from else Arrival.BODY
        while self._end is None and self._at is not None:
            line = self.data.find(b"\r\n", self._at, self._at + _LONGEST_SIZE_LINE)
            if line < 0:
                broken = len(self.data) - self._at >= _LONGEST_SIZE_LINE
                return Arrival.WHOLE if broken else self._unfinished()
            try:
                size = int(bytes(self.data[self._at : line]).partition(b";")[0], 16)
            except ValueError:
                return Arrival.WHOLE
            arrival = self._read_chunk(line, size)
            if arrival is not None:
                return arrival
        return Arrival.WHOLE if self._end is not None and len(self.data) >= self._end else self._unfinished()

    def _read_chunk(self, line: int, size: int) -> Arrival | None:
        """Pass a chunk whose size is in the line that ends at `line`; None if it is all there and another follows."""
        if size == 0:
            end = self.data.find(_HEAD_END, line)
            return self._unfinished() if end < 0 else Arrival.WHOLE
        if size < 0 or (self._at or 0) > LONGEST_HEAD + LONGEST_BODY:
            return Arrival.LONG
        if size > LONGEST_BODY:
            self._long_from = line + 2 + FIRST_PIECE
            return self._inspect()
        if line + 2 + size + 2 > len(self.data):
            return self._unfinished()
        self._at = line + 2 + size + 2
        return None

    def _unfinished(self) -> Arrival:
        return Arrival.LONG if len(self.data) > LONGEST_HEAD + LONGEST_BODY else Arrival.BODY
