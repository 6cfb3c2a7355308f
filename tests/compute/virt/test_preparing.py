"""What every driver promises of a RESERVED server's guest: no process, no memory, and a start that cannot fail."""

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from climate.compute.errors import VirtError
from climate.compute.linux import processes
from climate.compute.virt import Guest, State, archive
from climate.compute.virt.guest_folders import MARK
from tests.compute.virt.driver_cases import Subject, until

KILLED_AFTER = (0.0, 0.01, 0.03, 0.1, 0.3)
"""Seconds after which a worker is killed at its work."""

forks = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")


def fresh(subject: Subject, tmp_path: Path) -> Guest:
    """A guest with an image of its own, which a test may delete."""
    image = tmp_path / "own"
    if subject.image is None:
        (tmp_path / "note").write_text("from the image")
        archive.pack([(tmp_path / "note", "note")], image)
    else:
        image.write_bytes(subject.image.read_bytes())
    return subject.guest(image=image)


@contextmanager
def worker(verb: Callable[[], None]) -> Iterator[int]:
    """The number of a process that does this, and is killed in the end.

    A successor takes over when its claim has run out: what it has begun is recognisable by then.
    """
    number = os.fork()
    if not number:
        with contextlib.suppress(BaseException):
            verb()
        os.kill(os.getpid(), signal.SIGKILL)
    try:
        yield number
    finally:
        os.kill(number, signal.SIGSTOP)
        begun = psutil.Process(number).children(recursive=True)
        os.kill(number, signal.SIGKILL)
        os.waitpid(number, 0)
        until(lambda: all(map(recognisable, begun)), "what it has begun is not recognisable")


def recognisable(begun: psutil.Process) -> bool:
    """Whether a process that a driver has begun can be found by its environment, or has ended."""
    try:
        return not begun.is_running() or begun.status() == psutil.STATUS_ZOMBIE or MARK in begun.environ()
    except psutil.Error:
        return True


def test_a_prepared_guest_has_no_process_and_says_nothing_until_it_runs(subject: Subject) -> None:
    guest = subject.guest()
    for _ in range(2):
        subject.driver.prepare(guest)
        assert subject.state(guest) is State.PREPARED
        assert subject.processes(guest) == []
    assert subject.homes is None or subject.driver.console(guest, None) == ""
    for _ in range(2):
        subject.driver.run(guest)
        assert subject.state(guest) is State.RUNNING
    assert subject.homes is None or subject.processes(guest) != []
    subject.goes_on(guest)
    subject.driver.stop(guest, kindly=False)
    assert subject.state(guest) is State.DEAD, "it has run: it is not what was prepared any more"


def test_the_image_is_needed_no_more_once_a_guest_is_prepared(real: Subject, tmp_path: Path) -> None:
    guest = fresh(real, tmp_path)
    real.driver.prepare(guest)
    (tmp_path / "own").unlink()
    real.driver = real.again()
    real.driver.prepare(guest)
    real.driver.run(guest)
    assert real.state(guest) is State.RUNNING
    real.goes_on(guest)
    assert real.homes is not None
    notes = [path.read_text() for path in real.homes.of(guest.id).glob("disk/note")]
    assert notes == ([] if real.ticks else ["from the image"])


def test_an_image_that_is_gone_is_missed_when_a_guest_is_prepared(real: Subject, tmp_path: Path) -> None:
    guest = real.guest(image=tmp_path / "gone")
    with pytest.raises(VirtError, match="the image file gone does not exist"):
        real.driver.prepare(guest)
    assert real.state(guest) in (None, State.DEAD)


def test_a_guest_that_lost_its_disk_is_not_prepared(real: Subject) -> None:
    guest = real.guest()
    real.driver.prepare(guest)
    assert real.homes is not None
    (disk,) = real.homes.of(guest.id).glob("disk*")
    disk.rename(disk.with_name("lost"))
    assert real.state(guest) is State.DEAD
    real.driver.prepare(guest)
    assert real.state(guest) is State.PREPARED


@pytest.mark.parametrize("state", ["running", "paused"])
def test_what_runs_though_it_is_to_be_prepared_is_ended(real: Subject, state: str) -> None:
    guest = real.guest()
    real.driver.run(guest)
    if state == "paused":
        real.driver.pause(guest)
    real.driver.prepare(guest)
    assert real.state(guest) is State.PREPARED
    until(lambda: real.processes(guest) == [], "a process is left")
    real.driver.run(guest)
    assert real.state(guest) is State.RUNNING


