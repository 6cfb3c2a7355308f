"""Power beside all else: bookings at the same moment, healing, supplies that hang, drivers of strangers."""

import random
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import structlog

from climate.context import Climate
from climate.domain.errors import ClimateError
from climate.domain.facts import HostMoved
from climate.domain.hosts.pools import Pool
from climate.power import OFF, ON, PowerError, Target
from climate.power.simulated import MemoryDriver, MemorySettings, Trouble
from climate.service.host_operations import failures
from climate.service.journal import consistency_check
from climate.service.leases import healing
from climate.service.power import parallel_requests, power_saving, switching
from climate.store.hosts import pool_membership
from tests.conftest import ADMIN, Clock
from tests.service import lease_actions
from tests.service.fake_power import Machines, machines
from tests.service.lease_actions import get, held, hosts_wanted, make, run_due
from tests.system.stack import await_so

NOTED = (
    "CREATE TABLE noted (id bigserial PRIMARY KEY, host bigint, what text)",
    "CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS"
    " 'BEGIN INSERT INTO noted (host, what) VALUES (NEW.host, TG_ARGV[0]); RETURN NEW; END'",
    "CREATE TRIGGER booked AFTER INSERT ON allocations FOR EACH ROW EXECUTE FUNCTION note('booked')",
    "CREATE TRIGGER wished AFTER UPDATE OF wanted ON host_power FOR EACH ROW"
    " WHEN (NEW.wanted = 'off' AND OLD.wanted IS DISTINCT FROM NEW.wanted) EXECUTE FUNCTION note('off')",
)
"""Who came first: both are written under the row lock of the host."""

ROUNDS = 12
"""Of bookings beside rounds of power, at least; as many more as it takes until each was first."""


def many_at_once(climate: Climate, clock: Clock, tmp_path: Path) -> Machines:
    """With a cloud that does not mind that others have transactions open while it works for one."""
    room = machines(climate, clock, tmp_path)
    room.cloud.watch = None
    return room


def test_never_off_with_a_need_inside_the_lead(climate: Climate, clock: Clock, tmp_path: Path) -> None:
    """Bookings and rounds at the same moment, many times: whoever is second knows of the first."""
    room = many_at_once(climate, clock, tmp_path)
    room.wire(*range(1, 9), shutdown_seconds=0, boot_seconds=0)
    with room.climate.engine.begin() as conn:
        for statement in NOTED:
            conn.exec_driver_sql(statement)
    dice = random.Random(7)

    def book(start: float) -> bool:
        try:
            return bool(held(make(room.climate, clock, hosts_wanted(2), start=start, hours=0.2)))
        except ClimateError:
            return False

    orders: set[tuple[str, ...]] = set()
    first: set[str] = set()
    rounds = 0
    while rounds < ROUNDS or (first != {"booked", "off"} and rounds < 20 * ROUNDS):
        rounds += 1
        clock.forward(seconds=900)
        starts = [dice.uniform(0.05, 0.3) for _ in range(4)]
        with ThreadPoolExecutor(6) as pool:
            work = [pool.submit(power_saving.run_round, room.climate) for _ in range(2)]
            work += [pool.submit(book, start) for start in starts]
        for one in work:
            one.result()
        with room.climate.engine.begin() as conn:
            for number in range(1, 9):
                query = "SELECT what FROM noted WHERE host = %s ORDER BY id"
                orders.add(tuple(conn.exec_driver_sql(query, (number,)).scalars()))
            conn.exec_driver_sql("UPDATE allocations SET state = 'released'")
            conn.exec_driver_sql("DELETE FROM noted")
            conn.exec_driver_sql("UPDATE host_power SET wanted = NULL, changed_at = NULL")
            conn.exec_driver_sql("UPDATE hosts SET switched_on = true")
        for number in range(1, 9):
            room.by_itself(number, ON)
        first = {order[0] for order in orders if order}
    assert first == {"booked", "off"}, "both came first at times"
    assert ("booked", "off") not in orders


