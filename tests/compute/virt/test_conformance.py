"""What every driver promises, tested on each."""

import contextlib
import os
import re
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import psutil
import pytest

from climate.compute.errors import VirtError
from climate.compute.virt import Guest, State
from climate.compute.virt.guest_folders import CONSOLE, CONSOLE_BYTES, LOG_BYTES
from climate.compute.virt.multi_node import MultiNodeDriver
from tests.compute.virt.driver_cases import HOSTILE, Subject, process, until

ASLEEP = (State.PAUSED, State.SUSPENDED)


def test_a_guest_is_stopped_and_started_again(subject: Subject) -> None:
    guest = subject.guest()
    subject.driver.run(guest)
    assert subject.state(guest) is State.RUNNING
    for kindly in (False, True):
        subject.goes_on(guest)
        subject.driver.stop(guest, kindly=kindly)
        subject.driver.stop(guest, kindly=kindly)
        assert subject.state(guest) is State.DEAD
        subject.driver.run(guest)
        assert subject.state(guest) is State.RUNNING


def test_a_guest_is_paused_and_goes_on(subject: Subject) -> None:
    guest = subject.guest()
    subject.driver.run(guest)
    subject.goes_on(guest)
    for _ in range(2):
        subject.driver.pause(guest)
        assert subject.state(guest) is State.PAUSED
    subject.stands_still(guest)
    for _ in range(2):
        subject.driver.unpause(guest)
        assert subject.state(guest) is State.RUNNING
    subject.goes_on(guest)
    subject.driver.pause(guest)
    subject.driver.run(guest)
    assert subject.state(guest) is State.RUNNING


def test_a_guest_is_suspended_and_resumed(subject: Subject) -> None:
    guest = subject.guest()
    subject.driver.run(guest)
    subject.goes_on(guest)
    before = subject.driver.console(guest, None)
    for _ in range(2):
        subject.driver.suspend(guest)
        assert subject.state(guest) in ASLEEP
    for _ in range(2):
        subject.driver.resume(guest)
        assert subject.state(guest) is State.RUNNING
    subject.goes_on(guest)
    assert subject.homes is None or subject.driver.console(guest, None).startswith(before)


def test_a_stopped_guest_was_not_only_paused_or_suspended(subject: Subject) -> None:
    guest = subject.guest()
    subject.driver.run(guest)
    for sleep in (subject.driver.pause, subject.driver.suspend):
        sleep(guest)
        subject.driver.stop(guest)
        assert subject.state(guest) is State.DEAD
        subject.driver.run(guest)
        assert subject.state(guest) is State.RUNNING


def test_a_rescued_guest_runs_from_the_image_and_gets_its_own_disk_back(subject: Subject, tmp_path: Path) -> None:
    guest, driver = subject.guest(), subject.driver
    rescued = replace(guest, rescued=True)
    driver.run(guest)
    subject.goes_on(guest)
    for _ in range(2):  # a worker that takes over begins again
        driver.stop(guest, kindly=False)
        driver.run(rescued)
        assert subject.state(guest) is State.RUNNING
        subject.goes_on(guest)
    driver.run(rescued)
    driver.snapshot(guest, tmp_path / "own")
    assert (tmp_path / "own").stat().st_size > 0
    driver.stop(guest, kindly=False)
    assert subject.state(guest) is State.DEAD
    driver.run(guest)
    subject.goes_on(guest)
    assert subject.state(guest) is State.RUNNING
    assert subject.homes is None or not list(subject.homes.of(guest.id).glob("rescue*"))


def test_nothing_is_left_of_a_rescued_guest(subject: Subject) -> None:
    guest = subject.guest()
    subject.driver.run(guest)
    subject.driver.stop(guest)
    subject.driver.run(replace(guest, rescued=True))
    subject.driver.delete(guest.id)
    assert (subject.state(guest), subject.left(guest)) == (None, [])


def test_a_rescue_that_fails_leaves_the_disk_of_the_guest(real: Subject, tmp_path: Path) -> None:
    guest = real.guest()
    real.driver.run(guest)
    real.driver.stop(guest, kindly=False)
    with pytest.raises(VirtError, match="does not exist"):
        real.driver.run(replace(guest, rescued=True, image=tmp_path / "gone"))
    real.driver.run(replace(guest, image=tmp_path / "gone"))  # not built again: its image is not needed
    assert real.state(guest) is State.RUNNING
    real.goes_on(guest)


def test_only_what_runs_is_paused_or_suspended(real: Subject) -> None:
    guest = real.guest()
    for verb in (real.driver.pause, real.driver.unpause, real.driver.suspend, real.driver.resume):
        with pytest.raises(VirtError, match="not"):
            verb(guest)
    real.driver.prepare(guest)
    for verb in (real.driver.pause, real.driver.unpause, real.driver.suspend, real.driver.resume):
        with pytest.raises(VirtError, match="not"):
            verb(guest)
    assert real.state(guest) is State.PREPARED


