"""Servers of a cluster are migrated live between its machines, one at a time, and never run twice."""

from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from climate.compute.errors import Unanswered, VirtError
from climate.compute.virt import Guest, State
from climate.compute.virt.hypervisor_cluster.live_moves import DISK_SECONDS, MEMORY_SECONDS, RoundOver, Watcher
from climate.compute.virt.hypervisor_cluster.server_placements import Entry, ServerPlacements
from climate.compute.virt.live_migrator import SECRETS, MigrationCommand, Progress
from tests.compute.virt.hypervisor_cluster.live_machines import KEY, Dies, Host, Strikes
from tests.compute.virt.hypervisor_cluster.machines import Lab

ONE, TWO = "m1", "m2"


class Machines(Lab):
    """A cluster of two machines that migrate guests to each other."""

    strikes: Strikes

    @property
    def ledger(self) -> ServerPlacements:
        return self.driver._clusters()[0].placements

    def entry(self, guest: Guest) -> Entry:
        found = self.ledger.get(guest.id)
        assert found is not None
        return found

    def maintain(self, name: str, on: bool = True) -> None:
        self.machines[name].spec = replace(self.machines[name].spec, maintenance=on)

    def on_one(self, ram_mb: int = 1024) -> Guest:
        """A server that runs on the member ONE."""
        self.maintain(TWO)
        guest = self.run(ram_mb)
        self.maintain(TWO, False)
        assert self.where(guest) == ONE
        return guest

    def verbs(self, name: str) -> list[str]:
        return [verb for verb, _ in self.machines[name].driver.calls]

    def strike(self, good: int, error: type[BaseException], *, late: bool = False) -> None:
        """Let a verb of a migration fail after so many good ones."""
        self.strikes.ahead = [(None, False)] * good + [(error, late)]

    def round(self) -> None:
        with suppress(Dies):
            self.driver.clean_up()
        self.strikes.ahead.clear()


@pytest.fixture
def lab(tmp_path: Path) -> Machines:
    strikes, others = Strikes(), dict[str, Host]()

    def make(name: str) -> Host:
        others[name] = Host(name=name, strikes=strikes, others=others)
        return others[name]

    made = Machines(tmp_path, local=make("local"), make=make)
    made.strikes = strikes
    for name in (ONE, TWO):
        made.member(name, here=False)
    return made


def test_servers_move_between_machines_for_balance_one_at_a_time_and_without_a_restart(lab: Machines) -> None:
    guests = [lab.on_one(512) for _ in range(6)]
    lab.round()
    assert [lab.where(one) for one in guests].count(TWO) == 1
    for _ in range(4):
        lab.round()
    assert sorted(str(lab.where(one)) for one in guests) == [ONE] * 4 + [TWO] * 2
    assert all(lab.copies(one) == [lab.where(one)] for one in guests)
    assert (lab.verbs(ONE).count("run"), lab.verbs(TWO)) == (6, [])


@pytest.mark.parametrize("state", [State.RUNNING, State.PAUSED])
def test_running_servers_leave_a_member_in_maintenance_for_another_machine(lab: Machines, state: State) -> None:
    guest = lab.on_one()
    if state is State.PAUSED:
        lab.driver.pause(guest)
    lab.maintain(ONE)
    lab.round()
    assert (lab.where(guest), lab.machines[TWO].driver.guests) == (TWO, {guest.id: state})
    assert lab.driver.states() == {guest.id: state}
    lab.driver.stop(guest)
    lab.driver.delete(guest.id)
    assert lab.copies(guest) == []


@pytest.mark.parametrize("shared", [True, False])
def test_a_server_without_a_process_leaves_only_where_its_disk_is_reached(lab: Machines, shared: bool) -> None:
    if shared:
        lab.share(ONE, TWO)
    guest = lab.on_one()
    lab.driver.stop(guest)
    disk = lab.machines[ONE].driver.disks[guest.id]
    lab.maintain(ONE)
    lab.round()
    assert lab.where(guest) == (TWO if shared else ONE)
    lab.driver.run(guest)
    assert lab.copies(guest) == [lab.where(guest)]
    assert lab.machines[lab.copies(guest)[0]].driver.disks[guest.id] == disk


