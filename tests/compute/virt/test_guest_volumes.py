"""Volumes of guests: folders of processes and containers, disks of virtual machines."""

import os
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest

from climate.compute import volume_directory
from climate.compute.errors import BadRequest, VirtError
from climate.compute.linux import processes
from climate.compute.virt import State
from climate.compute.virt.guest_volumes import Attached
from climate.compute.virt.qemu import qmp
from climate.compute.volume_directory import DATA, GB, PLAIN, Directory
from tests.compute.virt.driver_cases import Subject, cannot


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[Directory]:
    """The driver of volumes, with whatever is mounted below it unmounted afterwards."""
    driver = Directory(tmp_path / "volumes")
    yield driver
    for folder in driver.folder.glob(f"*/*/{DATA}"):
        if os.path.ismount(folder):
            subprocess.run(["umount", "-l", str(folder)], check=True)


def volume(directory: Directory, device: int = 1, size_gb: int = 1) -> Attached:
    volume_id = str(uuid4())
    directory.ensure("local", volume_id, size_gb)
    return Attached(volume_id, device, directory.home("local", volume_id))


def test_a_volume_is_a_sparse_file_of_its_size(directory: Directory) -> None:
    one = volume(directory, size_gb=3)
    disk = one.disk()
    assert (disk.stat().st_size, disk.stat().st_blocks) == (3 * GB, 0)
    directory.ensure("local", one.id, 5)
    directory.ensure("local", one.id, 2)
    assert disk.stat().st_size == 5 * GB
    for _ in range(2):
        directory.delete("local", one.id)
        assert not one.home.exists()


@pytest.mark.parametrize("backend", ["nowhere", "../volumes", "local/..", "", "a b", "local\n"])
def test_backends_are_folders_and_nothing_else(directory: Directory, backend: str) -> None:
    assert directory.capacity_gb(backend) is None
    with pytest.raises(BadRequest, match="known are local"):
        directory.ensure(backend, str(uuid4()), 1)
    (directory.folder / "fast").mkdir(parents=True)
    assert (directory.capacity_gb("fast") or 0) > 0
    assert directory.names() == ["fast", "local"]


def test_a_folder_does_not_grow_beyond_the_size_of_its_volume(directory: Directory) -> None:
    one = volume(directory)
    folder = one.folder()
    if (one.home / PLAIN).exists():
        cannot("this process may not mount")
    with (folder / "large").open("wb") as file, pytest.raises(OSError, match="No space left"):
        os.posix_fallocate(file.fileno(), 0, 2 * GB)
    (folder / "large").unlink()
    (folder / "kept").write_text("words")
    volume_directory.release(one.home)
    assert not (folder / "kept").exists()
    directory.ensure("local", one.id, 2)
    assert (one.folder() / "kept").read_text() == "words", "what is there is not formatted again"
    space = os.statvfs(folder)
    assert space.f_blocks * space.f_frsize > 1.5 * GB, "it has grown with its volume"


def test_what_is_a_plain_folder_is_never_a_disk(directory: Directory) -> None:
    one = volume(directory)
    (one.home / PLAIN).touch()
    (one.folder() / "kept").write_text("words")
    assert not os.path.ismount(one.folder())
    with pytest.raises(VirtError, match="is in use as a folder"):
        one.disk()
    assert (one.folder() / "kept").read_text() == "words"


def test_a_process_finds_its_volumes_in_its_home(make_subject: Callable[[str], Subject], directory: Directory) -> None:
    subject = make_subject("process")
    one, other = volume(directory), volume(directory, 2)
    guest = subject.guest(volumes=(one,))
    subject.driver.run(guest)
    assert subject.homes is not None
    folder = subject.homes.of(guest.id) / "volumes"
    (folder / one.id / "file").write_text("words")
    volume_directory.release(one.home)  # as after a new start of the machine
    subject.driver.rewire(replace(guest, volumes=(one, other)))
    assert {place.name for place in folder.iterdir()} == {one.id, other.id}
    assert (folder / one.id / "file").read_text() == "words"
    subject.driver.rewire(replace(guest, volumes=(other,)))
    assert {place.name for place in folder.iterdir()} == {other.id}
    subject.driver.delete(guest.id)
    assert (one.folder() / "file").read_text() == "words", "a server that is deleted leaves its volumes alone"


