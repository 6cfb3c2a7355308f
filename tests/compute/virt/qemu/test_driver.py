"""What is particular to virtual machines: disks, memory on disk, the power button, and what goes wrong."""

import json
import os
import signal
import struct
import subprocess
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from climate.compute.errors import VirtError
from climate.compute.linux import processes
from climate.compute.virt import Guest, Interface, State
from climate.compute.virt.qemu import command_line, disks, qmp
from climate.compute.virt.qemu.driver import QemuDriver
from tests.compute.virt.driver_cases import PATIENCE, Subject, until

pytestmark = pytest.mark.slow


@pytest.fixture
def qemu(make_subject: Callable[[str], Subject]) -> Subject:
    return make_subject("qemu")


def folder(subject: Subject, guest: Guest) -> Path:
    assert subject.homes is not None
    return subject.homes.of(guest.id)


def described(disk: Path) -> dict[str, object]:
    """What qemu-img says of a disk that nobody has open."""
    done = subprocess.run(["qemu-img", "info", "--output=json", str(disk)], check=True, capture_output=True)
    return dict(json.loads(done.stdout))


def qcow2(path: Path, *options: str) -> Path:
    subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", *options, str(path), "1M"], check=True)
    return path


def with_seconds(subject: Subject, **seconds: float) -> QemuDriver:
    assert isinstance(subject.driver, QemuDriver)
    return replace(subject.driver, **seconds)  # type: ignore[arg-type]


def test_a_guest_that_is_asked_kindly_powers_off_by_itself(qemu: Subject) -> None:
    guest = qemu.guest()
    driver = with_seconds(qemu, stop_seconds=PATIENCE)
    driver.run(guest)
    qemu.said(guest)
    began = time.monotonic()
    driver.stop(guest)
    assert time.monotonic() - began < PATIENCE / 2
    assert qemu.state(guest) is State.DEAD


def test_a_guest_that_does_not_listen_is_stopped_all_the_same(qemu: Subject) -> None:
    guest = qemu.guest(image=None)
    driver = with_seconds(qemu, stop_seconds=0.1)
    driver.run(guest)
    driver.stop(guest)
    assert qemu.state(guest) is State.DEAD


def test_a_guest_that_powers_itself_off_is_dead(qemu: Subject) -> None:
    guest = qemu.guest()
    qemu.driver.run(guest)
    qemu.said(guest)
    with qmp.connect(folder(qemu, guest), PATIENCE) as monitor:
        monitor.execute("system_powerdown")
    until(lambda: qemu.state(guest) is State.DEAD, "it goes on")


def test_a_resumed_guest_goes_on_where_it_was(qemu: Subject) -> None:
    guest = qemu.guest()
    qemu.driver.run(guest)
    qemu.said(guest)
    qemu.goes_on(guest)
    pid = qemu.pid(guest)
    qemu.driver.suspend(guest)
    assert qemu.state(guest) is State.SUSPENDED
    assert processes.state(pid) is None
    qemu.driver.resume(guest)
    qemu.goes_on(guest)
    assert qemu.driver.console(guest, None).count("boot finished") == 1
    assert not (folder(qemu, guest) / "memory").exists()


def test_a_suspended_guest_that_is_stopped_boots_anew(qemu: Subject) -> None:
    guest = qemu.guest()
    qemu.driver.run(guest)
    qemu.said(guest)
    qemu.driver.suspend(guest)
    qemu.driver.stop(guest)
    assert qemu.state(guest) is State.DEAD
    qemu.driver.run(guest)
    until(lambda: qemu.driver.console(guest, None).count("boot finished") == 2, "it went on instead")


def test_a_suspending_that_broke_off_is_taken_up_again(qemu: Subject) -> None:
    """Killed between having written the memory and having said so."""
    guest = qemu.guest()
    qemu.driver.run(guest)
    qemu.said(guest)
    with qmp.connect(folder(qemu, guest), PATIENCE) as monitor, (folder(qemu, guest) / "memory.new").open("wb") as kept:
        monitor.execute("stop")
        monitor.execute("getfd", [kept.fileno()], fdname="memory")
        monitor.execute("migrate", uri="fd:memory")
        until(lambda: monitor.execute("query-migrate")["status"] == "completed", "no end")
    assert qemu.state(guest) is State.PAUSED
    qemu.driver.suspend(guest)
    assert qemu.state(guest) is State.SUSPENDED
    qemu.driver.resume(guest)
    qemu.goes_on(guest)
    assert qemu.driver.console(guest, None).count("boot finished") == 1


