"""Reader of tar archives that anybody may have made: it takes bounded memory, and always comes to its end.

The module tarfile trusts headers. A negative size leads it back to members that it has read, and long names, sparse
maps and records of pax headers grow without limit. Here every header has a limit, each byte that is read counts, and
the members are yielded one by one. Sparse members are refused.
"""

import bz2
import gzip
import io
import lzma
import tarfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Protocol

from climate.compute.errors import VirtError

DAMAGED = (tarfile.TarError, zlib.error, lzma.LZMAError, EOFError, ValueError, OverflowError)
"""Errors of a damaged archive."""

HEADER_BYTES = 1 << 20
"""Maximum size of the long name, or of the pax records, before a member."""

HEADERS = 8
"""Maximum number of headers of one member."""

MEMBERS = 1_000_000
"""Maximum number of members."""

ENTRY_BYTES = 4096
"""Space that a member takes beside its content."""

XZ_BYTES = 256 << 20
"""Maximum memory for the decompression of xz: more than its highest preset needs."""

GB = 1 << 30

_BLOCK, _PIECE = tarfile.BLOCKSIZE, 1 << 16
_LONG = {tarfile.GNUTYPE_LONGNAME: "path", tarfile.GNUTYPE_LONGLINK: "linkpath"}
_PAX, _PAX_GLOBAL = (tarfile.XHDTYPE, tarfile.SOLARIS_XHDTYPE), tarfile.XGLTYPE
_DIGITS = 20
_SPARSE = "the image has a sparse member {!r}: pack it without --sparse"


class Stream(Protocol):
    """Decompressed archive."""

    def read(self, size: int, /) -> bytes:
        """Return so many bytes, or fewer at the end."""


class Reader:
    """The members of an archive, whose content may take so much space."""

    def __init__(self, stream: Stream, room_gb: int) -> None:
        self._stream, self._room_gb, self._room = stream, room_gb, room_gb * GB
        self._left = self._padding = 0

    def __iter__(self) -> Iterator[tarfile.TarInfo]:
        """Yield the members; the content of one can be written until the next one is asked for."""
        count = 0
        while (member := self._next(first=count == 0)) is not None:
            count += 1
            if count > MEMBERS:
                raise VirtError(f"the image has more than {MEMBERS} members")
            yield member
            self._pass_on(None)

    def write(self, file: IO[bytes]) -> None:
        """Write the content of the current member."""
        self._pass_on(file)

    def charge(self, size: int) -> None:
        """Count so many bytes; VirtError if there is no room for them."""
        self._room -= size
        if self._room < 0:
            raise VirtError(f"the image holds more than {self._room_gb} GB")

    def _next(self, *, first: bool) -> tarfile.TarInfo | None:
        changes: dict[str, str] = {}
        for _ in range(HEADERS):
            block = self._stream.read(_BLOCK)
            if first and not block:
                raise tarfile.ReadError("it is empty")
            if not block.strip(b"\0"):
                return None
            header = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
            if header.type not in _LONG and header.type not in _PAX and header.type != _PAX_GLOBAL:
                return self._completed(header, changes)
            changes |= _changes(header, self._extension(header.size))
        raise tarfile.ReadError(f"a member has more than {HEADERS} headers")

    def _extension(self, size: int) -> bytes:
        if not 0 <= size <= HEADER_BYTES:
            raise tarfile.ReadError(f"a header of {size} bytes is not between 0 and {HEADER_BYTES}")
        padded = _padded(size)
        self.charge(padded)
        return self._exactly(padded)[:size]

    def _completed(self, header: tarfile.TarInfo, changes: dict[str, str]) -> tarfile.TarInfo:
        header.name = changes.get("path", header.name)
        if header.isdir():
            header.name = header.name.rstrip("/")
        header.linkname = changes.get("linkpath", header.linkname)
        size = changes.get("size", str(header.size))
        if not (size.isascii() and size.isdigit() and len(size) <= _DIGITS):
            raise tarfile.ReadError(f"the member {header.name[:80]!r} has the size {size[:80]}")
        if header.type == tarfile.GNUTYPE_SPARSE:
            raise VirtError(_SPARSE.format(header.name[:80]))
        header.size = int(size)
        has_content = header.isreg() or header.type not in tarfile.SUPPORTED_TYPES
        self._left = header.size if has_content else 0
        self._padding = _padded(self._left) - self._left
        self.charge(ENTRY_BYTES + self._left)
        return header

    def _pass_on(self, file: IO[bytes] | None) -> None:
        """Read what is left of a member, into a file if one is given."""
        while self._left:
            piece = self._exactly(min(self._left, _PIECE))
            self._left -= len(piece)
            if file is not None:
                file.write(piece)
        self._exactly(self._padding)
        self._padding = 0

    def _exactly(self, size: int) -> bytes:
        piece = self._stream.read(size)
        if len(piece) < size:
            raise tarfile.ReadError("unexpected end of data")
        return piece