@pytest.mark.parametrize("state", ["prepared", "running", "paused", "suspended", "dead", "killed"])
def test_nothing_is_left_of_a_deleted_guest(subject: Subject, state: str) -> None:
    guest, other = subject.guest(), subject.guest()
    subject.driver.prepare(other)
    brought(subject, guest, state)
    subject.driver.delete(guest.id)
    subject.driver.delete(guest.id)
    assert subject.state(guest) is None
    assert subject.left(guest) == []
    assert subject.state(other) is State.PREPARED


def brought(subject: Subject, guest: Guest, state: str) -> None:
    """Bring a guest into a state, from none."""
    driver = subject.driver
    driver.prepare(guest)
    if state != "prepared":
        driver.run(guest)
        subject.goes_on(guest)
    if state == "killed" and subject.homes is not None:
        subject.kill(guest)
    verbs = {"paused": driver.pause, "suspended": driver.suspend, "dead": driver.stop}
    if state in verbs:
        verbs[state](guest)


def test_a_guest_that_was_killed_is_dead_and_can_be_started_again(real: Subject) -> None:
    guest = real.guest()
    real.driver.run(guest)
    real.kill(guest)
    assert real.state(guest) is State.DEAD
    real.driver.run(guest)
    assert real.state(guest) is State.RUNNING
    real.goes_on(guest)


def test_a_new_driver_adopts_what_there_is(real: Subject) -> None:
    states = ("prepared", "running", "paused", "suspended", "dead")
    guests = {state: real.guest() for state in states}
    for state, guest in guests.items():
        brought(real, guest, state)
    before = real.driver.states()
    real.driver = real.again()
    assert real.driver.states() == before
    for guest in guests.values():
        real.driver.run(guest) if real.state(guest) is not State.SUSPENDED else real.driver.resume(guest)
        assert real.state(guest) is State.RUNNING
        real.goes_on(guest)


@pytest.mark.parametrize("state", ["prepared", "running", "paused", "suspended", "dead"])
def test_a_snapshot_makes_another_guest(subject: Subject, tmp_path: Path, state: str) -> None:
    guest = subject.guest()
    brought(subject, guest, state)
    before = subject.state(guest)
    for _ in range(2):
        subject.driver.snapshot(guest, tmp_path / "image")
        assert subject.state(guest) is before
    assert (tmp_path / "image").stat().st_size > 0
    assert [path.name for path in tmp_path.glob("image*")] == ["image"]
    subject.driver.delete(guest.id)
    copy = subject.guest("copy", image=tmp_path / "image")
    subject.driver.run(copy)
    assert subject.state(copy) is State.RUNNING
    subject.goes_on(copy)


def test_there_is_no_snapshot_of_nothing(real: Subject, tmp_path: Path) -> None:
    with pytest.raises(VirtError, match=r"does not exist here|there is nothing of server"):
        real.driver.snapshot(real.guest(), tmp_path / "image")
    assert not (tmp_path / "image").exists()


def test_an_image_that_is_gone_is_missed_where_there_is_no_guest_yet(real: Subject, tmp_path: Path) -> None:
    made = real.guest()
    real.driver.run(made)
    real.driver.stop(made, kindly=False)
    real.driver.run(replace(made, image=tmp_path / "gone"))
    assert real.state(made) is State.RUNNING
    lost = real.guest(image=tmp_path / "gone")
    with pytest.raises(VirtError, match="the image file gone does not exist"):
        real.driver.run(lost)
    assert real.state(lost) in (None, State.DEAD)


def test_sizes_may_change_between_stop_and_run(subject: Subject) -> None:
    guest = subject.guest()
    subject.driver.run(guest)
    subject.driver.stop(guest, kindly=False)
    subject.driver.run(replace(guest, vcpus=2, ram_mb=16, disk_gb=2))
    assert subject.state(guest) is State.RUNNING
    subject.goes_on(guest)


def test_a_name_is_for_show_only(subject: Subject) -> None:
    guest = subject.guest(HOSTILE)
    subject.driver.prepare(guest)
    subject.driver.run(guest)
    assert subject.state(guest) is State.RUNNING
    subject.goes_on(guest)
    subject.driver.delete(guest.id)
    assert subject.left(guest) == []