def test_a_booking_that_came_first_keeps_its_host_on(climate: Climate, clock: Clock, tmp_path: Path) -> None:
    """Between what the round has read and what it writes, hosts are booked, moved, or switched by others."""
    room = machines(climate, clock, tmp_path)
    room.wire(*range(1, 9))
    clock.forward(seconds=900)
    seen = {number: room.place(number) for number in range(1, 9)}
    supplies = {number: room.supply(number) for number in range(1, 9)}
    booked = held(make(room.climate, clock, hosts_wanted(5), start=0.1))
    moved, changed, *_ = sorted(set(seen) - set(booked))
    with room.climate.engine.begin() as conn:
        pool_membership.record(conn, ADMIN, [(seen[moved], [HostMoved(clock.time, Pool.MAINTENANCE, "work")])])
    room.wire(changed)
    jobs = switching.wish(room.climate, dict.fromkeys(seen.values(), OFF), supplies)
    assert [job.place.host for job in jobs] == sorted(set(seen) - set(booked) - {moved, changed})
    assert [number for number in seen if room.supply(number).wanted == OFF] == [job.place.host for job in jobs]


def test_a_host_that_hangs_fails_and_its_lease_gets_another_before_it_starts(
    climate: Climate, clock: Clock, tmp_path: Path
) -> None:
    room = machines(climate, clock, tmp_path, power_on_lead=1200)
    room.wire(*range(1, 9))
    lease = make(room.climate, clock, start=2)
    first = min(held(lease))
    room.pass_(900, step=60)
    assert len(room.off()) == 8
    room.tell(first, Trouble.HANGS)
    room.pass_(3600)
    while clock.time < lease.period.start:
        room.pass_(60, step=60)
        failures.check(room.climate)
        healing.heal_all(room.climate)
        run_due(room.climate)
    healed = get(room.climate, lease)
    assert room.place(first).pool is Pool.FAILED
    assert (healed.status, held(healed) & {first}) == ("ACTIVE", set())
    assert (healed.event(lease_actions.START).outcome, healed.degraded) == ("OK", False)
    assert {8 - len(room.off())} == {1}
    assert not consistency_check.differences(room.climate)


def test_hosts_that_are_off_or_coming_up_are_not_taken_for_failed(
    climate: Climate, clock: Clock, tmp_path: Path
) -> None:
    room = machines(climate, clock, tmp_path)
    room.wire(*range(1, 9), boot_seconds=500)
    make(room.climate, clock, hosts_wanted(4), start=2)
    for step in (*[60] * 20, *[300] * 14, *[60] * 30):
        room.pass_(step, step)
        failures.check(room.climate)
        run_due(room.climate)
    assert {room.place(number).pool for number in range(1, 9)} <= {Pool.RESERVATION, Pool.LENT}
    assert len(room.off()) == 4


@dataclass
class Gate(MemoryDriver):
    """A driver whose calls for one host last until a test lets them go."""

    slow: str = ""
    open: threading.Event = field(default_factory=threading.Event)

    def state(self, target: Target) -> str:
        if target.host == self.slow and not self.open.wait(60):
            raise PowerError("nobody opened")
        return super().state(target)


def test_one_that_hangs_keeps_nobody_waiting(climate: Climate, clock: Clock, tmp_path: Path) -> None:
    room = many_at_once(climate, clock, tmp_path)
    room.wire(*range(1, 9))
    gate = Gate(room.driver.folder, room.driver.now, slow="h4")
    room.climate = replace(room.climate, power={"memory": gate})
    clock.forward(seconds=900)
    thread = threading.Thread(target=power_saving.run_round, args=(room.climate,))
    thread.start()
    try:
        others = [number for number in range(1, 9) if number != 4]
        await_so(lambda: all(room.supply(number).seen_at for number in others), 60, "all others to be written down")
        assert thread.is_alive(), "the fourth has not answered yet"
    finally:
        gate.open.set()
        thread.join()
    assert room.supply(4).seen_at is not None


class Stranger:
    """A driver of somebody else, with a fault of its own."""

    schema = MemorySettings
    secrets = frozenset({"password"})

    def state(self, target: Target) -> str:
        raise ZeroDivisionError(target.secrets["password"])

    on = off = state  # type: ignore[assignment]


