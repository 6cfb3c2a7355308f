"""Guest contents as tar archives, unpacked without trusting the archive."""

import lzma
import os
import shutil
import tarfile
import zlib
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from climate.compute.errors import VirtError

GB = 1 << 30
ROOM_GB = 10
"""Size limit in GB of a guest without a disk size."""

_ENTRY_BYTES = 512
_DAMAGED = (tarfile.TarError, zlib.error, lzma.LZMAError, EOFError, ValueError)


def pack(paths: Iterable[tuple[Path, str]], target: Path) -> None:
    """Pack files and folders under the given names into `target`, atomically."""
    draft = target.with_name(f"{target.name}.new")
    try:
        with tarfile.open(draft, "w:gz") as archive:
            for path, name in paths:
                archive.add(path, name, filter=_ours)
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)


def is_archive(source: Path) -> bool:
    """Return whether a file is a tar archive, compressed or not."""
    try:
        return tarfile.is_tarfile(source)
    except _DAMAGED:
        return False


def unpack(source: Path, folder: Path, size_gb: int) -> None:
    """Unpack an archive strictly inside `folder`. Raise VirtError if it is damaged or too large."""
    try:
        with tarfile.open(source) as archive:
            _put_all(archive, folder, size_gb or ROOM_GB)
    except _DAMAGED as error:
        raise VirtError(f"the image is not a usable tar archive: {error}") from error


def _put_all(archive: tarfile.TarFile, folder: Path, room_gb: int) -> None:
    room = room_gb * GB
    for member in archive:
        room -= member.size + _ENTRY_BYTES
        if room < 0:
            raise VirtError(f"the image holds more than {room_gb} GB")
        _put(archive, member, folder)


def _put(archive: tarfile.TarFile, member: tarfile.TarInfo, folder: Path) -> None:
    target = _inside(folder, member.name)
    if target == folder:
        return
    if target.is_symlink() or not member.isdir():
        target.unlink(missing_ok=True)
    if member.isdir():
        target.mkdir(exist_ok=True)
        target.chmod(0o700 | member.mode & 0o777)
    elif member.issym():
        target.symlink_to(member.linkname)
    elif member.islnk():
        os.link(_inside(folder, member.linkname), target, follow_symlinks=False)
    elif member.isfile():
        _write(archive, member, target)


def _write(archive: tarfile.TarFile, member: tarfile.TarInfo, target: Path) -> None:
    content = archive.extractfile(member)
    with target.open("xb") as file:
        if content is not None:
            shutil.copyfileobj(content, file)
    target.chmod(0o600 | member.mode & 0o777)


def _inside(folder: Path, name: str) -> Path:
    """Return the path of a name below `folder`, with parents created and free of links."""
    parts = [part for part in PurePosixPath(name).parts if part != "/"]
    if ".." in parts:
        raise VirtError(f"the image has a path outside its root: {name!r}")
    place = folder
    for part in parts[:-1]:
        place /= part
        if place.is_symlink():
            raise VirtError(f"the image has a path through a link: {name!r}")
        place.mkdir(exist_ok=True)
    return folder.joinpath(*parts)


def _ours(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """Return files, folders and links with a neutral owner; None for devices and pipes."""
    if not (member.isfile() or member.isdir() or member.issym() or member.islnk()):
        return None
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member
