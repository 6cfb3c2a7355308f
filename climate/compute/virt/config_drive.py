"""Config drive in a guest's folder: metadata and user data, in the format of cloud-init."""

import os
import shutil
from pathlib import Path

from climate.compute.virt import Guest, iso9660

LABEL = "config-2"
"""Volume label by which cloud-init and Nova find the drive."""

DISK = "config.iso"
"""Image file of a virtual machine's config drive."""
FOLDER = "config"
"""Folder with the files, for a guest without disks."""


def write_disk(home: Path, guest: Guest) -> None:
    """Write the drive as a disk in the guest's folder; delete it if there are no files."""
    disk = home / DISK
    if not guest.config:
        disk.unlink(missing_ok=True)
        return
    draft = disk.with_name(f"{DISK}.new")
    # User data may contain keys, so only the owner may read it.
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(iso9660.image(guest.config, LABEL))
    draft.replace(disk)


def write_folder(home: Path, guest: Guest) -> None:
    """Write the files to a folder in the guest's folder; delete it if there are no files."""
    folder = home / FOLDER
    shutil.rmtree(folder, ignore_errors=True)
    if guest.config:
        folder.mkdir(mode=0o700)
    for path, content in guest.config.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as opened:
            opened.write(content)