def test_a_faulty_driver_harms_nobody_else_and_tells_no_secret(climate: Climate, clock: Clock, tmp_path: Path) -> None:
    room = machines(climate, clock, tmp_path)
    room.wire(*range(1, 9))
    with room.climate.engine.begin() as conn:
        conn.exec_driver_sql("UPDATE host_power SET driver = 'theirs' WHERE host = 2")
        conn.exec_driver_sql("UPDATE host_power SET driver = 'gone' WHERE host = 3")
        conn.exec_driver_sql("UPDATE host_power SET secrets = 'gAAAAA' WHERE host = 4")
    theirs: Any = Stranger()
    room.climate = replace(room.climate, power={**room.climate.power, "theirs": theirs})
    with structlog.testing.capture_logs() as said:
        room.pass_(1200, step=60)
    assert room.off() == [1, 5, 6, 7, 8]
    assert room.supply(2).error == "the driver theirs failed: ZeroDivisionError"
    assert room.supply(3).error == "there is no power driver gone here"
    assert "have to be given again" in room.supply(4).error
    told = [message for kind, message in room.told() if kind == "power.failed"]
    assert sorted({message.partition(" cannot")[0] for message in told}) == [
        f"The power supply of host h{number}" for number in (2, 3, 4)
    ]
    assert "correct horse" not in f"{said} {told}"


def test_many_are_asked_at_once(climate: Climate, clock: Clock, tmp_path: Path) -> None:
    room = machines(climate, clock, tmp_path)
    room.wire(*range(1, 9))
    met = threading.Barrier(8, timeout=30)

    class Meeting(MemoryDriver):
        def state(self, target: Target) -> str:
            met.wait()
            return super().state(target)

    room.climate = replace(room.climate, power={"memory": Meeting(room.driver.folder, room.driver.now)})
    power_saving.run_round(room.climate)
    assert [room.supply(number).error for number in range(1, 9)] == [""] * 8
    assert parallel_requests.AT_ONCE >= 8


def test_two_rounds_at_a_time_write_everything_once(climate: Climate, clock: Clock, tmp_path: Path) -> None:
    room = many_at_once(climate, clock, tmp_path)
    room.wire(*range(1, 9))
    before = {number: room.place(number).version for number in range(1, 9)}
    for _ in range(6):
        clock.forward(seconds=200)
        with ThreadPoolExecutor(4) as pool:
            for one in [pool.submit(power_saving.run_round, room.climate) for _ in range(4)]:
                one.result()
    assert room.off() == list(range(1, 9))
    assert {number: room.place(number).version - 1 for number in range(1, 9)} == before
    assert {room.driver.machine(f"h{number}").switches for number in range(1, 9)} == {1}


def test_settings_that_change_while_their_host_is_asked(climate: Climate, clock: Clock, tmp_path: Path) -> None:
    """What was seen through the old ones says nothing of the new."""
    room = machines(climate, clock, tmp_path)
    room.wire(1)
    room.by_itself(1, OFF)

    class Meanwhile(MemoryDriver):
        def state(self, target: Target) -> str:
            clock.forward(seconds=1)
            room.wire(1, boot_seconds=9)
            return super().state(target)

    asking = replace(room.climate, power={"memory": Meanwhile(room.driver.folder, room.driver.now)})
    power_saving.run_round(asking)
    assert (room.supply(1).seen_at, room.place(1).on) == (None, True)
    power_saving.run_round(room.climate)
    assert not room.place(1).on


def test_the_lead_is_measured_when_the_wish_is_written(climate: Climate, clock: Clock, tmp_path: Path) -> None:
    room = machines(climate, clock, tmp_path)
    room.wire(*range(1, 9))
    make(room.climate, clock, hosts_wanted(8), start=(900 + 600 + 600 - 1) / 3600)
    clock.forward(seconds=900)
    assert power_saving.run_round(room.climate) == 0


def test_owners_are_not_informed_which_machine_does_not_come_up(climate: Climate, clock: Clock, tmp_path: Path) -> None:
    room = machines(climate, clock, tmp_path)
    room.wire(*range(1, 9))
    room.pass_(1800)
    assert len(room.off()) == 8
    for number in range(1, 9):
        room.tell(number, Trouble.FAILS)
    lease = make(room.climate, clock, hosts_wanted(2), start=0)
    run_due(room.climate)
    reasons = [event.reason for event in get(room.climate, lease).events if event.reason]
    assert reasons == ["2 hosts are coming up"]
