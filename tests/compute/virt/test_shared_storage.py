"""Identity of the folders of guests: kept over a restart, also while their storage is not mounted."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
SERVICE = """
import sys
from pathlib import Path
from climate.compute.virt import shared_storage
from climate.compute.virt.process import ProcessDriver

driver = ProcessDriver(Path(sys.argv[1]))
print(shared_storage.identity(driver), shared_storage.trouble(driver))
"""


def started(folder: Path) -> tuple[str, str]:
    """Return the identity and the trouble of a folder, as a new process sees them."""
    argv = [sys.executable, "-c", SERVICE, str(folder)]
    said = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    identity, _, trouble = said.strip().partition(" ")
    return identity, trouble


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of guests on storage that is mounted by a link."""
    (tmp_path / "storage").mkdir()
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "servers").symlink_to(tmp_path / "storage")
    return tmp_path / "home" / "servers"


def test_a_folder_keeps_its_identity_over_a_restart(folder: Path) -> None:
    first = started(folder)
    assert first[0]
    assert first[1] == "None"
    assert started(folder) == first


@pytest.mark.parametrize("below", ["an empty folder", "nothing"])
def test_a_service_that_is_started_without_its_storage_has_failed_until_it_is_mounted(
    folder: Path, tmp_path: Path, below: str
) -> None:
    first = started(folder)
    (tmp_path / "storage").rename(tmp_path / "away")
    if below == "an empty folder":
        (tmp_path / "storage").mkdir()
    identity, trouble = started(folder)
    assert identity == first[0]
    assert "has lost its file .disks: mount its storage" in trouble
    assert not (tmp_path / "storage" / ".disks").exists()
    if below == "an empty folder":
        (tmp_path / "storage").rmdir()
    (tmp_path / "away").rename(tmp_path / "storage")
    assert started(folder) == first


def test_a_folder_has_its_identity_although_that_cannot_be_recorded_beside_it(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "home" / "servers.disks").symlink_to(tmp_path / "a full disk" / "file")
    first = started(folder)
    assert first[0] == (tmp_path / "storage" / ".disks").read_text().strip()
    assert first[1] == "None"
    assert started(folder) == first


def test_other_storage_has_another_identity(folder: Path, tmp_path: Path) -> None:
    first = started(folder)
    (tmp_path / "storage").rename(tmp_path / "away")
    (tmp_path / "storage").mkdir()
    (tmp_path / "home" / "servers.disks").unlink()
    second = started(folder)
    assert second[0] != first[0]
    assert second[1] == "None"
