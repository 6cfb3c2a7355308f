"""Hosts that nobody needs are off, and up when somebody does."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from climate import bootstrap
from climate.cloud import CloudError
from climate.context import Climate
from climate.domain.errors import Conflict
from climate.domain.hosts.pools import Pool
from climate.power import OFF, ON
from climate.power.simulated import Trouble
from climate.service.host_operations import failures
from climate.service.host_operations.pool_moves import move
from climate.service.hosts import inventory
from climate.service.hosts.move_checks import RequestedMove
from climate.service.journal import consistency_check
from climate.service.leases import healing
from climate.service.power import power, power_saving
from climate.service.power.power import ManualRequest
from climate.settings import SettingError, Settings
from climate.store.hosts import power as supplies
from climate.store.hosts.power import Counted
from tests.campaign import length
from tests.conftest import ADMIN, Clock
from tests.scenarios.test_statement_counts import cost
from tests.service import lease_actions
from tests.service.capacity_factory import servers
from tests.service.fake_power import Machines, machines
from tests.service.lease_actions import get, held, hosts_wanted, make, reservation, run_due


@pytest.fixture
def make_room(climate: Climate, clock: Clock, tmp_path: Path) -> Callable[..., Machines]:
    def make(**settings: Any) -> Machines:
        room = machines(climate, clock, tmp_path, **settings)
        room.wire(*range(1, 9))
        return room

    return make


@pytest.fixture
def room(make_room: Callable[..., Machines]) -> Machines:
    return make_room()


def test_an_idle_host_goes_off_and_is_up_when_its_lease_starts(room: Machines, clock: Clock) -> None:
    lease = make(room.climate, clock, hosts_wanted(2), start=2)
    assert lease.events[0].kind == lease_actions.PREPARE
    room.pass_(570)
    assert room.states() == "11111111"
    room.pass_(60)
    assert "1" not in room.states(), "the least time on is over"
    room.pass_(90)
    assert room.off() == list(range(1, 9))
    clock.time = lease.period.start
    clock.forward(seconds=-600)
    run_due(room.climate)
    assert sorted(room.place(n).host for n in held(lease) if room.state(n) == "unknown") == sorted(held(lease))
    for _ in range(6):
        room.pass_(30)
        run_due(room.climate)
    prepared = get(room.climate, lease).event(lease_actions.PREPARE)
    assert (prepared.status, prepared.outcome) == ("DONE", "LATE")
    assert [room.place(n).on for n in held(lease)] == [True, True]
    clock.time = lease.period.start
    run_due(room.climate)
    assert get(room.climate, lease).status == "ACTIVE"
    assert len(room.cloud.pools()[reservation(lease)]) == 2


def test_a_host_with_servers_stays_on_whoever_put_them_there(room: Machines) -> None:
    server_id = room.cloud.boot("project")
    room.cloud.migrate(server_id, "h3")
    room.cloud.failures["servers_on"] = CloudError("the cloud is away")
    room.pass_(700)
    room.pass_(90)
    assert room.off() == [], "nobody says that they are empty"
    room.cloud.failures.clear()
    room.pass_(30)
    room.pass_(90)
    assert room.off() == [1, 2, 4, 5, 6, 7, 8]
    room.cloud.delete_server(server_id, 0)
    room.pass_(90)
    assert room.place(3).on, "it was in use until a moment ago"
    room.pass_(300)
    room.pass_(90)
    assert room.off() == list(range(1, 9))


def test_the_rounds_alone_bring_a_host_up_in_time(room: Machines, clock: Clock) -> None:
    lease = make(room.climate, clock, start=3)
    room.pass_(2.5 * 3600)
    room.pass_(0.5 * 3600)
    assert [room.place(n).on for n in held(lease)] == [True]
    assert len(room.off()) == 7


def test_a_lease_at_once_on_a_host_that_is_off_waits_for_it(room: Machines, clock: Clock) -> None:
    room.pass_(900)
    assert len(room.off()) == 8
    lease = make(room.climate, clock, start=0)
    run_due(room.climate)
    waiting = get(room.climate, lease)
    assert (waiting.status, waiting.event(lease_actions.START).attempts) == ("STARTING", 0)
    assert "is coming up" in str(waiting.event(lease_actions.START).reason)
    for _ in range(10):
        room.pass_(20, step=20)
        run_due(room.climate)
    assert get(room.climate, lease).status == "ACTIVE"


def test_what_starts_soon_goes_to_hosts_that_are_on(make_room: Callable[..., Machines], clock: Clock) -> None:
    room = make_room(warm_hosts=2)
    room.pass_(900)
    assert len(room.off()) == 6
    lease = make(room.climate, clock, hosts_wanted(2), start=0)
    assert not set(held(lease)) & set(room.off())


def test_a_host_on_its_way_off_is_not_asked_to_turn_round(room: Machines, clock: Clock) -> None:
    room.pass_(610, step=610)
    assert set(room.states()) == {"?"}
    lease = make(room.climate, clock, start=0)
    run_due(room.climate)
    number = min(held(lease))
    assert room.supply(number).wanted == OFF
    assert "1 host is coming up" in str(get(room.climate, lease).event(lease_actions.START).reason)
    for _ in range(12):
        room.pass_(30)
        run_due(room.climate)
    assert get(room.climate, lease).status == "ACTIVE"
    assert room.driver.machine(f"h{number}").switches == 2


def test_the_cloud_is_not_believed_while_it_may_not_have_noticed(room: Machines, clock: Clock) -> None:
    """It calls a host well for a while after it went off, hence also when it has just been switched on again."""
    room.wire(3, boot_seconds=1, shutdown_seconds=1)
    room.pass_(600)
    clock.forward(seconds=5)
    power_saving.run_round(room.climate)
    assert 3 in room.off()
    lease = make(room.climate, clock, hosts_wanted(8), start=0)
    run_due(room.climate)
    clock.forward(seconds=5)
    room.cloud.unwell = {}
    power_saving.run_round(room.climate)
    assert (room.state(3), room.place(3).on) == (ON, False)
    clock.forward(seconds=60)
    power_saving.run_round(room.climate)
    assert room.place(3).on
    assert get(room.climate, lease).status == "STARTING"


@pytest.mark.parametrize("trouble", [Trouble.STUCK, Trouble.FAILS, Trouble.HANGS, Trouble.REFUSES])
def test_a_host_that_does_not_come_up_has_failed(room: Machines, clock: Clock, trouble: Trouble) -> None:
    lease = make(room.climate, clock, start=2)
    number = min(held(lease))
    room.pass_(900)
    room.tell(number, trouble)
    room.pass_(4500)
    room.pass_(1800)
    failed = room.place(number)
    assert (failed.pool, failed.on) == (Pool.FAILED, False)
    assert "has not come up since" in failed.reason
    assert f"h{number}" in room.cloud.pools()["failed"]
    kinds = [kind for kind, message in room.told() if f"h{number}" in message]
    assert kinds.count("power.failed") >= 1
    assert len(kinds) <= 3, "admins are told, not pestered"


def test_one_that_comes_up_late_is_up_all_the_same(room: Machines, clock: Clock) -> None:
    lease = make(room.climate, clock, start=2)
    number = min(held(lease))
    room.wire(number, boot_seconds=3000, shutdown_seconds=1)
    room.pass_(7200)
    assert room.place(number).pool is Pool.FAILED
    room.pass_(3600)
    assert (room.place(number).on, room.place(number).pool) == (True, Pool.FAILED), "others take it back from there"


def test_a_cloud_that_cannot_say_fails_nobody(room: Machines, clock: Clock) -> None:
    lease = make(room.climate, clock, start=2)
    number = min(held(lease))
    room.pass_(900)
    room.cloud.failures = {"health": CloudError("away")}
    room.pass_(7200)
    assert (room.state(number), room.place(number).on, room.place(number).pool) == (ON, False, Pool.RESERVATION)
    room.cloud.failures = {}
    room.pass_(30)
    assert room.place(number).on


@pytest.mark.parametrize("trouble", [Trouble.STUCK, Trouble.FAILS, Trouble.REFUSES])
def test_a_host_that_does_not_go_off_stays_on_and_is_reported(room: Machines, trouble: Trouble) -> None:
    room.tell(5, trouble)
    room.pass_(2400)
    assert room.place(5).on
    assert room.place(5).pool is Pool.RESERVATION
    assert room.off() == [1, 2, 3, 4, 6, 7, 8]
    told = [message for kind, message in room.told() if kind == "power.failed"]
    assert told
    assert all("h5" in message for message in told)
    assert room.driver.calls.count(("off", "h5")) < 60


def test_who_is_slow_to_answer_is_asked_ever_less(room: Machines) -> None:
    room.tell(5, Trouble.HANGS)
    room.pass_(3600)
    assert room.driver.calls.count(("state", "h5")) < 20
    room.tell(5, Trouble.NONE)
    room.pass_(1800)
    assert 5 in room.off()
    assert room.supply(5).error == ""


def test_a_host_that_somebody_else_switched_off_is_seen_reported_and_switched_on_when_needed(
    make_room: Callable[..., Machines], clock: Clock
) -> None:
    room = make_room(idle_off_after=0)
    lease = make(room.climate, clock, hosts_wanted(8), start=2)
    assert lease.events[0].kind == lease_actions.START, "without saving there is nothing to prepare"
    room.by_itself(2, OFF)
    room.pass_(90)
    assert room.off() == [2]
    assert ("power.switched", "Host h2 was switched off, and not by climate") in room.told()
    room.pass_(7200)
    assert room.off() == []
    run_due(room.climate)
    assert get(room.climate, lease).status == "ACTIVE"


def test_a_host_that_is_in_use_is_not_called_off(room: Machines, clock: Clock) -> None:
    """It has failed: that is for those to find who look at the health of hosts."""
    lease = make(room.climate, clock, start=0)
    run_due(room.climate)
    number = min(held(lease))
    room.by_itself(number, OFF)
    room.pass_(600)
    assert room.place(number).on
    assert room.supply(number).state == OFF


def test_one_that_somebody_else_switched_on_is_up_when_the_cloud_says_so(room: Machines) -> None:
    room.pass_(900)
    room.by_itself(4, ON)
    room.pass_(60)
    assert 4 not in room.off()
    assert ("power.switched", "Host h4 was switched on, and not by climate") in room.told()
    room.pass_(900)
    assert 4 in room.off()


def test_hosts_never_flap(make_room: Callable[..., Machines], clock: Clock) -> None:
    room = make_room(warm_hosts=2)
    for hour in range(length(2, 12)):
        make(room.climate, clock, start=1.5, hours=0.5)
        room.pass_(3600, step=60)
        run_due(room.climate)
        assert max(room.driver.machine(f"h{n}").switches for n in range(1, 9)) <= 2 * (hour + 1)


def test_without_settings_nothing_is_switched(climate: Climate, clock: Clock, tmp_path: Path) -> None:
    room = machines(climate, clock, tmp_path)
    assert cost(room.climate.engine, lambda: power_saving.run_round(room.climate)) <= 2
    room.wire(1)
    room.climate = replace(room.climate, settings=replace(room.climate.settings, idle_off_after=0))
    room.pass_(7200, step=600)
    assert room.state(1) == ON


def test_a_round_takes_as_many_statements_for_one_host_as_for_all(
    climate: Climate, clock: Clock, tmp_path: Path
) -> None:
    room = machines(climate, clock, tmp_path)
    engine = room.climate.engine

    def through() -> list[int]:
        """A round that switches off, one that looks, one that sees them off, and on again."""
        costs = []
        for seconds in (700, 30, 60):
            clock.forward(seconds=seconds)
            costs.append(cost(engine, lambda: power_saving.run_round(room.climate)))
        return costs

    room.wire(1)
    one = through()
    room.wire(1)
    for number in room.off():
        room.by_itself(number, ON)
    clock.forward(seconds=120)
    power_saving.run_round(room.climate)
    room.wire(*range(1, 9))
    assert through() == one
    assert sum(one) < 60


def test_a_host_that_is_closed_to_new_promises_is_let_be(make_room: Callable[..., Machines]) -> None:
    room = make_room(warm_hosts=7)
    with room.climate.engine.begin() as conn:
        conn.exec_driver_sql("UPDATE hosts SET reservable = false WHERE id = 6")
    room.pass_(3600)
    assert room.off() == []


def test_how_many_are_off_can_be_counted(room: Machines) -> None:
    def counted() -> Counted:
        with room.climate.engine.connect() as conn:
            return supplies.counted(conn)

    assert counted() == Counted(8, 0, 0)
    room.tell(5, Trouble.FAILS)
    room.pass_(1200)
    assert counted() == Counted(8, 7, 1)


def test_a_host_is_idle_only_once_its_servers_have_no_room_there_any_more(
    make_room: Callable[..., Machines], clock: Clock
) -> None:
    """Room for servers is on hosts of the reservation pool, which they never leave for it."""
    room = make_room(idle_off_after=1800)
    lease = make(room.climate, clock, servers(), start=0, hours=2)
    run_due(room.climate)
    room.pass_(7200)
    assert [number for number in range(1, 9) if number not in room.off()] == sorted(held(lease))
    run_due(room.climate)
    assert get(room.climate, lease).status == "TERMINATED"
    room.pass_(1700)
    assert len(room.off()) == 7
    room.pass_(300)
    assert len(room.off()) == 8


def test_a_host_in_use_that_somebody_switches_off_has_failed_and_its_lease_gets_another(
    room: Machines, clock: Clock
) -> None:
    lease = make(room.climate, clock, start=0)
    run_due(room.climate)
    (first,) = held(lease)
    room.by_itself(first, OFF)
    for _ in range(5):
        room.pass_(30, step=30)
        failures.check(room.climate)
        healing.heal_all(room.climate)
        run_due(room.climate)
    healed = get(room.climate, lease)
    assert room.place(first).pool is Pool.FAILED
    assert (healed.status, healed.reservations[0].missing, len(held(healed))) == ("ACTIVE", 0, 1)
    assert first not in held(healed)
    assert room.cloud.pools()[reservation(lease)] == {f"h{number}" for number in held(healed)}


def test_an_allocated_host_that_an_admin_switches_off_has_failed_too(room: Machines, clock: Clock) -> None:
    lease = make(room.climate, clock, start=0)
    run_due(room.climate)
    (first,) = held(lease)
    power.switch(room.climate, ADMIN, str(first), ManualRequest(False, hard=True, force=True))
    room.pass_(60)
    assert (room.place(first).pool, room.place(first).on) == (Pool.LENT, False)
    for _ in range(3):
        failures.check(room.climate)
        clock.forward(seconds=60)
    healing.heal_all(room.climate)
    assert room.place(first).pool is Pool.FAILED
    assert first not in held(get(room.climate, lease))


@pytest.mark.parametrize(("wanted", "many"), [(hosts_wanted(), 8), (servers(vcpus=4), 12)], ids=["hosts", "servers"])
def test_of_hosts_that_are_not_up_those_that_come_are_chosen_first_and_those_that_go_last(
    room: Machines, clock: Clock, wanted: dict[str, Any], many: int
) -> None:
    room.pass_(900)
    with room.climate.engine.begin() as conn:
        conn.exec_driver_sql("UPDATE hosts SET switched_on = true WHERE id IN (1, 2)")
        supplies.wish(conn, {5: ON, 2: None}, clock.time)
    assert room.supply(1).wanted == OFF
    chosen = [held(make(room.climate, clock, wanted, start=0)) for _ in range(many)]
    assert [chosen[0], chosen[1], chosen[-1]] == [{2}, {5}, {1}]


def test_a_host_that_is_off_is_neither_removed_nor_given_to_the_ordinary_scheduler(
    room: Machines, clock: Clock
) -> None:
    room.pass_(610, step=610)
    for off in (False, True):
        assert (len(room.off()) == 8) is off
        for dry_run in (True, False):
            with pytest.raises(Conflict, match="h3; switch them on first"):
                inventory.remove(room.climate, ADMIN, "3", dry_run=dry_run)
            with pytest.raises(Conflict, match="h3, h4; switch them on first"):
                move(room.climate, ADMIN, RequestedMove(["4", "3"], Pool.MULTI_TENANT), dry_run=dry_run)
        room.pass_(120)
    power.switch(room.climate, ADMIN, "3", ManualRequest(True))
    room.pass_(240)
    move(room.climate, ADMIN, RequestedMove(["3"], Pool.MULTI_TENANT))
    assert (room.place(3).pool, room.place(3).on) == (Pool.MULTI_TENANT, True)
    inventory.remove(room.climate, ADMIN, "3")
    power.clear(room.climate, ADMIN, "4", force=True)
    inventory.remove(room.climate, ADMIN, "4")
    failures.fail(room.climate, ADMIN, "5", "burnt")
    inventory.remove(room.climate, ADMIN, "5")
    with room.climate.engine.connect() as conn:
        assert sorted(supplies.of(conn, range(1, 9))) == [1, 2, 6, 7, 8]
    room.pass_(600)
    assert not consistency_check.differences(room.climate)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"power_timeout": 901}, "power_on_lead is 0:15:00, but hosts may need 0:15:01"),
        ({"power_on_lead": 599}, "leases would start late"),
        ({"least_off": 366 * 86400}, "least_off is 366 days"),
    ],
    ids=str,
)
def test_settings_that_contradict_each_other_are_found_before_anything_starts(wrong: dict[str, int], says: str) -> None:
    with pytest.raises(SettingError, match=says):
        bootstrap.check(replace(Settings(), **wrong))  # type: ignore[arg-type]


def test_a_host_that_dies_soon_after_it_has_come_up_has_failed_as_soon_as_any_other(
    room: Machines, clock: Clock
) -> None:
    room.pass_(900)
    lease = make(room.climate, clock, start=0)
    (first,) = held(lease)
    for _ in range(10):
        run_due(room.climate)
        room.pass_(20, step=20)
    assert room.place(first).pool is Pool.LENT
    room.by_itself(first, OFF)
    for _ in range(4):
        room.pass_(30, step=30)
        failures.check(room.climate)
    assert room.place(first).pool is Pool.FAILED