@pytest.mark.parametrize("server_id", ["", ".", "..", "../x", "x", "/", "{id}/..", "{id}\n"])
def test_what_is_no_id_is_refused(real: Subject, server_id: str, tmp_path: Path) -> None:
    guest = real.guest()
    real.driver.prepare(guest)
    wrong = server_id.format(id=uuid4())
    with pytest.raises(VirtError, match="not a server's id"):
        real.driver.delete(wrong)
    with pytest.raises(VirtError, match="not a server's id"):
        real.driver.run(replace(guest, id=wrong))
    assert real.driver.states() == {guest.id: State.PREPARED}


def test_the_console_has_the_last_lines(real: Subject) -> None:
    guest = real.guest(node="n1" if isinstance(real.driver, MultiNodeDriver) else "secret-host")
    assert real.driver.console(guest, None) == ""
    real.driver.run(guest)
    assert real.said(guest)
    real.driver.stop(guest)
    everything = real.driver.console(guest, None).splitlines()
    assert len(everything) > 1
    assert real.driver.console(guest, 1).splitlines() == everything[-1:]
    assert real.driver.console(guest, 0) == ""
    assert not any(re.search(rf"\b{guest.node}\b", line) for line in everything), "hosts are not for everybody"


def test_a_guest_that_prints_without_end_does_not_fill_the_disk(real: Subject) -> None:
    guest = real.guest()
    real.driver.run(guest)
    before = real.said(guest)
    assert real.homes is not None
    log = real.homes.of(guest.id) / CONSOLE
    real.driver.clean_up()
    assert real.driver.console(guest, None).startswith(before)
    with log.open("ab") as printed:
        printed.write(b"all work and no play\n" * 60_000 + b"the end\n")
    assert log.stat().st_size > LOG_BYTES
    real.driver.clean_up()
    assert CONSOLE_BYTES <= log.stat().st_size < CONSOLE_BYTES + 1000
    assert "the end\n" in real.driver.console(guest, 20)
    if not real.ticks:
        real.driver.stop(guest)
        real.driver.run(guest)
    until(lambda: not real.driver.console(guest, 1).endswith("the end\n"), "it prints no more")
    assert log.stat().st_size < CONSOLE_BYTES + 10_000


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_two_processes_act_on_a_guest_one_after_the_other(real: Subject, tmp_path: Path) -> None:
    """The first is killed as soon as it is done, as a worker may be."""
    guest = real.guest()
    for verb, state in (("prepare", State.PREPARED), ("run", State.RUNNING), ("pause", State.PAUSED)):
        pid = os.fork()
        if not pid:
            code = 1
            try:
                getattr(real.again(), verb)(guest)
                code = 0
            finally:
                os.kill(os.getpid(), signal.SIGKILL) if code == 0 else os._exit(code)
        assert os.waitpid(pid, 0)[1] == signal.SIGKILL
        assert real.state(guest) is state
    real.driver.unpause(guest)
    real.goes_on(guest)


def test_no_file_of_a_worker_reaches_a_guest(real: Subject, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("of the worker alone")
    guest = real.guest()
    with secret.open() as one, secret.open() as other:
        os.set_inheritable(other.fileno(), True)
        real.driver.run(guest)
        assert one.readable()
    assert str(secret) not in _open_files(real.pid(guest).number)


def _open_files(number: int) -> set[str]:
    """Return the files that a process has open.  One that it closes meanwhile is left out."""
    held = set()
    for entry in Path(f"/proc/{number}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            held.add(os.readlink(entry))
    return held


def test_a_worker_has_no_zombies_of_guests(real: Subject) -> None:
    """And takes none from anybody else."""
    guests = [real.guest() for _ in range(2)]
    with subprocess.Popen(["true"]) as others:
        os.waitid(os.P_PID, others.pid, os.WEXITED | os.WNOWAIT)
        for guest in guests:
            real.driver.run(guest)
        numbers = [real.pid(guest).number for guest in guests]
        subprocess.run([sys.executable, "-c", f"import os; [os.kill(n, 9) for n in {numbers}]"], check=True)
        until(
            lambda: set(real.driver.states().values()) == {State.DEAD} and zombies() == [others.pid],
            "a zombie is left, or somebody else's is gone",
        )
    assert others.returncode == 0


def zombies() -> list[int]:
    return [child.pid for child in psutil.Process().children() if child.status() == psutil.STATUS_ZOMBIE]


def test_a_guest_of_the_same_server_in_another_folder_is_let_be(tmp_path: Path) -> None:
    """Two compute services of one machine: the server has moved from one to the other, which starts it."""
    here, there = process(tmp_path / "here"), process(tmp_path / "there")
    guest = here.guest()
    for subject in (here, there):
        subject.driver.run(guest)
    here.kill(guest)
    here.driver.delete(guest.id)
    assert there.state(guest) is State.RUNNING
    there.driver.delete(guest.id)
