"""The config drive: what a guest is told is in its folder or on a disk of its own, for it alone to read."""

import os
import shutil
import struct
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from climate.compute.virt import Guest, iso9660
from climate.compute.virt.config_drive import DISK, FOLDER
from climate.compute.virt.containers.driver import CONFIG
from tests.compute.virt.driver_cases import Subject

FILES = {"openstack/latest/user_data": b"#!/bin/sh\necho secret\n", "openstack/latest/meta_data.json": b"{}"}


def home(subject: Subject, guest: Guest) -> Path:
    assert subject.homes is not None
    return subject.homes.of(guest.id)


def test_a_process_finds_its_files_in_its_folder(make_subject: Callable[[str], Subject]) -> None:
    subject = make_subject("process")
    guest = subject.guest(config=FILES)
    subject.driver.run(guest)
    folder = home(subject, guest) / FOLDER
    assert {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()} == FILES
    private = [folder, *(path for path in folder.rglob("*") if path.is_file())]
    assert {oct(path.stat().st_mode & 0o077) for path in private} == {"0o0"}
    subject.driver.stop(guest)
    subject.driver.run(replace(guest, config={}))
    assert not folder.exists()


def test_a_container_finds_its_files_behind_its_walls(make_subject: Callable[[str], Subject]) -> None:
    subject = make_subject("container")
    guest = subject.guest(config=FILES)
    subject.driver.run(guest)
    inside = Path(f"/proc/{subject.pid(guest).number}/root{CONFIG}")
    assert (inside / "openstack/latest/user_data").read_bytes() == FILES["openstack/latest/user_data"]
    assert os.statvfs(inside).f_flag & os.ST_RDONLY
    without = subject.guest()
    subject.driver.run(without)
    assert not Path(f"/proc/{subject.pid(without).number}/root{CONFIG}").exists()


def test_a_machine_has_its_files_on_a_cd_and_keeps_it_while_it_sleeps(make_subject: Callable[[str], Subject]) -> None:
    subject = make_subject("qemu")
    guest = subject.guest(config=FILES)
    subject.driver.run(guest)
    disk = home(subject, guest) / DISK
    first = disk.read_bytes()
    assert first == iso9660.image(FILES, "config-2")
    assert disk.stat().st_mode & 0o077 == 0
    assert any("ide-cd,drive=config" in line for line in subject.processes(guest))
    changed = replace(guest, config={"openstack/latest/user_data": b"other"})
    subject.driver.suspend(guest)
    subject.driver.resume(changed)
    subject.goes_on(guest)
    assert disk.read_bytes() == first
    subject.driver.stop(guest, kindly=False)
    subject.driver.run(changed)
    assert disk.read_bytes() == iso9660.image(changed.config, "config-2")
    subject.driver.stop(guest, kindly=False)
    subject.driver.run(replace(guest, config={}))
    assert not disk.exists()
    assert not any("ide-cd" in line for line in subject.processes(guest))


def read(image: bytes) -> dict[str, bytes]:
    """The files of an image, by the names of Rock Ridge: a reader that shares nothing with the writer."""
    volume = image[16 * 2048 : 17 * 2048]
    assert volume[:7] == b"\x01CD001\x01"
    assert struct.unpack_from("<I", volume, 80)[0] * 2048 == len(image)
    return dict(
        _inside(image, *struct.unpack_from("<4xI4x", volume, 156 + 2 - 4), length=_length(volume[156:]), above="")
    )


def _length(record: bytes) -> int:
    return int(struct.unpack_from("<I", record, 10)[0])


def _inside(image: bytes, sector: int, *, length: int, above: str) -> list[tuple[str, bytes]]:
    found: list[tuple[str, bytes]] = []
    at, number = sector * 2048, 0
    while at < sector * 2048 + length:
        size = image[at]
        if size == 0:
            at = (at // 2048 + 1) * 2048
            continue
        record, number, at = image[at : at + size], number + 1, at + size
        if number <= 2:  # itself and what is above it
            continue
        words = record[33 + record[32] + (record[32] + 1) % 2 :]
        name = above + words[words.index(b"NM") + 5 :][: words[words.index(b"NM") + 2] - 5].decode()
        place, content = struct.unpack_from("<I", record, 2)[0], _length(record)
        if record[25] & 2:
            found += _inside(image, place, length=content, above=f"{name}/")
        else:
            found.append((name, image[place * 2048 : place * 2048 + content]))
    return found


MANY = {f"deep/and-long-names-{number:04}-{'x' * 100}": b"%d" % number for number in range(50)}


@pytest.mark.parametrize("files", [FILES, MANY, {"empty": b"", "two/sectors": b"y" * 4096, "odd": b"z" * 2049}])
def test_an_image_holds_the_files_by_their_names(files: dict[str, bytes], tmp_path: Path) -> None:
    made = iso9660.image(files, "config-2")
    assert read(made) == files
    program = shutil.which("bsdtar")
    if program is not None:  # another reader, where there is one
        (tmp_path / "it.iso").write_bytes(made)
        listed = subprocess.run([program, "-tf", tmp_path / "it.iso"], capture_output=True, text=True, check=True)
        assert set(files) <= set(listed.stdout.splitlines())


@pytest.mark.parametrize("path", ["", "a//b", "x" * 201, "/root"])
def test_names_that_fit_no_record_are_refused(path: str) -> None:
    with pytest.raises(ValueError, match="is empty or longer"):
        iso9660.image({path: b""}, "config-2")