@contextmanager
def opened(source: Path) -> Iterator[Stream]:
    """Open a file, decompressed if it is compressed by gzip, bzip2 or xz."""
    with source.open("rb") as file:
        magic = file.read(6)
        file.seek(0)
        if magic.startswith(b"\x1f\x8b"):
            with gzip.GzipFile(fileobj=file) as stream:
                yield stream
        elif magic.startswith(b"BZh"):
            with bz2.BZ2File(file) as stream:
                yield stream
        elif magic == b"\xfd7zXZ\0" or magic.startswith(b"\x5d\0\0"):
            yield io.BufferedReader(_Xz(file))
        else:
            yield file


class _Xz(io.RawIOBase):
    """Decompressor of xz with a limit for its memory, which LZMAFile lacks."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._machine = file, _machine()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        data = b""
        while not data:
            if self._machine.eof:
                rest = self._machine.unused_data or self._file.read(_PIECE)
                if not rest.strip(b"\0"):
                    return 0
                self._machine = _machine()
            else:
                rest = self._file.read(_PIECE) if self._machine.needs_input else b""
                if self._machine.needs_input and not rest:
                    raise EOFError("the compressed data ends early")
            data = self._machine.decompress(rest, len(buffer))
        buffer[: len(data)] = data
        return len(data)


def _machine() -> lzma.LZMADecompressor:
    return lzma.LZMADecompressor(memlimit=XZ_BYTES)


def _padded(size: int) -> int:
    return -(-size // _BLOCK) * _BLOCK


def _changes(header: tarfile.TarInfo, body: bytes) -> dict[str, str]:
    """Return the values that a header sets for its member: `path`, `linkpath`, `size`."""
    if header.type == _PAX_GLOBAL:
        return {}
    if header.type in _LONG:
        return {_LONG[header.type]: _text(body.partition(b"\0")[0])}
    records = dict(_records(body))
    if any(key.startswith(b"GNU.sparse.") for key in records):
        raise VirtError(_SPARSE.format(_text(records.get(b"GNU.sparse.name", b""))[:80]))
    return {key: _text(records[key.encode()]) for key in ("path", "linkpath", "size") if key.encode() in records}


def _records(body: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the records of a pax header, `LENGTH KEY=VALUE` and a line feed, each of exactly its length."""
    at = 0
    while at < len(body):
        digits, space, _ = body[at : at + _DIGITS].partition(b" ")
        end = at + int(digits) if digits.isdigit() else 0
        key, equals, value = body[at + len(digits) + 1 : end].partition(b"=")
        if not (space and equals and end <= len(body) and value.endswith(b"\n")):
            raise tarfile.ReadError("a pax header is damaged")
        yield key, value[:-1]
        at = end


def _text(name: bytes) -> str:
    return name.decode("utf-8", "surrogateescape")
