"""Where a request ends: found while it arrives, and checked by nobody but the server's own parser."""

import re
from enum import Enum

LONGEST_HEAD = 64 * 1024
"""Bytes of a request's line and headers."""

LONGEST_BODY = 1024 * 1024
"""Bytes of a body that is waited for; only contents of images are longer."""

_HEAD_END = b"\r\n\r\n"
# Without backtracking: a head may consist of zeros.
_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*+0*+([0-9]*+)[ \t]*+\r\n", re.IGNORECASE)
_FRAMED = re.compile(rb"\r\ntransfer-encoding:", re.IGNORECASE)
_ASKS_FIRST = re.compile(rb"\r\nexpect:[ \t]*100-continue[ \t]*\r\n", re.IGNORECASE)
_LONGEST_SIZE_LINE = 1024
_MOST_DIGITS = 19


class Arrival(Enum):
    """How much of a request has arrived."""

    HEAD = "head"
    """Its head is not complete."""
    BODY = "body"
    """Its body is not complete."""
    WHOLE = "whole"
    """All of it, or what is not HTTP: the parser says so."""
    LONG = "long"
    """Its head; the body is too long to be waited for, or its client asks whether to send it."""
    ENDLESS = "endless"
    """More of a head than any request has."""


class Framing:
    """The bytes of one request so far; `feed` looks at each byte once."""

    def __init__(self) -> None:
        self.data = bytearray()
        self._end: int | None = None
        self._at: int | None = None
        """Where the next size of a chunk is to be read."""

    @property
    def in_head(self) -> bool:
        """Whether the head is still to be completed."""
        return self._end is None and self._at is None

    def feed(self, piece: bytes) -> Arrival:
        """Add what has arrived."""
        searched = max(0, len(self.data) - len(_HEAD_END))
        self.data += piece
        if self.in_head:
            head = self.data.find(_HEAD_END, searched)
            if head < 0:
                return Arrival.ENDLESS if len(self.data) > LONGEST_HEAD else Arrival.HEAD
            found = self._begin_body(bytes(self.data[: head + 2]), head + len(_HEAD_END))
            if found is not None:
                return found
        return self._look()

    def _begin_body(self, head: bytes, start: int) -> Arrival | None:
        """See from the head how the end of the body is found; None: by `_look`."""
        length = _LENGTH.search(head)
        if _FRAMED.search(head):
            if _ASKS_FIRST.search(head):
                return Arrival.LONG
            self._at = start
        elif length is None:
            return Arrival.WHOLE
        else:
            size = int(length[1][: _MOST_DIGITS + 1] or b"0")
            if size > LONGEST_BODY or (size and _ASKS_FIRST.search(head)):
                return Arrival.LONG
            self._end = start + size
        return None

    def _look(self) -> Arrival:
        while self._end is None and self._at is not None:
            line = self.data.find(b"\r\n", self._at, self._at + _LONGEST_SIZE_LINE)
            if line < 0:
                broken = len(self.data) - self._at >= _LONGEST_SIZE_LINE
                return Arrival.WHOLE if broken else self._unfinished()
            try:
                size = int(bytes(self.data[self._at : line]).partition(b";")[0], 16)
            except ValueError:
                return Arrival.WHOLE
            if size == 0:
                end = self.data.find(_HEAD_END, line)
                return self._unfinished() if end < 0 else Arrival.WHOLE
            if size < 0 or size > LONGEST_BODY or self._at > LONGEST_HEAD + LONGEST_BODY:
                return Arrival.LONG
            if line + 2 + size + 2 > len(self.data):
                return self._unfinished()
            self._at = line + 2 + size + 2
        return Arrival.WHOLE if self._end is not None and len(self.data) >= self._end else self._unfinished()

    def _unfinished(self) -> Arrival:
        return Arrival.LONG if len(self.data) > LONGEST_HEAD + LONGEST_BODY else Arrival.BODY
