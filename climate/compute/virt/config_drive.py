"""The config drive in a guest's folder: files with its metadata and user data, as cloud-init reads them."""

import os
import shutil
from pathlib import Path

from climate.compute.virt import Guest, iso9660

LABEL = "config-2"
"""Source: cloud-init and Nova know the drive by this label."""

DISK = "config.iso"
"""The drive of a virtual machine."""
FOLDER = "config"
"""The files of a guest that has no disks of its own."""


def write_disk(home: Path, guest: Guest) -> None:
    """Have the drive as a disk in the guest's folder, or none where there is nothing to tell."""
    disk = home / DISK
    if not guest.config:
        disk.unlink(missing_ok=True)
        return
    draft = disk.with_name(f"{DISK}.new")
    # Only its owner reads it: user data may hold keys.
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(iso9660.image(guest.config, LABEL))
    draft.replace(disk)


def write_folder(home: Path, guest: Guest) -> None:
    """Have the files in a folder in the guest's folder, or no such folder where there is nothing to tell."""
    folder = home / FOLDER
    shutil.rmtree(folder, ignore_errors=True)
    if guest.config:
        folder.mkdir(mode=0o700)
    for path, content in guest.config.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as opened:
            opened.write(content)
