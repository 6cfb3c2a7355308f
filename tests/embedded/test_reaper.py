"""The guard unmounts what servers had of volumes."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from climate.embedded import reaper
from tests.compute.virt.driver_cases import cannot


@pytest.fixture
def mounted(tmp_path: Path) -> Iterator[Path]:
    """A folder below the volumes of a home, with a blank in its name, on which something is mounted."""
    folder = tmp_path / "the home" / reaper.VOLUMES / "local" / "one" / "data"
    folder.mkdir(parents=True)
    command = ["mount", "-t", "tmpfs", "none", str(folder)]
    if os.geteuid() != 0 or subprocess.run(command, check=False, capture_output=True).returncode:
        cannot("this process may not mount")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=False, capture_output=True)


def test_volumes_are_unmounted_at_the_end(mounted: Path, tmp_path: Path) -> None:
    assert reaper.mounted_below(str(tmp_path)) == [str(mounted)]
    reaper.end_all({}, tmp_path / "other")
    assert os.path.ismount(mounted)
    reaper.end_all({}, tmp_path / "the home")
    assert not os.path.ismount(mounted)