@forks
@pytest.mark.parametrize("seconds", KILLED_AFTER)
def test_a_worker_is_killed_at_the_preparation(real: Subject, tmp_path: Path, seconds: float) -> None:
    guest = fresh(real, tmp_path)
    with worker(lambda: real.driver.prepare(guest)):
        time.sleep(seconds)
    real.driver = real.again()
    if real.state(guest) is State.PREPARED:
        assert real.processes(guest) == [], "prepared means that there is no process"
    real.driver.prepare(guest)
    assert real.state(guest) is State.PREPARED
    until(lambda: real.processes(guest) == [], "what the killed worker has begun goes on")
    (tmp_path / "own").unlink()
    real.driver.run(guest)
    real.goes_on(guest)


@forks
@pytest.mark.parametrize("seconds", KILLED_AFTER)
def test_a_worker_is_killed_at_the_waking(real: Subject, tmp_path: Path, seconds: float) -> None:
    guest = fresh(real, tmp_path)
    real.driver.prepare(guest)
    (tmp_path / "own").unlink()
    with worker(lambda: real.driver.run(guest)):
        time.sleep(seconds)
    real.driver = real.again()
    real.driver.run(guest)
    assert real.state(guest) is State.RUNNING
    real.goes_on(guest)
    pid = real.pid(guest)
    real.driver.run(guest)
    assert real.pid(guest) == pid
    real.driver.delete(guest.id)
    assert real.left(guest) == []


@forks
@pytest.mark.parametrize("verb", ["prepare", "delete"])
def test_a_conversion_that_outlives_its_worker_is_in_nobodys_way(
    make_subject: Callable[[str], Subject], tmp_path: Path, verb: str
) -> None:
    """It has the draft of the disk locked for as long as it lives."""
    qemu = make_subject("qemu")
    (tmp_path / "large").write_bytes(os.urandom(1 << 20) * 200)
    guest = qemu.guest(image=tmp_path / "large")
    with worker(lambda: qemu.driver.prepare(guest)) as number:
        left = until(lambda: converting(number), "nothing is converted")
        left.suspend()
    assert left.is_running()
    qemu.driver.prepare(guest) if verb == "prepare" else qemu.driver.delete(guest.id)
    until(lambda: not left.is_running() or left.status() == psutil.STATUS_ZOMBIE, "it goes on")
    assert qemu.state(guest) is (State.PREPARED if verb == "prepare" else None)
    assert verb == "prepare" or qemu.left(guest) == []


def converting(number: int) -> psutil.Process | None:
    """The qemu-img that a process has begun, once it is what it is going to be."""
    children = psutil.Process(number).children()
    return next((one for one in children if one.name() == "qemu-img" and "convert" in one.cmdline()), None)


def test_a_start_that_broke_off_before_the_first_instruction_is_no_guest(
    make_subject: Callable[[str], Subject],
) -> None:
    qemu = make_subject("qemu")
    guest = qemu.guest()
    qemu.driver._start(guest)  # type: ignore[attr-defined]  # as far as a worker comes that is killed then
    first = qemu.pid(guest)
    assert qemu.state(guest) is State.DEAD
    qemu.driver.prepare(guest)
    assert (processes.state(first), qemu.state(guest), qemu.processes(guest)) == (None, State.PREPARED, [])


def test_what_qemu_refuses_is_reported_at_the_preparation(make_subject: Callable[[str], Subject]) -> None:
    qemu = make_subject("qemu")
    guest = qemu.guest(vcpus=10_000)
    with pytest.raises(VirtError, match="10000"):
        qemu.driver.prepare(guest)
    assert qemu.state(guest) is State.DEAD
    assert qemu.processes(guest) == []
    qemu.driver.prepare(replace(guest, vcpus=1))
    assert qemu.state(guest) is State.PREPARED


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        ({"bin/text": "no program"}, "no executable /bin/sh"),
        ({"bin/sh": "cannot be run"}, "no executable /bin/sh"),
        ({"bin/sh": Path("/bin/sh")}, "no executable /bin/sh"),
        ({"bin/sh": Path("../../../../../../../../bin/dash"), "etc/x": ""}, "no executable /bin/sh"),
        ({"proc": "a file"}, "a file instead of the folder /proc"),
        ({"tmp": Path("/etc")}, "a link instead of the folder /tmp"),
    ],
)
def test_an_image_that_no_walls_can_be_built_around_is_refused_at_the_preparation(
    make_subject: Callable[[str], Subject], tmp_path: Path, made: dict[str, str | Path], reason: str
) -> None:
    """A link leads nowhere but into the root, however many steps up it goes."""
    container, root = make_subject("container"), tmp_path / "root"
    for name, content in made.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, Path):
            (root / name).symlink_to(content)
        else:
            (root / name).write_text(content)
    archive.pack([(path, path.name) for path in root.iterdir()], tmp_path / "image")
    guest = container.guest(image=tmp_path / "image")
    with pytest.raises(VirtError, match=reason):
        container.driver.prepare(guest)
    assert container.state(guest) is State.DEAD
