"""Windows in which hosts are worked on: nothing is promised across them, and hosts go and come back on time."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime, timedelta

import pytest
from sqlalchemy import text

from climate.cloud import FREEPOOL, MAINTENANCE, RECYCLING
from climate.cloud.fake import FakeCloud
from climate.context import Climate
from climate.domain.errors import Busy, Conflict, Forbidden, InvalidInput, NotEnoughHosts, NotFound
from climate.domain.events import event_transitions
from climate.domain.hosts.pools import Pool
from climate.domain.lease import Lease
from climate.domain.status import LeaseStatus
from climate.service.host_operations import failures, maintenance, pool_moves
from climate.service.host_operations.maintenance import Changes, Planned, WindowRequest
from climate.service.journal import consistency_check
from climate.service.leases import leases
from climate.service.leases.leases import LeaseRequest as LeaseOrder
from climate.store.hosts.maintenance import NO_END, WindowFilter, WindowState
from climate.store.leases import leases as store
from tests.conftest import ADMIN, MEMBER, Clock
from tests.scenarios.test_statement_counts import cost
from tests.service.host_rounds import fall_ill, pass_time, place, pool_of, recover, rounds, told
from tests.service.lease_actions import claim, get, held, hosts_wanted, make, reservation, rows, run, run_due


def window(
    climate: Climate, clock: Clock, host: int, start: float = 0, hours: float | None = 1, *, force: bool = False
) -> Planned:
    """A window that starts `start` hours from now."""
    begin = clock.time + timedelta(hours=start)
    end = None if hours is None else begin + timedelta(hours=hours)
    return maintenance.plan(climate, ADMIN, WindowRequest(str(host), begin, end, "new memory", force))


def on(climate: Climate, clock: Clock, host: int, *, start: float, hours: float) -> Lease:
    """A lease of the one host that is free then."""
    with climate.engine.connect() as conn:
        name = conn.scalar(text("SELECT hypervisor_hostname FROM hosts WHERE id = :id"), {"id": host})
    only = f'["==", "$hypervisor_hostname", "{name}"]'
    return make(climate, clock, hosts_wanted(1, hypervisor_properties=only), start=start, hours=hours)


def test_nothing_is_promised_across_a_window(climate: Climate, clock: Clock) -> None:
    window(climate, clock, 1, start=1, hours=1)
    with pytest.raises(NotEnoughHosts):
        on(climate, clock, 1, start=0.5, hours=1)
    with pytest.raises(NotEnoughHosts):
        on(climate, clock, 1, start=1.5, hours=2)
    assert held(on(climate, clock, 1, start=0.5, hours=0.5)) == {1}
    assert held(on(climate, clock, 1, start=2, hours=1)) == {1}


def test_the_host_goes_and_comes_back_on_time(climate: Climate, clock: Clock) -> None:
    planned = window(climate, clock, 1, start=1, hours=1).window
    pass_time(climate, clock, minutes=59)
    assert place(climate, 1).pool is Pool.RESERVATION
    pass_time(climate, clock, minutes=1)
    there = place(climate, 1)
    assert (there.pool, there.until) == (Pool.MAINTENANCE, planned.end)
    assert pool_of(climate, 1) == {MAINTENANCE}
    assert maintenance.get(climate, ADMIN, planned.id).state is WindowState.ACTIVE
    pass_time(climate, clock, minutes=59)
    assert place(climate, 1).pool is Pool.MAINTENANCE
    pass_time(climate, clock, minutes=1)
    assert place(climate, 1).pool is Pool.RESERVATION
    assert pool_of(climate, 1) == {FREEPOOL}
    assert maintenance.get(climate, ADMIN, planned.id).state is WindowState.DONE
    assert len(told(climate, "host.maintenance")) == 2
    assert consistency_check.differences(climate) == []


def test_an_open_window_lasts_until_it_is_ended(climate: Climate, clock: Clock) -> None:
    planned = window(climate, clock, 1, hours=None).window
    assert planned.end is None
    assert planned.during.end == NO_END
    pass_time(climate, clock, hours=10_000)
    assert place(climate, 1).pool is Pool.MAINTENANCE
    assert place(climate, 1).until is None
    with pytest.raises(NotEnoughHosts):
        on(climate, clock, 1, start=5000, hours=1)
    assert maintenance.end(climate, ADMIN, planned.id).state is WindowState.DONE
    assert place(climate, 1).pool is Pool.RESERVATION, "at once: the admin is waiting"
    assert maintenance.end(climate, ADMIN, planned.id).state is WindowState.DONE
    assert held(on(climate, clock, 1, start=0, hours=1)) == {1}


def test_one_that_has_not_begun_is_cancelled(climate: Climate, clock: Clock) -> None:
    planned = window(climate, clock, 1, start=1).window
    assert maintenance.end(climate, ADMIN, planned.id, dry_run=True).state is WindowState.CANCELLED
    assert maintenance.get(climate, ADMIN, planned.id).state is WindowState.PLANNED
    assert maintenance.end(climate, ADMIN, planned.id).state is WindowState.CANCELLED
    assert held(on(climate, clock, 1, start=1, hours=1)) == {1}
    pass_time(climate, clock, hours=3)
    assert place(climate, 1).pool is Pool.RESERVATION
    with pytest.raises(Conflict, match="cancelled"):
        maintenance.change(climate, ADMIN, planned.id, Changes(reason="x"))


def test_one_whose_time_has_passed_is_cancelled_and_the_next_one_begins(climate: Climate, clock: Clock) -> None:
    """As when no rounds were made for a while."""
    missed = window(climate, clock, 1, start=1).window
    clock.forward(hours=2)
    next_one = window(climate, clock, 1).window
    rounds(climate)
    assert place(climate, 1).pool is Pool.MAINTENANCE
    assert maintenance.get(climate, ADMIN, missed.id).state is WindowState.CANCELLED
    assert maintenance.get(climate, ADMIN, next_one.id).state is WindowState.ACTIVE


def test_leases_in_the_way_are_listed(climate: Climate, clock: Clock, engine: object) -> None:
    lease = on(climate, clock, 1, start=1, hours=1)
    before = rows(climate.engine)
    with pytest.raises(Conflict) as refused:
        window(climate, clock, 1, start=1.5)
    assert all(part in str(refused.value) for part in (str(lease.id), "(l, project project", "2030-01-01 13:00:00"))
    assert rows(climate.engine) == before


def test_with_force_they_get_other_hosts(climate: Climate, clock: Clock) -> None:
    lease = make(climate, clock, hosts_wanted(4), start=1, hours=1)
    host = min(held(lease))
    order = WindowRequest(str(host), lease.period.start, None, "x", force=True)
    trial = maintenance.plan(climate, ADMIN, order, dry_run=True)
    assert [outcome.lease.id for outcome in trial.moved] == [lease.id]
    assert get(climate, lease) == lease
    (moved,) = maintenance.plan(climate, ADMIN, order).moved
    assert (moved.lease.id, moved.replaced, moved.short) == (lease.id, True, 0)
    after = get(climate, lease)
    assert len(held(after)) == 4
    assert host not in held(after)
    assert not after.degraded
    pass_time(climate, clock, hours=1)
    assert get(climate, lease).status is LeaseStatus.ACTIVE
    assert consistency_check.differences(climate) == []


def test_where_there_is_none_they_do_without_and_are_healed_later(climate: Climate, clock: Clock) -> None:
    lease = make(climate, clock, hosts_wanted(8), start=0.5, hours=5)
    planned = window(climate, clock, 3, hours=1, force=True)
    assert [outcome.short for outcome in planned.moved] == [1]
    after = get(climate, lease)
    assert held(after) == {1, 2, 4, 5, 6, 7, 8}
    assert (after.reservations[0].missing, after.degraded) == (1, True)
    assert len(told(climate, "lease.degraded")) == 1
    pass_time(climate, clock, minutes=30)
    assert get(climate, lease).status is LeaseStatus.ACTIVE
    assert get(climate, lease).reservations[0].missing == 1
    pass_time(climate, clock, minutes=30)
    after = get(climate, lease)
    assert held(after) == held(lease)
    assert after.reservations[0].missing == 0
    assert pool_of(climate, 3) == {reservation(lease)}
    assert consistency_check.differences(climate) == []


def test_a_running_lease_is_moved_and_its_servers_stay(climate: Climate, clock: Clock, cloud: FakeCloud) -> None:
    lease = make(climate, clock, hosts_wanted(2), start=0, hours=5)
    run_due(climate)
    host = min(held(lease))
    server = cloud.boot("project", f"h{host}")
    window(climate, clock, host, start=0.5, hours=1, force=True)
    after = get(climate, lease)
    assert (len(held(after)), host in held(after), after.reservations[0].resources_changed) == (2, False, True)
    assert pool_of(climate, host) == {RECYCLING}
    pass_time(climate, clock, minutes=30)
    assert place(climate, host).pool is Pool.MAINTENANCE
    pass_time(climate, clock, hours=1)
    assert place(climate, host).pool is Pool.RECYCLING
    assert place(climate, host).until == lease.period.end
    assert cloud.server(server) is not None
    assert consistency_check.differences(climate) == []


def test_both_an_old_loss_and_a_new_one_count(climate: Climate, clock: Clock) -> None:
    lease = make(climate, clock, hosts_wanted(8), start=0, hours=5)
    run_due(climate)
    planned = window(climate, clock, 1, hours=None, force=True).window
    pass_time(climate, clock, seconds=1)
    assert get(climate, lease).reservations[0].missing == 1
    fall_ill(climate, clock, 2)
    assert get(climate, lease).reservations[0].missing == 2
    recover(climate, clock, 2)
    assert get(climate, lease).reservations[0].missing == 1
    maintenance.end(climate, ADMIN, planned.id)
    rounds(climate)
    assert get(climate, lease).reservations[0].missing == 0
    assert held(get(climate, lease)) == held(lease)


def test_a_failed_host_is_mended_in_a_window(climate: Climate, clock: Clock, cloud: FakeCloud) -> None:
    fall_ill(climate, clock, 1)
    planned = window(climate, clock, 1, hours=None).window
    rounds(climate)
    assert place(climate, 1).pool is Pool.MAINTENANCE
    pass_time(climate, clock, hours=1)
    cloud.unwell.clear()
    maintenance.end(climate, ADMIN, planned.id)
    assert place(climate, 1).pool is Pool.RESERVATION


def test_one_that_fails_in_its_window_does_not_come_back_before_its_end(climate: Climate, clock: Clock) -> None:
    planned = window(climate, clock, 1, hours=None).window
    rounds(climate)
    pool_moves.move(climate, ADMIN, pool_moves.RequestedMove(["1"], Pool.FAILED, "dropped", force=True))
    with pytest.raises(Busy, match="comes back as soon as"):
        failures.heal(climate, ADMIN, "1")
    pass_time(climate, clock, seconds=climate.settings.failed_after)
    assert place(climate, 1).pool is Pool.FAILED
    maintenance.end(climate, ADMIN, planned.id)
    pass_time(climate, clock, seconds=climate.settings.failed_after)
    assert place(climate, 1).pool is Pool.RESERVATION


def test_one_who_comes_back_ill_fails_in_its_time(climate: Climate, clock: Clock, cloud: FakeCloud) -> None:
    window(climate, clock, 1, hours=1)
    cloud.unwell["h1"] = "no power"
    pass_time(climate, clock, hours=1)
    assert place(climate, 1).pool is Pool.RESERVATION
    pass_time(climate, clock, seconds=60)
    assert place(climate, 1).pool is Pool.FAILED


def test_the_window_waits_for_a_lease_that_is_being_ended(climate: Climate, clock: Clock, cloud: FakeCloud) -> None:
    lease = on(climate, clock, 1, start=0, hours=1)
    run_due(climate)
    cloud.boot("project", "h1")
    cloud.looks_until_gone = 3
    window(climate, clock, 1, start=1, hours=1)
    clock.forward(hours=1)
    (end,) = claim(climate)
    maintenance.run_round(climate)
    assert place(climate, 1).pool is Pool.LENT
    run(climate, end)
    while get(climate, lease).status is not LeaseStatus.TERMINATED:
        clock.forward(seconds=10)
        run_due(climate)
    assert not cloud.servers_on("h1")
    maintenance.run_round(climate)
    assert place(climate, 1).pool is Pool.MAINTENANCE


def test_a_window_is_moved_and_renamed(climate: Climate, clock: Clock) -> None:
    planned = window(climate, clock, 1, start=1, hours=1).window
    lease = on(climate, clock, 1, start=2, hours=1)
    longer = Changes(end=clock.time + timedelta(hours=2.5))
    with pytest.raises(Conflict, match=str(lease.id)):
        maintenance.change(climate, ADMIN, planned.id, longer)
    after = maintenance.change(climate, ADMIN, planned.id, Changes(start=clock.time, reason="sooner")).window
    assert (after.during.start, after.reason) == (clock.time, "sooner")
    rounds(climate)
    assert place(climate, 1).pool is Pool.MAINTENANCE
    with pytest.raises(InvalidInput, match="has begun"):
        maintenance.change(climate, ADMIN, planned.id, Changes(start=clock.time + timedelta(hours=1)))
    sooner = clock.time + timedelta(hours=1)
    maintenance.change(climate, ADMIN, planned.id, Changes(end=sooner))
    assert place(climate, 1).until == sooner
    forced = maintenance.change(climate, ADMIN, planned.id, Changes(open_end=True, force=True))
    assert forced.window.end is None
    assert held(get(climate, lease)) == set()
    assert get(climate, lease).degraded


def test_a_second_window_at_that_time_is_refused(climate: Climate, clock: Clock) -> None:
    first = window(climate, clock, 1, start=1, hours=1).window
    with pytest.raises(Conflict, match=str(first.id)):
        window(climate, clock, 1, start=1.5, force=True)
    second = window(climate, clock, 1, start=2, hours=1).window
    pass_time(climate, clock, hours=1)
    pass_time(climate, clock, hours=1)
    assert place(climate, 1).pool is Pool.MAINTENANCE
    assert place(climate, 1).until == second.end


def test_what_is_refused(climate: Climate, clock: Clock) -> None:
    now = clock.time
    good = WindowRequest("1", now, now + timedelta(hours=1), "x")
    with pytest.raises(Forbidden):
        maintenance.plan(climate, MEMBER, good)
    with pytest.raises(NotFound):
        maintenance.plan(climate, ADMIN, WindowRequest("99", None, None, "x"))
    for wrong in (
        WindowRequest("1", now - timedelta(minutes=2), None, "x"),
        WindowRequest("1", now, now, "x"),
        WindowRequest("1", now + timedelta(hours=1), now + timedelta(minutes=1), "x"),
        WindowRequest("1", NO_END, None, "x"),
        WindowRequest("1", now, NO_END + timedelta(days=300), "x"),
        WindowRequest("1", now, None, "   "),
        WindowRequest("1", now, None, "x" * 1001),
    ):
        with pytest.raises(InvalidInput):
            maintenance.plan(climate, ADMIN, wrong)
    assert maintenance.listed(climate, ADMIN, WindowFilter()) == []


def test_a_lease_in_the_middle_of_something_cannot_be_moved(climate: Climate, clock: Clock) -> None:
    make(climate, clock, hosts_wanted(1), start=0, hours=1)
    lease = make(climate, clock, hosts_wanted(7), start=0, hours=2)
    claim(climate)
    with pytest.raises(Busy, match=str(lease.id)):
        window(climate, clock, min(held(lease)), force=True)


def test_a_host_that_is_cleaned_can_be_worked_on(cleaned: Climate, clock: Clock) -> None:
    on(cleaned, clock, 1, start=0, hours=1)
    run_due(cleaned)
    clock.forward(hours=1)
    run_due(cleaned)
    assert place(cleaned, 1).pool is Pool.CLEANING
    window(cleaned, clock, 1, start=0.1, hours=1)
    clock.forward(minutes=6)
    maintenance.run_round(cleaned)
    assert place(cleaned, 1).pool is Pool.MAINTENANCE
    clock.forward(hours=1)
    maintenance.run_round(cleaned)
    assert place(cleaned, 1).pool is Pool.RECYCLING, "it has not been cleaned"


def test_a_window_and_a_booking_at_the_same_moment(climate: Climate, clock: Clock) -> None:
    """Whoever comes first has the host; the other one is told so."""
    for turn in range(8):
        assert len(_race(climate, clock.time + timedelta(hours=1 + 3 * turn))) == 1


def _race(climate: Climate, start: datetime) -> list[str]:
    """Who of the two got the host h1 from then on."""
    won: list[str] = []
    line = threading.Barrier(2)
    end = start + timedelta(hours=1)

    def book() -> None:
        wanted = [hosts_wanted(1, hypervisor_properties='["==", "$hypervisor_hostname", "h1"]')]
        line.wait()
        with suppress(NotEnoughHosts):
            leases.create(climate, MEMBER, LeaseOrder("l", start, end, None, wanted))
            won.append("booking")

    def work_on() -> None:
        line.wait()
        with suppress(Conflict):
            maintenance.plan(climate, ADMIN, WindowRequest("1", start, end, "x"))
            won.append("window")

    threads = [threading.Thread(target=act) for act in (book, work_on)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return won


def test_a_lease_that_is_deleted_at_that_moment_is_in_nobodys_way(climate: Climate, clock: Clock) -> None:
    lease = on(climate, clock, 1, start=1, hours=1)
    with ThreadPoolExecutor(1) as other, climate.engine.begin() as conn:
        known = store.get(conn, lease.id, lock=True)
        planned = other.submit(window, climate, clock, 1, start=1, force=True)
        while not planned.done() and not _somebody_waits(climate):
            pass
        store.record(conn, MEMBER, known, *event_transitions.delete(known, clock.time))
        conn.commit()
        assert planned.result().moved == ()


def _somebody_waits(climate: Climate) -> bool:
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    with climate.engine.connect() as conn:
        return bool(conn.scalar(text(waiting)))


def test_rounds_take_as_many_statements_for_one_window_as_for_many(climate: Climate, clock: Clock) -> None:
    begun, ended, idle = [], [], []
    for hosts in ([1], [2, 3, 4, 5, 6]):
        idle.append(cost(climate.engine, lambda: maintenance.run_round(climate)))
        for host in hosts:
            window(climate, clock, host, hours=1)
        begun.append(cost(climate.engine, lambda: maintenance.run_round(climate)))
        clock.forward(hours=1)
        with_windows = cost(climate.engine, lambda: maintenance.run_round(climate))
        ended.append(with_windows)
    assert begun[0] == begun[1]
    assert idle[0] == idle[1]
    assert failures.report(climate, ADMIN, "1").place.pool is Pool.RESERVATION
