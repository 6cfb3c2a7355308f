"""Files that other programs read while they are written: in one step, and readable for all."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from climate.compute.errors import NetworkError

_MODE = 0o644


def folder(path: Path) -> Path:
    """A folder that others may look into, made when it is not there."""
    if not path.is_dir():
        path.mkdir(parents=True, exist_ok=True)
        path.chmod(0o755)
    return path


def write(path: Path, text: str, mode: int = _MODE) -> None:
    """Have this text in the file; one that has it already is not touched."""
    with suppress(FileNotFoundError):
        if path.read_bytes() == text.encode():
            return
    draft = path.with_name(f".{path.name}.new")
    draft.write_text(text, encoding="utf-8")
    draft.chmod(mode)
    draft.replace(path)


def read(path: Path) -> str:
    """What is in the file; nothing when it is not there or not a text."""
    try:
        return path.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError, UnicodeDecodeError):
        return ""


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Work on a folder while nobody else does who asks in the same way, in this process or in another.

    NetworkError when the folder, or what is in it, cannot be written.
    """
    try:
        handle = os.open(folder(path), os.O_RDONLY | os.O_CLOEXEC)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)
    except OSError as error:
        raise NetworkError(f"the files in {path} cannot be kept: {error}") from error
