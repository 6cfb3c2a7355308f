"""Disks of virtual machines: made from images that nobody need trust, grown and copied with qemu-img."""

import os
import struct
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

from climate.compute.errors import VirtError
from climate.compute.virt.guest_folders import marks

GB = 1 << 30
ROOM_GB = 10
"""Largest image for a guest whose flavor has no disk of its own."""

_MAGIC = b"QFI\xfb"
_HEADER = struct.Struct(">4sIQIIQ")
_FEATURES = struct.Struct(">Q")
_FEATURES_AT = 72
_DATA_ELSEWHERE = 1 << 2


def make(program: str, image: Path | None, disk: Path, size_gb: int, seconds: float) -> None:
    """A disk with what the image holds, or empty, as large as asked for, in one step; its folder is the guest's."""
    draft = disk.with_name(f"{disk.name}.new")
    if image is None:
        create(program, draft, (size_gb or 1) * GB)
    else:
        with image.open("rb") as file:
            kind, size = _kind_and_size(file)
            room = size_gb or ROOM_GB
            if size > room * GB:
                raise VirtError(f"the image needs a disk of {-(-size // GB)} GB, and there are {room} GB")
            # The file that was looked at is handed on, and not its name, which may stand for another one by now.
            words = (program, "convert", "-f", kind, "-O", "qcow2", f"/dev/fd/{file.fileno()}", str(draft))
            # Marked as the guest's: it lives on when its worker is killed, and is ended before another draft is begun.
            _run(seconds, *words, mark=marks(disk.parent), file=file.fileno())
        grow(program, draft, size_gb)
    draft.replace(disk)


def create(program: str, disk: Path, size: int) -> None:
    """An empty disk of so many bytes."""
    _run(60.0, program, "create", "-q", "-f", "qcow2", str(disk), str(size))


def grow(program: str, disk: Path, size_gb: int) -> None:
    """See to it that a disk is at least so large; one that is larger stays as it is."""
    if size_of(disk) < size_gb * GB:
        _run(60.0, program, "resize", "-q", "-f", "qcow2", str(disk), str(size_gb * GB))


def copy(program: str, disk: Path, target: Path, seconds: float) -> None:
    """A standalone copy of a disk that nobody uses."""
    _run(seconds, program, "convert", "-f", "qcow2", "-O", "qcow2", str(disk), str(target))


def size_of(disk: Path) -> int:
    """How large the guest sees a disk, in bytes."""
    with disk.open("rb") as file:
        return _kind_and_size(file)[1]


def _kind_and_size(file: BinaryIO) -> tuple[str, int]:
    """qcow2 or raw, by what the file says and by nothing else, and the size of the disk in it, in bytes.

    An image is whatever its owner likes: one that names other files must not be opened.
    """
    head = file.read(_FEATURES_AT + _FEATURES.size)
    if not head.startswith(_MAGIC):
        return "raw", os.fstat(file.fileno()).st_size
    if len(head) < _FEATURES_AT + _FEATURES.size:
        raise VirtError("the image is a damaged qcow2")
    _, version, elsewhere, _, _, size = _HEADER.unpack_from(head)
    features = _FEATURES.unpack_from(head, _FEATURES_AT)[0] if version > 2 else 0
    if elsewhere or features & _DATA_ELSEWHERE:
        raise VirtError("the image needs another file: only images that stand alone can be used")
    return "qcow2", size


def _run(seconds: float, *command: str, mark: Mapping[str, str] | None = None, file: int | None = None) -> None:
    try:
        done = subprocess.run(  # noqa: S603  (paths of ours, formats that were checked)
            command,
            env={"PATH": "/usr/bin:/bin", **(mark or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=seconds,
            pass_fds=() if file is None else (file,),
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise VirtError(f"qemu-img {command[1]} takes longer than {seconds:g} s") from None
    if done.returncode:
        raise VirtError(f"qemu-img {command[1]}: {done.stderr.strip() or done.returncode}")
