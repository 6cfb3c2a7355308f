"""Atomic writes of world-readable files that other programs read."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from climate.compute.errors import NetworkError

_MODE = 0o644


def folder(path: Path) -> Path:
    """Create a world-readable folder if it is missing; return it."""
    if not path.is_dir():
        path.mkdir(parents=True, exist_ok=True)
        path.chmod(0o755)
    return path


def write(path: Path, text: str, mode: int = _MODE) -> None:
    """Write a file atomically; leave it untouched if it has this text already."""
    with suppress(FileNotFoundError):
        if path.read_bytes() == text.encode():
            return
    draft = path.with_name(f".{path.name}.new")
    draft.write_text(text, encoding="utf-8")
    draft.chmod(mode)
    draft.replace(path)


def read(path: Path) -> str:
    """Return the text of a file; an empty string if it is missing or not text."""
    try:
        return path.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError, UnicodeDecodeError):
        return ""


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Hold an exclusive lock on a folder, across threads and processes.

    Raise NetworkError if the folder or its files cannot be written.
    """
    try:
        handle = os.open(folder(path), os.O_RDONLY | os.O_CLOEXEC)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)
    except OSError as error:
        raise NetworkError(f"the files in {path} cannot be written: {error}") from error
