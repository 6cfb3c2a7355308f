"""Archive files: JSON lines in blocks, each compressed by itself, so that one lease can be read alone.

A file is a sequence of gzip members, and hence a gzip file. Its first line describes it; each other line is a lease
with its facts and actions. Its checksum file has the format of `sha256sum --check`.
"""

import gzip
import hashlib
import json
import os
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO
from uuid import UUID

FORMAT = {"format": "climate-archive", "version": 1}
CHECKSUM = ".sha256"
PART = ".part"

Line = Mapping[str, Any]
"""A lease: `lease_id`, `facts` in the order of their versions, `actions`."""


@dataclass(frozen=True, slots=True)
class Place:
    """The block that contains a lease, and the number of its facts there."""

    lease_id: UUID
    place: int
    size: int
    version: int


@dataclass(frozen=True, slots=True)
class ArchiveFile:
    """A complete file: its places, its size and its checksum."""

    places: Sequence[Place]
    size: int
    sha256: str


class Damaged(Exception):
    """A file of an archive is missing, or differs from what was written."""


def write(path: Path, blocks: Iterable[Sequence[Line]], about: Mapping[str, object]) -> ArchiveFile:
    """Write a file atomically and sync it to the disk."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    part = path.with_name(path.name + PART)
    places: list[Place] = []
    with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        size = _append(file, [{**FORMAT, **about}])
        for block in blocks:
            length = _append(file, block)
            places += [Place(UUID(line["lease_id"]), size, length, len(line["facts"])) for line in block]
            size += length
        file.flush()
        os.fsync(file.fileno())
    digest = _digest(part)
    _write_checksum(path, digest)
    part.rename(path)
    _sync_folder(path.parent)
    return ArchiveFile(places, size, digest)


def _append(file: BinaryIO, lines: Sequence[Line]) -> int:
    message = "".join(json.dumps(line, ensure_ascii=False, default=str) + "\n" for line in lines)
    return file.write(gzip.compress(message.encode(), mtime=0))


def _write_checksum(path: Path, digest: str) -> None:
    with path.with_name(path.name + CHECKSUM).open("w", encoding="ascii") as file:
        file.write(f"{digest}  {path.name}\n")
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    """Sync the names in the folder to the disk."""
    number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def forget(path: Path) -> None:
    """Delete an unfinished file."""
    for name in (path.name, path.name + PART, path.name + CHECKSUM):
        path.with_name(name).unlink(missing_ok=True)


def read(path: Path, place: int, size: int, lease_id: UUID) -> Line:
    """Return the line of a lease. Raise Damaged if the file is missing or differs from what was written."""
    try:
        with path.open("rb") as file:
            file.seek(place)
            # Not splitlines: texts in JSON may contain other line separators.
            texts = gzip.decompress(file.read(size)).decode().removesuffix("\n").split("\n")
        lines: list[Line] = [json.loads(text) for text in texts]
    except (OSError, EOFError, zlib.error, ValueError) as error:
        raise Damaged(f"{path}: {error}") from error
    for line in lines:
        if line.get("lease_id") == str(lease_id):
            return line
    raise Damaged(f"{path}: lease {lease_id} is not where it was written")


def damage(path: Path, size: int, sha256: str) -> str | None:
    """Return the damage of a file, or None."""
    try:
        if path.stat().st_size != size:
            return f"{path} has {path.stat().st_size} bytes, not {size}"
        return None if _digest(path) == sha256 else f"{path} is not what was written: its checksum differs"
    except OSError as error:
        return f"{path}: {error.strerror}"


def is_there(path: Path, size: int) -> bool:
    """Return whether a file has its size; its content is not read."""
    try:
        return path.stat().st_size == size
    except OSError:
        return False


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
