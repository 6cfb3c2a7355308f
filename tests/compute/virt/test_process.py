"""What is particular to servers as plain processes."""

import fcntl
import os
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from climate.compute.linux import processes
from climate.compute.virt import Interface, State
from tests.compute.virt.driver_cases import Subject, until


@pytest.fixture
def process(make_subject: Callable[[str], Subject]) -> Subject:
    return make_subject("process")


def folder(subject: Subject, server_id: str) -> Path:
    assert subject.homes is not None
    return subject.homes.of(server_id)


def recognisable(pid: processes.Pid) -> processes.Pid:
    """The process, once the kernel has put its environment in place."""
    process = psutil.Process(pid.number)
    while "CLIMATE_SERVER" not in process.environ():
        with pytest.raises(psutil.TimeoutExpired):
            process.wait(0.005)
    return pid


def test_a_guest_tells_its_addresses(process: Subject) -> None:
    guest = process.guest(
        interfaces=(Interface("m1", ("10.10.0.2", "10.10.0.9")), Interface("m2", ("10.20.0.3",), "eth1"))
    )
    process.driver.run(guest)
    said = process.said(guest)
    assert "eth0 has address 10.10.0.2\nclimate: eth0 has address 10.10.0.9\n" in said
    assert "eth1 has address 10.20.0.3\n" in said
    assert os.getsid(process.pid(guest).number) == process.pid(guest).number


def test_a_guest_whose_pid_file_was_never_written_is_still_found(process: Subject) -> None:
    guest = process.guest()
    process.driver.run(guest)
    stray = recognisable(process.pid(guest))
    (folder(process, guest.id) / "pid").unlink()
    process.driver.run(guest)
    assert processes.state(stray) is None
    again = recognisable(process.pid(guest))
    (folder(process, guest.id) / "pid").unlink()
    process.driver.delete(guest.id)
    assert processes.state(again) is None


def test_a_number_used_again_is_not_the_guest(process: Subject) -> None:
    guest = process.guest()
    process.driver.run(guest)
    real = recognisable(process.pid(guest))
    (folder(process, guest.id) / "pid").write_text(f"{os.getpid()} 1\n")
    assert process.driver.states() == {guest.id: State.DEAD}
    process.driver.delete(guest.id)
    assert processes.state(real) is None


def test_a_guest_begins_with_what_its_image_holds(process: Subject, tmp_path: Path) -> None:
    first = process.guest("first")
    process.driver.run(first)
    process.said(first)
    (folder(process, first.id) / "disk" / "note").write_text("kept")
    process.driver.snapshot(first, tmp_path / "image")
    with tarfile.open(tmp_path / "image") as archive:
        assert sorted(archive.getnames()) == ["console.log", "note"]
    second = process.guest("second", image=tmp_path / "image")
    process.driver.run(second)
    disk = folder(process, second.id) / "disk"
    assert (disk / "note").read_text() == "kept"
    assert "server first" in (disk / "console.log").read_text()
    assert "server second" in process.said(second)
    (disk / "note").write_text("changed")
    process.driver.stop(second)
    process.driver.run(second)
    assert (disk / "note").read_text() == "changed"


def test_an_image_of_another_kind_is_no_hindrance(process: Subject, tmp_path: Path) -> None:
    (tmp_path / "image").write_bytes(b"\x00" * 4096)
    guest = process.guest(image=tmp_path / "image")
    process.driver.run(guest)
    assert process.state(guest) is State.RUNNING


def test_a_copy_that_broke_off_does_not_leave_its_guest_standing_still(process: Subject, tmp_path: Path) -> None:
    guest = process.guest()
    process.driver.run(guest)
    process.driver.pause(guest)
    (folder(process, guest.id) / "still").touch()
    process.driver.snapshot(guest, tmp_path / "image")
    assert process.state(guest) is State.RUNNING
    (folder(process, guest.id) / "still").touch()
    process.driver.pause(guest)
    process.driver.snapshot(guest, tmp_path / "image")
    assert process.state(guest) is State.PAUSED


def test_a_guest_deleted_while_it_is_started_is_not_left_behind(process: Subject) -> None:
    guest = process.guest()
    process.driver.run(guest)
    pid = process.pid(guest)
    folder(process, guest.id).rename(folder(process, guest.id).with_name("elsewhere"))
    assert process.homes is not None
    with pytest.raises(FileNotFoundError):
        process.homes.started(guest.id, pid.number)
    assert processes.state(pid) is None


LAST_THREAD = """
import ctypes, fcntl, sys, threading, time
lock = open(sys.argv[1], "w")
fcntl.flock(lock, fcntl.LOCK_EX)
print("locked", flush=True)
sys.stdin.readline()
threading.Thread(target=time.sleep, args=(0.5,)).start()
ctypes.CDLL(None).pthread_exit(None)
"""


def test_a_process_is_gone_once_its_last_thread_has_let_go_of_its_files(tmp_path: Path) -> None:
    """The first thread of a QEMU may have ended while another one still has the disk locked."""
    command = [sys.executable, "-c", LAST_THREAD, str(tmp_path / "lock")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as begun:
        assert begun.stdin is not None
        assert begun.stdout is not None
        assert begun.stdout.readline() == b"locked\n"
        started = psutil.Process(begun.pid)
        pid = processes.of(begun.pid)
        assert pid is not None
        begun.stdin.write(b"end\n")
        begun.stdin.flush()
        until(lambda: started.status() == psutil.STATUS_ZOMBIE, "its first thread goes on")
        assert processes.wait_gone(pid, 10)
        with (tmp_path / "lock").open() as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