def test_damaged_memory_is_an_error_and_the_disk_is_still_there(qemu: Subject) -> None:
    guest = qemu.guest()
    qemu.driver.run(guest)
    qemu.driver.suspend(guest)
    (folder(qemu, guest) / "memory").write_bytes(b"nothing of the kind")
    with pytest.raises(VirtError, match="QEMU"):
        qemu.driver.resume(guest)
    assert qemu.state(guest) is State.SUSPENDED
    qemu.driver.stop(guest)
    qemu.driver.run(guest)
    assert qemu.said(guest)


def test_a_snapshot_stands_alone(qemu: Subject, tmp_path: Path) -> None:
    guest = qemu.guest()
    qemu.driver.run(guest)
    qemu.goes_on(guest)
    for _ in range(2):
        qemu.driver.snapshot(guest, tmp_path / "image")
    qemu.goes_on(guest)
    found = described(tmp_path / "image")
    assert (found["format"], found["virtual-size"], found.get("backing-filename")) == ("qcow2", disks.GB, None)
    qemu.driver.delete(guest.id)
    copy = qemu.guest(image=tmp_path / "image")
    qemu.driver.run(copy)
    assert qemu.said(copy)


def test_a_copy_that_nobody_waits_for_does_not_hinder_the_next(qemu: Subject, tmp_path: Path) -> None:
    guest = qemu.guest()
    qemu.driver.run(guest)
    disks.create("qemu-img", tmp_path / "left", disks.GB)
    with qmp.connect(folder(qemu, guest), PATIENCE) as monitor:
        file = {"driver": "file", "filename": str(tmp_path / "left")}
        monitor.execute("blockdev-add", node_name="climate-copy", driver="qcow2", file=file)
        copy = {"device": "disk", "target": "climate-copy", "sync": "full", "speed": 1}
        monitor.execute("blockdev-backup", job_id="climate-copy", **copy)
    qemu.driver.snapshot(guest, tmp_path / "image")
    assert described(tmp_path / "image")["virtual-size"] == disks.GB


def test_a_disk_is_as_large_as_asked_for_and_never_shrinks(qemu: Subject) -> None:
    guest = qemu.guest(disk_gb=2)
    qemu.driver.run(guest)
    for wanted, size in ((3, 3), (1, 3)):
        qemu.driver.stop(guest, kindly=False)
        qemu.driver.run(replace(guest, disk_gb=wanted))
        qemu.driver.stop(guest, kindly=False)
        assert described(folder(qemu, guest) / "disk.qcow2")["virtual-size"] == size * disks.GB


def test_an_image_that_names_another_file_is_refused(qemu: Subject, tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"s" * 4096)
    backed = qcow2(tmp_path / "backed", "-b", str(tmp_path / "secret"), "-F", "raw")
    split = qcow2(tmp_path / "split", "-o", f"data_file={tmp_path}/data,data_file_raw=on")
    for image in (backed, split):
        guest = qemu.guest(image=image)
        with pytest.raises(VirtError, match="standalone"):
            qemu.driver.run(guest)
        assert not (folder(qemu, guest) / "disk.qcow2").exists()


def test_the_file_that_was_looked_at_is_the_one_that_is_read(qemu: Subject, tmp_path: Path) -> None:
    """Whoever replaces an image between the look and the copy gains nothing."""
    image, program = tmp_path / "image", tmp_path / "program"
    image.write_bytes(b"harmless".ljust(512, b"\0"))
    qcow2(tmp_path / "backed", "-b", "/etc/passwd", "-F", "raw")
    program.write_text(f'#!/bin/sh\nmv -f {tmp_path}/backed {image} 2>/dev/null\nexec qemu-img "$@"\n')
    program.chmod(0o755)
    disks.build(str(program), image, tmp_path / "disk", 0, PATIENCE)
    subprocess.run(["qemu-img", "convert", "-O", "raw", str(tmp_path / "disk"), str(tmp_path / "raw")], check=True)
    assert not (tmp_path / "backed").exists()
    assert (tmp_path / "raw").read_bytes().startswith(b"harmless")


def test_what_looks_like_a_description_is_only_bytes(qemu: Subject, tmp_path: Path) -> None:
    """A VMDK may name files as well: whatever is no qcow2 is the disk itself."""
    text = b'# Disk DescriptorFile\nversion=1\ncreateType="monolithicFlat"\nRW 8 FLAT "/etc/passwd" 0\n'
    (tmp_path / "image").write_bytes(text.ljust(1024, b"\0"))
    disks.build("qemu-img", tmp_path / "image", tmp_path / "disk", 0, PATIENCE)
    subprocess.run(["qemu-img", "convert", "-O", "raw", str(tmp_path / "disk"), str(tmp_path / "raw")], check=True)
    assert (tmp_path / "raw").read_bytes().startswith(text)