def bound(subject: Subject, guest_id: str) -> list[str]:
    """Where volumes are, as a container sees it."""
    assert subject.homes is not None
    pid = subject.homes.pid(guest_id)
    assert pid is not None
    lines = Path(f"/proc/{pid.number}/mountinfo").read_text().splitlines()
    return sorted(place for line in lines if (place := line.split()[4]).startswith("/volumes/"))


def test_a_container_finds_its_volumes_when_it_starts(
    make_subject: Callable[[str], Subject], directory: Directory
) -> None:
    subject = make_subject("container")
    one = volume(directory)
    (one.folder() / "file").write_text("words")
    guest = subject.guest(volumes=(one,))
    subject.driver.run(guest)
    assert bound(subject, guest.id) == [f"/volumes/{one.id}"]
    inside = Path(f"/proc/{subject.pid(guest).number}/root/volumes/{one.id}/file")
    assert inside.read_text() == "words"


def test_volumes_are_bound_into_a_container_that_runs(
    make_subject: Callable[[str], Subject], directory: Directory
) -> None:
    if os.geteuid() != 0:
        cannot("only root can enter the mount namespace of a container")
    subject = make_subject("container")
    one, other = volume(directory), volume(directory, 2)
    guest = subject.guest()
    subject.driver.run(guest)
    before = subject.pid(guest)
    for _ in range(2):
        subject.driver.rewire(replace(guest, volumes=(one, other)))
        assert bound(subject, guest.id) == sorted(f"/volumes/{each.id}" for each in (one, other))
    (one.folder() / "file").write_text("words")
    assert Path(f"/proc/{before.number}/root/volumes/{one.id}/file").read_text() == "words"
    subject.driver.rewire(replace(guest, volumes=(other,)))
    assert bound(subject, guest.id) == [f"/volumes/{other.id}"]
    assert subject.pid(guest) == before, "it was not started anew"


def test_a_root_that_leads_volumes_elsewhere_is_refused(
    make_subject: Callable[[str], Subject], directory: Directory, tmp_path: Path
) -> None:
    subject = make_subject("container")
    guest = subject.guest()
    subject.driver.run(guest)
    subject.driver.stop(guest, kindly=False)
    assert subject.homes is not None
    (subject.homes.of(guest.id) / "disk/volumes").symlink_to(tmp_path)
    with pytest.raises(VirtError, match="there is a link instead of the folder /volumes"):
        subject.driver.run(replace(guest, volumes=(volume(directory),)))
    assert subject.state(guest) is State.DEAD


def disks(subject: Subject, guest_id: str) -> dict[str, str]:
    """Serial numbers of the devices on which a virtual machine finds volumes, by their files."""
    assert subject.homes is not None
    with qmp.connect(subject.homes.of(guest_id), 30) as monitor:
        found = [one for one in monitor.execute("query-block") if one.get("qdev") and one.get("inserted")]
    return {Path(one["inserted"]["file"]).parent.name: one["qdev"] for one in found if "disk.raw" in str(one)}


def test_disks_are_plugged_into_a_machine_that_runs(
    make_subject: Callable[[str], Subject], directory: Directory
) -> None:
    subject = make_subject("qemu")
    one, other = volume(directory), volume(directory, 2)
    guest = subject.guest(volumes=(one,), ram_mb=32)
    subject.driver.run(guest)
    assert set(disks(subject, guest.id)) == {one.id}
    for _ in range(2):
        subject.driver.rewire(replace(guest, volumes=(one, other)))
        assert set(disks(subject, guest.id)) == {one.id, other.id}
    subject.goes_on(guest)


def test_disks_survive_a_machine_that_sleeps(make_subject: Callable[[str], Subject], directory: Directory) -> None:
    subject = make_subject("qemu")
    one = volume(directory, 3)
    guest = subject.guest(ram_mb=32)
    subject.driver.run(guest)
    guest = replace(guest, volumes=(one,))
    subject.driver.rewire(guest)
    subject.driver.suspend(guest)
    subject.driver.resume(guest)
    assert set(disks(subject, guest.id)) == {one.id}
    subject.goes_on(guest)
    subject.driver.stop(guest, kindly=False)
    subject.driver.run(replace(guest, volumes=()))
    assert disks(subject, guest.id) == {}
    assert processes.state(subject.pid(guest)) is not None
