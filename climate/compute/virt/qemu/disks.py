"""Disks of virtual machines: built from untrusted images, grown and copied with qemu-img."""

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
"""Maximum size of an image in GB, for a flavor without a disk size."""

_MAGIC = b"QFI\xfb"
_HEADER = struct.Struct(">4sIQIIQ")
_FEATURES = struct.Struct(">Q")
_FEATURES_AT = 72
_DATA_ELSEWHERE = 1 << 2


def build(program: str, image: Path | None, disk: Path, size_gb: int, seconds: float) -> None:
    """Build a disk of the given size from an image, or empty, atomically; its folder is the guest's."""
    draft = disk.with_name(f"{disk.name}.new")
    if image is None:
        create(program, draft, (size_gb or 1) * GB)
    else:
        with image.open("rb") as file:
            kind, size = _kind_and_size(file)
            room = size_gb or ROOM_GB
            if size > room * GB:
                raise VirtError(f"the image needs a disk of {-(-size // GB)} GB, and there are {room} GB")
            # Pass the opened file, because its name may refer to another file by now.
            words = (program, "convert", "-f", kind, "-O", "qcow2", f"/dev/fd/{file.fileno()}", str(draft))
            # The mark lets the next attempt end this process if its worker is killed.
            _run(seconds, *words, mark=marks(disk.parent), file=file.fileno())
        grow(program, draft, size_gb)
    draft.replace(disk)


def create(program: str, disk: Path, size: int) -> None:
    """Create an empty disk of so many bytes."""
    _run(60.0, program, "create", "-q", "-f", "qcow2", str(disk), str(size))


def grow(program: str, disk: Path, size_gb: int) -> None:
    """Ensure that a disk has at least this size; it never shrinks."""
    if size_of(disk) < size_gb * GB:
        _run(60.0, program, "resize", "-q", "-f", "qcow2", str(disk), str(size_gb * GB))


def copy(program: str, disk: Path, target: Path, seconds: float) -> None:
    """Copy an unused disk into a standalone one."""
    _run(seconds, program, "convert", "-f", "qcow2", "-O", "qcow2", str(disk), str(target))


def size_of(disk: Path) -> int:
    """Return the virtual size of a disk in bytes."""
    with disk.open("rb") as file:
        return _kind_and_size(file)[1]


def _kind_and_size(file: BinaryIO) -> tuple[str, int]:
    """Return qcow2 or raw, from the file's header alone, and the virtual size in bytes.

    Images are untrusted: one that refers to other files must not be opened.
    """
    head = file.read(_FEATURES_AT + _FEATURES.size)
    if not head.startswith(_MAGIC):
        return "raw", os.fstat(file.fileno()).st_size
    if len(head) < _FEATURES_AT + _FEATURES.size:
        raise VirtError("the image is a damaged qcow2")
    _, version, elsewhere, _, _, size = _HEADER.unpack_from(head)
    features = _FEATURES.unpack_from(head, _FEATURES_AT)[0] if version > 2 else 0
    if elsewhere or features & _DATA_ELSEWHERE:
        raise VirtError("the image refers to another file: only standalone images can be used")
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
        raise VirtError(f"qemu-img {command[1]} timed out after {seconds:g} s") from None
    if done.returncode:
        raise VirtError(f"qemu-img {command[1]}: {done.stderr.strip() or done.returncode}")