@pytest.mark.parametrize("verb", ["run", "prepare"])
def test_a_server_stays_while_an_order_to_start_it_may_still_be_carried_out(lab: Machines, verb: str) -> None:
    lab.share(ONE, TWO)
    guest = lab.on_one()
    lab.driver.stop(guest)
    lab.strike(0, Unanswered)
    with pytest.raises(Unanswered):
        getattr(lab.driver, verb)(guest)
    lab.maintain(ONE)
    lab.round()
    assert lab.where(guest) == ONE
    lab.ledger.write(replace(lab.entry(guest), rests_until=0))
    lab.round()
    assert lab.where(guest) == TWO


def test_nothing_is_moved_by_a_driver_that_cannot(lab: Machines) -> None:
    guest = lab.on_one()
    for one in lab.machines.values():
        assert isinstance(one.driver, Host)
        one.driver.others = {}
    lab.maintain(ONE)
    lab.round()
    assert (lab.where(guest), lab.copies(guest)) == (ONE, [ONE])


@pytest.mark.parametrize("good", [0, 1, 2])
def test_a_move_that_fails_leaves_the_server_where_it_is_and_rests(lab: Machines, good: int) -> None:
    guest = lab.on_one()
    lab.maintain(ONE)
    lab.strike(good, VirtError)
    lab.round()
    lab.round()
    assert (lab.where(guest), lab.copies(guest), lab.entry(guest).moving) == (ONE, [ONE], None)
    awaiting = lab.machines[TWO].driver
    assert isinstance(awaiting, Host)
    assert awaiting.awaited == set()
    lab.ledger.write(replace(lab.entry(guest), rests_until=0))
    lab.round()
    assert (lab.where(guest), lab.copies(guest)) == (TWO, [TWO])


def test_a_member_that_cannot_receive_a_server_does_not_keep_it_from_another(lab: Machines) -> None:
    lab.member("m3", here=False)
    lab.maintain("m3")
    guest = lab.on_one()
    lab.maintain("m3", False)
    lab.maintain(ONE)
    tried = []
    for _ in range(3):
        lab.strike(1, RoundOver)
        lab.round()
        move = lab.entry(guest).moving
        assert move is not None
        tried.append(move.other.member)
        lab.strike(1, VirtError)
        lab.round()
        lab.ledger.write(replace(lab.entry(guest), rests_until=0))
    assert sorted(tried[:2]) == [TWO, "m3"]
    assert tried[2] == tried[0]
    lab.round()
    assert (lab.where(guest), lab.copies(guest), lab.entry(guest).refused) == (tried[1], [tried[1]], ())


def test_a_move_takes_several_rounds_and_has_room_on_both_members_meanwhile(lab: Machines) -> None:
    guest = lab.on_one()
    lab.maintain(ONE)
    lab.strike(2, RoundOver)
    lab.round()
    assert lab.copies(guest) == [ONE]
    assert lab.entry(guest).moving is not None
    lab.maintain(ONE, False)
    free = {room.member: room.free.ram_mb for room in lab.driver._clusters()[0].rooms()}
    assert free == {ONE: 3072, TWO: 3072}
    assert lab.driver.states() == {guest.id: State.RUNNING}
    lab.round()
    assert (lab.where(guest), lab.copies(guest), lab.entry(guest).moving) == (TWO, [TWO], None)


@pytest.mark.parametrize("late", [True, False])
@pytest.mark.parametrize("good", [1, 2])
def test_a_step_without_an_answer_is_asked_for_again(lab: Machines, good: int, late: bool) -> None:
    guest = lab.on_one()
    lab.maintain(ONE)
    lab.strike(good, Unanswered, late=late)
    lab.round()
    assert lab.entry(guest).moving is not None
    lab.round()
    assert (lab.where(guest), lab.copies(guest), lab.entry(guest).moving) == (TWO, [TWO], None)


