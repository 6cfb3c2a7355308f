"""A running virtual machine goes on at another node, and whatever dies on the way, it runs at most once."""

import contextlib
import os
import signal
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from climate.compute.errors import VirtError
from climate.compute.linux import processes
from climate.compute.virt import Guest, State, config_drive
from climate.compute.virt.live_migrator import Limits, LiveMigrator, MigrationCommand, Progress
from climate.compute.virt.qemu import qmp
from climate.compute.virt.qemu.driver import QemuDriver
from climate.compute.virt.qemu.live_migration import INCOMING, WAITS_IN
from tests.compute.virt.afar import afar
from tests.compute.virt.driver_cases import PATIENCE, Subject, until

pytestmark = pytest.mark.slow

LIMITS = Limits(seconds=PATIENCE)
SHARED, COPIED, APART = "one service", "two services", "two machines"


class Died(Exception):
    """The worker is no more."""


def on(progress: Progress) -> MigrationCommand:
    return MigrationCommand.GO_ON


@dataclass
class Move:
    """A guest that runs at the source, and the drivers of both ends."""

    here: Subject
    there: Subject
    guest: Guest
    arrangement: Mapping[str, Any]
    pid: processes.Pid
    sent: Mapping[str, Any] = field(default_factory=dict)

    @property
    def source(self) -> LiveMigrator:
        return migrator(self.here)

    @property
    def target(self) -> LiveMigrator:
        return migrator(self.there)

    def send(self, watch: Callable[[Progress], MigrationCommand] = on, limits: Limits = LIMITS) -> None:
        self.sent = self.source.send(self.guest, self.arrangement, limits, watch)

    def complete(self) -> None:
        self.target.keep(self.guest, self.sent)
        self.source.clear(self.guest, self.arrangement)

    def waits(self) -> Path:
        assert self.there.homes is not None
        return self.there.homes.of(self.guest.id) / INCOMING

    def waiting(self) -> processes.Pid:
        found = processes.read(self.waits() / "pid")
        assert found is not None
        return found

    def goes_on_here(self) -> None:
        """Return when the guest is seen to run at the source, never having ended, and nothing is left elsewhere."""
        assert self.here.pid(self.guest) == self.pid
        assert self.here.state(self.guest) is State.RUNNING
        self.here.goes_on(self.guest)
        self.target.drop(self.guest.id)
        assert not self.waits().exists()
        assert [pid for pid in every(self) if pid != self.pid] == []

    def goes_on_there(self) -> None:
        """Return when the guest is seen to run at the destination, where it was before, and nowhere else."""
        assert processes.state(self.pid) is None
        assert self.there.state(self.guest) is State.RUNNING
        self.there.goes_on(self.guest)
        assert every(self) == [self.there.pid(self.guest)]
        assert self.there.driver.console(self.guest, None).count("boot finished") == 1


def migrator(subject: Subject) -> LiveMigrator:
    found = subject.driver.live("n1")
    assert found is not None
    return found


def every(move: Move) -> list[processes.Pid]:
    """All processes of the guest, wherever they are."""
    homes = [subject.homes.of(move.guest.id) for subject in (move.here, move.there) if subject.homes is not None]
    found = [*processes.carrying({"CLIMATE_SERVER": move.guest.id})]
    return [*found, *(pid for home in dict.fromkeys(homes) for pid in processes.carrying({WAITS_IN: str(home)}))]


@pytest.fixture
def qemu(make_subject: Callable[[str], Subject]) -> Subject:
    return make_subject("qemu")


@pytest.fixture(params=[SHARED, COPIED, APART])
def ends(request: pytest.FixtureRequest, qemu: Subject, tmp_path: Path) -> Iterator[tuple[Subject, Subject]]:
    """Source and destination, of one compute service with one folder, of two with a folder each, or of two machines."""
    if request.param == SHARED:
        yield qemu, qemu
        return
    other = QemuDriver(tmp_path / "other" / "machines", accel="tcg", stop_seconds=5)
    here, there = qemu, replace(qemu, driver=other, again=lambda: other, homes=other.homes)
    if request.param == APART:
        here, there = afar(here, "here"), afar(there, "there")
    yield here, there
    for server_id in qemu.made:
        with contextlib.suppress(VirtError):
            migrator(there).drop(server_id)
        with contextlib.suppress(VirtError):
            other.delete(server_id)


@pytest.fixture
def move(ends: tuple[Subject, Subject]) -> Move:
    return under_way(*ends)


