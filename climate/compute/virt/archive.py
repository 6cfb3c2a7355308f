"""Guest contents as tar archives, unpacked without trusting the archive."""

import os
import tarfile
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from climate.compute.errors import VirtError
from climate.compute.virt import tar_reader
from climate.compute.virt.tar_reader import DAMAGED, ENTRY_BYTES, Reader

ROOM_GB = 10
"""Size limit in GB of a guest without a disk size."""

NAME_LENGTH, DEPTH = 4096, 128
"""Maximum length of a path in an archive, the longest that Linux takes, and the maximum number of its parts."""


def pack(paths: Iterable[tuple[Path, str]], target: Path) -> None:
    """Pack files and folders under the given names into `target`, atomically.

    Raise VirtError for folders that are nested too deeply.
    """
    draft = target.with_name(f"{target.name}.new")
    try:
        with tarfile.open(draft, "w:gz") as archive:
            for path, name in paths:
                archive.add(path, name, filter=_ours)
        draft.replace(target)
    except RecursionError:
        raise VirtError("the disk has folders that are nested too deeply for an archive") from None
    finally:
        draft.unlink(missing_ok=True)


def is_archive(source: Path) -> bool:
    """Return whether a file is a tar archive with members, compressed or not."""
    try:
        with tar_reader.opened(source) as stream:
            return any(True for _ in Reader(stream, ROOM_GB))
    except DAMAGED:
        return False
    except OSError as error:
        if error.errno is not None:
            raise
        return False  # gzip and bz2 report damaged data so


def unpack(source: Path, folder: Path, size_gb: int) -> None:
    """Unpack an archive strictly inside `folder`. Raise VirtError if it is damaged or too large."""
    try:
        with tar_reader.opened(source) as stream:
            reader = Reader(stream, size_gb or ROOM_GB)
            for member in reader:
                extract_member(reader, member, folder)
    except DAMAGED as error:
        raise VirtError(f"the image is not a usable tar archive: {error}") from error


def extract_member(reader: Reader, member: tarfile.TarInfo, folder: Path) -> None:
    """Create a member strictly inside `folder`. Raise VirtError, OSError."""
    target = _inside(reader, folder, member.name)
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
        os.link(_inside(reader, folder, member.linkname), target, follow_symlinks=False)
    elif member.isfile():
        with target.open("xb") as file:
            reader.write(file)
        target.chmod(0o600 | member.mode & 0o777)


def _inside(reader: Reader, folder: Path, name: str) -> Path:
    """Return the path of a name below `folder`, with parents created and free of links."""
    if len(name) > NAME_LENGTH:
        raise VirtError(f"the image has a path of more than {NAME_LENGTH} characters: {name[:80]!r}")
    parts = [part for part in PurePosixPath(name).parts if part != "/"]
    if len(parts) > DEPTH:
        raise VirtError(f"the image has a path of more than {DEPTH} parts: {name[:80]!r}")
    if ".." in parts:
        raise VirtError(f"the image has a path outside its root: {name!r}")
    place = folder
    for part in parts[:-1]:
        place /= part
        if place.is_symlink():
            raise VirtError(f"the image has a path through a link: {name!r}")
        if not place.is_dir():
            reader.charge(ENTRY_BYTES)
            place.mkdir(exist_ok=True)
    return folder.joinpath(*parts)


def _ours(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """Return files, folders and links with a neutral owner; None for devices and pipes."""
    if not (member.isfile() or member.isdir() or member.issym() or member.islnk()):
        return None
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member