@pytest.mark.parametrize("late", [True, False])
@pytest.mark.parametrize("good", range(4))
def test_a_worker_that_dies_at_any_step_is_succeeded(lab: Machines, good: int, late: bool) -> None:
    guest = lab.on_one()
    lab.maintain(ONE)
    lab.strike(good, Dies, late=late)
    lab.round()
    assert len(lab.copies(guest)) == 1
    lab.round()
    assert (lab.where(guest), lab.copies(guest), lab.entry(guest).moving) == (TWO, [TWO], None)
    assert guest.id not in lab.machines[ONE].driver.disks


@pytest.mark.parametrize(("good", "late", "where"), [(2, False, ONE), (2, True, TWO), (3, False, TWO)])
def test_other_work_on_a_server_ends_its_move(lab: Machines, good: int, late: bool, where: str) -> None:
    guest = lab.on_one()
    lab.maintain(ONE)
    lab.strike(good, Dies, late=late)
    lab.round()
    lab.driver.stop(guest)
    assert (lab.where(guest), lab.copies(guest), lab.entry(guest).moving) == (where, [], None)
    lab.driver.delete(guest.id)
    assert [one.driver.disks for one in lab.machines.values()] == [{}, {}]


def test_a_source_that_fails_has_its_server_restarted_once(lab: Machines) -> None:
    guest = lab.on_one()
    lab.maintain(ONE)
    lab.strike(2, Dies)
    lab.round()
    lab.machines[ONE].driver.up = False
    lab.round()
    assert (lab.where(guest), lab.copies(guest), lab.entry(guest).moving) == (TWO, [TWO], None)
    assert lab.verbs(TWO)[-1] == "run"


def test_a_server_that_may_have_been_sent_waits_for_its_destination(lab: Machines) -> None:
    """Its worker died before it could record that, and then both machines failed."""
    guest = lab.on_one()
    lab.member("m3", here=False)
    lab.maintain("m3")
    lab.maintain(ONE)
    lab.strike(2, Dies, late=True)
    lab.round()
    lab.maintain("m3", False)
    for one in (ONE, TWO):
        lab.machines[one].driver.up = False
    lab.round()
    assert lab.copies(guest) == [TWO]
    lab.machines[TWO].driver.up = True
    lab.round()
    assert len(lab.copies(guest)) == 1
    assert lab.copies(guest) == [lab.where(guest)]


@pytest.mark.parametrize("good", [0, 1, 2])
def test_a_destination_that_fails_leaves_the_server_at_its_source(lab: Machines, good: int) -> None:
    guest = lab.on_one()
    lab.maintain(ONE)
    lab.strike(good, Dies)
    lab.round()
    lab.machines[TWO].driver.up = False
    lab.round()
    assert (lab.where(guest), lab.copies(guest), lab.entry(guest).moving) == (ONE, [ONE], None)
    lab.machines[TWO].driver.up = True
    lab.round()
    assert lab.copies(guest) == [ONE]


FIRST, LAST = "00000000-0000-4000-8000-000000000000", "ffffffff-ffff-4fff-8fff-ffffffffffff"
"""Ids of the servers that a round comes to first and last."""


def moving_beside(lab: Machines, good: int, error: type[BaseException]) -> tuple[Guest, Guest]:
    """Two servers that have to move: FIRST from ONE to TWO, which has ended at a step, and LAST from m3 to m4."""
    for name in ("m3", "m4"):
        lab.member(name, here=False)
    made = []
    for name, server_id in ((ONE, FIRST), ("m3", LAST)):
        for each in lab.machines:
            lab.maintain(each, each != name)
        made.append(lab.guest(id=server_id))
        lab.driver.run(made[-1])
        assert lab.where(made[-1]) == name
    for name in lab.machines:
        lab.maintain(name, name in (ONE, "m4"))
    lab.strike(good, error)
    lab.round()
    assert lab.entry(made[0]).moving is not None
    for name in lab.machines:
        lab.maintain(name, name in (ONE, "m3"))
    return made[0], made[1]


