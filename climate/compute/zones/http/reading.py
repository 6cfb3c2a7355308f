"""Parser of HTTP/1.1 answers.

A child answers each forwarded request, and a general HTTP parser costs as much CPU time as the rest of a level. Invalid
HTTP raises BrokenOff, and more than MOST_BYTES raises TooLong.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from climate.compute.zones.http.messages import MOST_BYTES, BrokenOff, HttpAnswer, TooLong

LONGEST_HEAD = 64 * 1024
"""Maximum size in bytes of a status line with headers, and of the trailers of a chunked body."""

MOST_INTERIM = 16
"""Maximum number of interim (1xx) answers."""

_HEAD_END = b"\r\n\r\n"
_LONGEST_SIZE_LINE = 1024
_STATUS = re.compile(rb"HTTP/1\.([01]) ([1-9][0-9][0-9])(?: [^\r\n\0]*)?")
_HEADER = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*+([^\r\n\0]*+)")
"""A header.  The repetitions give nothing back: blanks before a byte that is refused would cost their square."""
_SIZE = re.compile(rb"([0-9A-Fa-f]{1,8})[ \t]*(?:;[^\r\n\0]*)?")
_LENGTH = re.compile(r"[0-9]{1,18}")

Receive = Callable[[], bytes]
"""Function that returns received bytes; empty at the end of the connection."""


@dataclass(frozen=True, slots=True)
class ReadAnswer:
    """Answer, and whether the connection can be reused."""

    answer: HttpAnswer
    is_reusable: bool


@dataclass(frozen=True, slots=True)
class _Head:
    """Status and headers of an answer; names are in lower case."""

    minor: int
    status: int
    headers: Mapping[str, str]


def read_answer(receive: Receive, method: str) -> ReadAnswer:
    """Read the answer to a request. Raise BrokenOff if it is truncated or not HTTP, TooLong beyond MOST_BYTES."""
    unread = _Unread(receive)
    head = _read_head(unread)
    content, is_framed = _read_content(unread, head, method)
    words = {word.strip().lower() for word in head.headers.get("connection", "").split(",")}
    is_reusable = is_framed and head.minor == 1 and "close" not in words and not unread.data
    return ReadAnswer(HttpAnswer(head.status, dict(head.headers), content), is_reusable)


class _Unread:
    """Received bytes that were not parsed yet."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self.data = bytearray()

    def more(self) -> bool:
        """Read more; return False at the end of the connection."""
        piece = self._receive()
        self.data += piece
        return bool(piece)

    def until(self, end: bytes, longest: int) -> bytes:
        """Return the bytes before `end`, which is dropped."""
        searched = 0
        while (result := self.data.find(end, searched)) < 0:
            searched = max(0, len(self.data) - len(end) + 1)
            if len(self.data) > longest or not self.more():
                raise BrokenOff
        taken = bytes(self.data[:result])
        del self.data[: result + len(end)]
        return taken

    def exactly(self, count: int, into: bytearray) -> None:
        """Append so many bytes to `into`."""
        while True:
            into += (taken := self.data[:count])
            del self.data[:count]
            count -= len(taken)
            if count == 0:
                return
            if not self.more():
                raise BrokenOff

    def rest(self) -> bytes:
        """Take all until the end of the connection."""
        while self.more():
            _check_length(len(self.data))
        taken, self.data = bytes(self.data), bytearray()
        return taken


def _read_head(unread: _Unread) -> _Head:
    """Return the head of the answer, after any interim answers."""
    for _ in range(MOST_INTERIM + 1):
        first, *rows = unread.until(_HEAD_END, LONGEST_HEAD).split(b"\r\n")
        line = _STATUS.fullmatch(first)
        if line is None or line[2] == b"101":  # the client never requests an upgrade
            raise BrokenOff
        if not line[2].startswith(b"1"):
            return _Head(int(line[1]), int(line[2]), _headers(rows))
    raise BrokenOff


def _headers(rows: list[bytes]) -> dict[str, str]:
    """Return the headers by name, with all words of Connection, and of others that stand twice the last.

    Raise BrokenOff for two different lengths, and for a body that is chunked twice.
    """
    result: dict[str, str] = {}
    for row in rows:
        header = _HEADER.fullmatch(row)
        if header is None:
            raise BrokenOff
        name, value = header[1].decode("ascii").lower(), header[2].decode("latin-1").rstrip(" \t")
        if name == "transfer-encoding" and name in result:
            raise BrokenOff
        if name == "content-length" and result.get(name, value) != value:
            raise BrokenOff
        result[name] = f"{result[name]}, {value}" if name == "connection" and name in result else value
    return result


def _read_content(unread: _Unread, head: _Head, method: str) -> tuple[bytes, bool]:
    """Return the body, and whether its end was marked by other means than the end of the connection."""
    if method == "HEAD" or head.status in (204, 304):
        return b"", True
    coding, length = head.headers.get("transfer-encoding"), head.headers.get("content-length")
    if coding is not None:
        if coding.lower() != "chunked":
            raise BrokenOff
        # Conflicting lengths indicate request smuggling, so the connection is not reused.
        return _chunks(unread), length is None
    if length is None:
        return unread.rest(), False
    if not _LENGTH.fullmatch(length):
        raise BrokenOff
    _check_length(int(length))
    content = bytearray()
    unread.exactly(int(length), content)
    return bytes(content), True


def _chunks(unread: _Unread) -> bytes:
    """Read a body in chunks, and drop its trailers."""
    content = bytearray()
    while True:
        line = _SIZE.fullmatch(unread.until(b"\r\n", _LONGEST_SIZE_LINE + len(unread.data)))
        if line is None:
            raise BrokenOff
        size = int(line[1], 16)
        if size == 0:
            break
        _check_length(len(content) + size)
        unread.exactly(size, content)
        if unread.until(b"\r\n", 1):
            raise BrokenOff
    trailers = 0
    while row := unread.until(b"\r\n", LONGEST_HEAD):
        trailers += len(row)
        if trailers > LONGEST_HEAD or not _HEADER.fullmatch(row):
            raise BrokenOff
    return bytes(content)


def _check_length(count: int) -> None:
    if count > MOST_BYTES:
        raise TooLong
