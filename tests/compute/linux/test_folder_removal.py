"""Folders of guests are deleted, whatever a guest has put into them."""

import os
import subprocess
from pathlib import Path

import pytest

from climate.compute.linux import folder_removal

DEPTH = 3000


def nested(folder: Path) -> None:
    """Nest folders deeper than a path of the kernel is long."""
    here = os.open(folder, os.O_RDONLY)
    for _ in range(DEPTH):
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)


def test_folders_that_are_nested_deeply_are_deleted(tmp_path: Path) -> None:
    folder = tmp_path / "guest"
    folder.mkdir()
    nested(folder)
    folder_removal.remove(folder)
    assert not folder.exists()


def test_folders_without_permissions_are_deleted(tmp_path: Path) -> None:
    inner = tmp_path / "guest" / "closed" / "inner"
    inner.mkdir(parents=True)
    (inner / "file").write_text("x")
    inner.parent.chmod(0)
    folder_removal.remove(tmp_path / "guest")
    assert not (tmp_path / "guest").exists()


def test_a_folder_that_is_gone_is_no_error(tmp_path: Path) -> None:
    folder_removal.remove(tmp_path / "gone")


def test_what_cannot_be_deleted_is_an_error(tmp_path: Path) -> None:
    """A folder in which a file system is mounted."""
    folder = tmp_path / "guest"
    (folder / "mounted").mkdir(parents=True)
    nested(folder)
    if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "none", folder / "mounted"]).returncode:
        subprocess.run(["rm", "-rf", "--", folder], check=True)
        pytest.skip("file systems cannot be mounted here")
    try:
        with pytest.raises(OSError, match=r"busy|cannot be deleted"):
            folder_removal.remove(folder)
    finally:
        subprocess.run(["umount", folder / "mounted"], check=True)
        subprocess.run(["rm", "-rf", "--", folder], check=True)