def under_way(here: Subject, there: Subject) -> Move:
    """A guest that runs, and is awaited at the destination."""
    guest = here.guest()
    here.driver.run(guest)
    here.said(guest)
    arrangement = migrator(there).receive(guest, migrator(here).offer(guest))
    return Move(here, there, guest, arrangement, here.pid(guest))


def test_a_guest_goes_on_in_another_process_where_it_was(move: Move) -> None:
    assert list(move.target.waiting()) == [move.guest.id]
    seen: list[Progress] = []
    move.send(lambda progress: seen.append(progress) or MigrationCommand.GO_ON)
    assert seen
    move.complete()
    move.goes_on_there()
    assert list(move.target.waiting()) == []


def test_nothing_is_left_at_the_source_and_the_disk_is_at_the_destination(move: Move) -> None:
    move.send()
    move.complete()
    if move.here is not move.there:
        assert move.here.left(move.guest) == []
    move.there.driver.stop(move.guest, kindly=False)
    move.there.driver.run(move.guest)
    until(lambda: move.there.driver.console(move.guest, None).count("boot finished") == 2, "it does not boot")


def test_a_guest_goes_there_and_back(move: Move) -> None:
    move.send()
    move.complete()
    back = move.source.receive(move.guest, move.target.offer(move.guest))
    again = Move(move.there, move.here, move.guest, back, move.there.pid(move.guest))
    again.send()
    again.complete()
    again.goes_on_there()


def test_a_guest_keeps_its_config_drive(ends: tuple[Subject, Subject]) -> None:
    here, there = ends
    guest = replace(here.guest(), config={"openstack/latest/user_data": b"#cloud-config"})
    here.driver.run(guest)
    here.said(guest)
    drive = drive_of(here, guest).read_bytes()
    arrangement = migrator(there).receive(guest, migrator(here).offer(guest))
    move = Move(here, there, guest, arrangement, here.pid(guest))
    move.send()
    move.complete()
    move.goes_on_there()
    assert drive_of(there, guest).read_bytes() == drive


def drive_of(subject: Subject, guest: Guest) -> Path:
    assert subject.homes is not None
    return subject.homes.of(guest.id) / config_drive.DISK


def test_a_paused_guest_stays_paused(qemu: Subject) -> None:
    guest = qemu.guest()
    qemu.driver.run(guest)
    qemu.said(guest)
    qemu.driver.pause(guest)
    arrangement = migrator(qemu).receive(guest, migrator(qemu).offer(guest))
    migrator(qemu).keep(guest, migrator(qemu).send(guest, arrangement, LIMITS, on))
    assert qemu.state(guest) is State.PAUSED
    qemu.stands_still(guest)
    qemu.driver.unpause(guest)
    qemu.goes_on(guest)


def test_only_what_is_in_memory_is_offered(qemu: Subject) -> None:
    guest = qemu.guest()
    for bring in (qemu.driver.prepare, qemu.driver.run):
        bring(guest)
        if bring == qemu.driver.run:
            qemu.driver.suspend(guest)
        with pytest.raises(VirtError, match="running or paused"):
            migrator(qemu).offer(guest)


def test_one_that_is_aborted_goes_on_here(move: Move) -> None:
    with pytest.raises(VirtError, match="aborted"):
        move.send(lambda progress: MigrationCommand.ABORT)
    move.goes_on_here()


def aborted(move: Move, first: MigrationCommand) -> bool:
    """Abort a migration at the second look, and return once the guest goes on where it belongs.

    False: a small memory had arrived before that look.
    """
    orders = iter([first])
    asked: list[MigrationCommand] = []

    def watch(progress: Progress) -> MigrationCommand:
        asked.append(next(orders, MigrationCommand.ABORT))
        return asked[-1]

    try:
        move.send(watch)
    except VirtError:
        move.goes_on_here()
        return True
    assert len(asked) <= 2
    move.complete()
    move.goes_on_there()
    return False


def test_one_that_is_aborted_in_the_middle_goes_on_here_and_can_be_moved_later(move: Move) -> None:
    if not aborted(move, MigrationCommand.GO_ON):
        return
    move.arrangement = move.target.receive(move.guest, move.source.offer(move.guest))
    move.send()
    move.complete()
    move.goes_on_there()


def test_one_that_takes_too_long_goes_on_here(move: Move) -> None:
    with pytest.raises(VirtError, match="timeout after"):
        move.send(limits=Limits(seconds=-1))
    move.goes_on_here()


def test_one_that_is_forced_to_complete_goes_on_there(move: Move) -> None:
    move.send(lambda progress: MigrationCommand.COMPLETE)
    move.complete()
    move.goes_on_there()