@pytest.mark.parametrize(("asked", "room"), [(0, disks.ROOM_GB), (2, 2)])
def test_an_image_larger_than_the_disk_is_refused(qemu: Subject, tmp_path: Path, asked: int, room: int) -> None:
    (tmp_path / "image").write_bytes(struct.pack(">4sIQIIQ", b"QFI\xfb", 3, 0, 0, 16, 1 << 50).ljust(112, b"\0"))
    with pytest.raises(VirtError, match=f"there are {room} GB"):
        qemu.driver.run(qemu.guest(image=tmp_path / "image", disk_gb=asked))


@pytest.mark.parametrize("content", [b"QFI\xfb", b"QFI\xfb" + b"\xff" * 200, b"QFI\xfb\0\0\0\x03" + b"\0" * 200])
def test_a_damaged_image_is_reported(qemu: Subject, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "image").write_bytes(content)
    with pytest.raises(VirtError, match=r"image|qemu-img"):
        qemu.driver.run(qemu.guest(image=tmp_path / "image"))


def test_a_machine_that_does_not_come_up_is_an_error_with_the_reason(qemu: Subject) -> None:
    guest = qemu.guest(interfaces=(Interface("no mac"),))
    with pytest.raises(VirtError, match="no mac"):
        qemu.driver.run(guest)
    assert qemu.state(guest) is State.DEAD
    qemu.driver.run(replace(guest, interfaces=()))
    assert qemu.state(guest) is State.RUNNING


def test_a_monitor_that_is_silent_is_an_error_and_no_hang(tmp_path: Path) -> None:
    with qmp.listen(tmp_path), pytest.raises(VirtError, match=r"within 0\.1 s"), qmp.connect(tmp_path, 0.1):
        pass
    with pytest.raises(VirtError, match="has ended"), qmp.connect(tmp_path, 0.1):
        pass


def test_while_somebody_else_speaks_to_it_a_guest_is_taken_to_run(qemu: Subject) -> None:
    guest = qemu.guest()
    qemu.driver.run(guest)
    with qmp.connect(folder(qemu, guest), PATIENCE):
        assert with_seconds(qemu, look_seconds=0.1).states() == {guest.id: State.RUNNING}


def test_a_stray_machine_is_found_without_its_pid_file(qemu: Subject) -> None:
    guest = qemu.guest()
    qemu.driver.run(guest)
    stray = qemu.pid(guest)
    (folder(qemu, guest) / "pid").unlink()
    qemu.driver.run(guest)
    assert processes.state(stray) is None
    assert qemu.state(guest) is State.RUNNING


def test_a_machine_that_stands_still_does_not_stop_its_driver(qemu: Subject) -> None:
    """Stopped by a signal, it answers nothing: it is ended all the same."""
    guest = qemu.guest()
    driver = with_seconds(qemu, stop_seconds=0.1, start_seconds=0.2, look_seconds=0.2)
    qemu.driver.run(guest)
    os.kill(qemu.pid(guest).number, signal.SIGSTOP)
    with pytest.raises(VirtError, match="does not answer"):
        driver.pause(guest)
    driver.delete(guest.id)
    assert qemu.left(guest) == []


@pytest.mark.parametrize(
    ("flags", "device", "chosen"),
    [("fpu vmx sse", True, "kvm"), ("fpu svm", True, "kvm"), ("fpu", True, "tcg"), ("fpu vmx", False, "tcg")],
)
def test_kvm_is_chosen_only_where_ordinary_kernels_run_on_it(
    tmp_path: Path, flags: str, device: bool, chosen: str
) -> None:
    (tmp_path / "cpuinfo").write_text(f"processor : 0\nflags : {flags}\n")
    if device:
        (tmp_path / "kvm").touch()
    assert command_line.accelerator("auto", tmp_path / "kvm", tmp_path / "cpuinfo") == chosen
    assert command_line.accelerator("tcg", tmp_path / "kvm", tmp_path / "cpuinfo") == "tcg"
    assert command_line.accelerator("kvm", tmp_path / "none", tmp_path / "cpuinfo") == "kvm"


def test_a_machine_has_the_sizes_and_interfaces_of_its_guest(qemu: Subject) -> None:
    macs = ["fa:16:3e:00:00:01", "fa:16:3e:00:00:02"]
    guest = qemu.guest(vcpus=2, ram_mb=24, interfaces=tuple(map(Interface, macs)))
    qemu.driver.run(guest)
    with qmp.connect(folder(qemu, guest), PATIENCE) as monitor:
        assert len(monitor.execute("query-cpus-fast")) == 2
        assert monitor.execute("query-memory-size-summary")["base-memory"] == 24 << 20
        assert [nic["main-mac"] for nic in monitor.execute("query-rx-filter")] == macs
        assert monitor.execute("query-uuid")["UUID"] == guest.id