def test_a_member_that_beats_and_answers_nothing_does_not_keep_other_servers_from_moving(lab: Machines) -> None:
    one, other = moving_beside(lab, 2, RoundOver)
    lab.machines[TWO].driver.mute = True
    lab.round()
    assert (lab.where(other), lab.copies(other)) == ("m4", ["m4"])
    assert (lab.where(one), lab.copies(one)) == (ONE, [ONE])
    lab.machines[TWO].driver.mute = False
    lab.round()
    assert (lab.where(one), lab.copies(one), lab.entry(one).moving) == (TWO, [TWO], None)


def test_a_step_that_is_never_answered_does_not_keep_other_servers_from_moving(lab: Machines) -> None:
    one, other = moving_beside(lab, 2, Unanswered)
    lab.strike(0, Unanswered)
    lab.round()
    assert (lab.where(other), lab.copies(other)) == ("m4", ["m4"])
    move = lab.entry(one).moving
    assert move is not None
    assert move.unanswered
    lab.strike(0, RoundOver)
    lab.round()
    move = lab.entry(one).moving
    assert move is not None
    assert not move.unanswered
    lab.round()
    assert (lab.where(one), lab.copies(one)) == (TWO, [TWO])


@pytest.mark.parametrize("fails", [True, False])
def test_servers_do_not_go_to_a_member_that_answers_nothing(lab: Machines, fails: bool) -> None:
    lab.member("m3", here=False)
    lab.maintain("m3")
    guest = lab.on_one()
    lab.maintain("m3", False)
    lab.machines[TWO].driver.mute = True
    if fails:
        host = lab.machines[ONE].driver
        assert isinstance(host, Host)
        host.die()
    else:
        lab.maintain(ONE)
    lab.round()
    assert (lab.where(guest), lab.copies(guest)) == ("m3", ["m3"])


def test_a_server_that_is_to_be_started_on_a_member_waits_until_that_answers(lab: Machines) -> None:
    guest = lab.on_one()
    host = lab.machines[ONE].driver
    assert isinstance(host, Host)
    host.die()
    lab.strike(0, Dies)
    lab.round()
    assert lab.entry(guest).starts
    lab.machines[TWO].driver.mute = True
    lab.round()
    assert (lab.copies(guest), lab.entry(guest).starts) == ([], True)
    lab.machines[TWO].driver.mute = False
    lab.round()
    assert (lab.where(guest), lab.copies(guest)) == (TWO, [TWO])


def test_the_files_of_the_ledger_do_not_have_the_key_of_a_migration(lab: Machines) -> None:
    guest = lab.on_one()
    lab.maintain(ONE)
    lab.strike(2, RoundOver)
    lab.round()
    file = lab.ledger.folder / f"{guest.id}.json"
    assert SECRETS in file.read_text()
    assert KEY not in file.read_text()
    lab.round()
    assert lab.where(guest) == TWO


def test_a_migration_that_an_older_release_began_goes_on(lab: Machines) -> None:
    guest = lab.on_one()
    lab.maintain(ONE)
    lab.strike(2, RoundOver)
    lab.round()
    move = lab.entry(guest).moving
    assert move is not None
    open_key = {**(move.arrangement or {}), SECRETS: {"key": KEY}}
    lab.ledger.write(replace(lab.entry(guest), moving=replace(move, arrangement=open_key)))
    lab.round()
    assert (lab.where(guest), lab.copies(guest)) == (TWO, [TWO])


def test_a_round_ends_the_copy_of_a_disk_before_that_of_the_memory() -> None:
    assert Watcher()(Progress(disk_total=1)) is MigrationCommand.GO_ON
    with pytest.raises(RoundOver):
        Watcher(Watcher().since - DISK_SECONDS - 1)(Progress(disk_total=1))
    late = Watcher(Watcher().since - DISK_SECONDS - 1)
    assert late(Progress(memory_total=1)) is MigrationCommand.GO_ON
    with pytest.raises(RoundOver):
        Watcher(Watcher().since - MEMORY_SECONDS - 1)(Progress(memory_total=1))