def test_one_that_was_stopped_to_be_moved_goes_on_here_when_it_is_aborted(move: Move) -> None:
    aborted(move, MigrationCommand.COMPLETE)


@pytest.mark.parametrize("after", [0, 1])
def test_a_destination_that_is_killed_leaves_the_guest_where_it_was(move: Move, after: int) -> None:
    calls = iter(range(after))

    def watch(progress: Progress) -> MigrationCommand:
        if next(calls, None) is None:
            processes.send(move.waiting(), signal.SIGKILL)
        return MigrationCommand.GO_ON

    with pytest.raises(VirtError):
        move.send(watch)
    move.goes_on_here()


@pytest.mark.parametrize("after", [0, 1])
def test_a_source_that_is_killed_leaves_no_guest_before_it_sent_it_all(move: Move, after: int) -> None:
    calls = iter(range(after))

    def watch(progress: Progress) -> MigrationCommand:
        if next(calls, None) is None:
            os.kill(move.pid.number, signal.SIGKILL)
            processes.wait_gone(move.pid, PATIENCE)
        return MigrationCommand.GO_ON

    try:
        move.send(watch)
    except VirtError:
        move.target.drop(move.guest.id)
    else:  # a small memory may have arrived before the second look
        assert after
        move.complete()
        move.goes_on_there()
        return
    assert every(move) == []
    assert move.here.state(move.guest) is State.DEAD
    move.here.driver.run(move.guest)
    move.here.goes_on(move.guest)


@pytest.mark.parametrize("after", range(4))
def test_a_sender_that_died_is_succeeded_by_another(move: Move, after: int) -> None:
    calls = iter(range(after))

    def watch(progress: Progress) -> MigrationCommand:
        if next(calls, None) is None:
            raise Died
        return MigrationCommand.GO_ON

    try:
        move.send(watch)
    except Died:
        move.send()
    move.complete()
    move.goes_on_there()


def test_a_sender_that_died_with_the_source_ended_is_succeeded_by_another(qemu: Subject) -> None:
    """All memory has arrived, the source was ended, and nobody has said that the destination may go on."""
    move = under_way(qemu, qemu)
    with pytest.raises(Died):
        move.send(dying_after(1))

    def arrived() -> bool:
        with qmp.connect(move.waits(), PATIENCE) as theirs:
            return theirs.status() == "paused"

    until(arrived, "the memory does not arrive")
    processes.send(move.pid, signal.SIGKILL)
    assert processes.wait_gone(move.pid, PATIENCE)
    assert every(move) == [move.waiting()]
    move.send()
    move.complete()
    move.goes_on_there()


def dying_after(calls: int) -> Callable[[Progress], MigrationCommand]:
    left = iter(range(calls))

    def watch(progress: Progress) -> MigrationCommand:
        if next(left, None) is None:
            raise Died
        return MigrationCommand.GO_ON

    return watch


def test_the_guest_never_runs_at_the_destination_before_the_source_has_ended(move: Move) -> None:
    """Whatever the source says, the destination stands still until it is told to go on."""
    with pytest.raises(Died):
        move.send(dying_after(1))
    with qmp.connect(move.waits(), PATIENCE) as theirs:
        assert theirs.status() in ("inmigrate", "paused")
    assert list(move.target.waiting()) == [move.guest.id]
    with pytest.raises(VirtError, match="aborted"):
        move.send(lambda progress: MigrationCommand.ABORT)
    move.goes_on_here()


def test_nothing_is_left_of_one_that_is_deleted_while_it_is_awaited(move: Move) -> None:
    (move.waits() / "pid").unlink()  # the worker died before it was written
    for subject in (move.here, move.there):
        subject.driver.delete(move.guest.id)
        assert subject.left(move.guest) == []
    assert every(move) == []


def test_what_has_not_arrived_is_not_kept(move: Move) -> None:
    processes.send(move.waiting(), signal.SIGKILL)
    processes.wait_gone(move.waiting(), PATIENCE)
    with pytest.raises(VirtError, match="has ended"):
        move.target.keep(move.guest, {})


@pytest.mark.parametrize("name", ["memory", "process", "container"])
def test_drivers_without_machines_say_that_they_cannot(make_subject: Callable[[str], Subject], name: str) -> None:
    assert make_subject(name).driver.live("n1") is None


def test_a_cluster_moves_what_its_member_can(qemu: Subject, make_subject: Callable[[str], Subject]) -> None:
    assert make_subject("cluster_of_memory").driver.live("n1") is None
