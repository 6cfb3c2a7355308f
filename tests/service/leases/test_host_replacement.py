"""An admin moves one host of a lease to another by hand."""

from datetime import timedelta

import pytest

from climate.cloud import FREEPOOL, RECYCLING
from climate.cloud.fake import FakeCloud
from climate.context import Climate
from climate.domain.errors import Busy, Conflict, Forbidden, InvalidInput, NotFound
from climate.domain.hosts.pools import Pool
from climate.service.host_operations import failures
from climate.service.hosts import inventory
from climate.service.journal import consistency_check
from climate.service.leases import host_replacement, leases
from climate.service.leases.host_replacement import ReplacementRequest
from tests.conftest import ADMIN, MEMBER, Clock
from tests.service.capacity_factory import servers, slots
from tests.service.host_rounds import place, pool_of
from tests.service.lease_actions import begin, get, held, hosts_wanted, make, reservation, rows, run_due

FAST = '[">=", "$vcpus", "8"]'


def test_a_pending_lease(climate: Climate, clock: Clock) -> None:
    lease = make(climate, clock, hosts_wanted(1, hypervisor_properties=FAST), start=1)
    (old,) = held(lease)
    to = next(host for host in (5, 6) if host != old)
    order = ReplacementRequest(str(old), lease_id=lease.id, to=str(to))
    assert host_replacement.reallocate(climate, ADMIN, order, dry_run=True).to == to
    assert get(climate, lease) == lease
    done = host_replacement.reallocate(climate, ADMIN, order)
    assert (done.host, done.to, done.reservation_id) == (old, to, lease.reservations[0].id)
    after = get(climate, lease)
    assert (held(after), after.degraded) == ({to}, False)
    assert after.reservations[0].holds[0].during == lease.reservations[0].holds[0].during
    assert consistency_check.differences(climate) == []


def test_a_running_lease_and_its_servers(climate: Climate, clock: Clock, cloud: FakeCloud) -> None:
    lease = make(climate, clock, hosts_wanted(2), start=0)
    run_due(climate)
    old = min(held(lease))
    server = cloud.boot("project", f"h{old}")
    to = min({1, 2, 3, 4, 5, 6, 7, 8} - held(lease))
    host_replacement.reallocate(
        climate, ADMIN, ReplacementRequest(str(old), reservation_id=lease.reservations[0].id, to=str(to))
    )
    assert pool_of(climate, old) == {RECYCLING}
    run_due(climate)
    after = get(climate, lease)
    assert held(after) == held(lease) - {old} | {to}
    assert pool_of(climate, to) == {reservation(lease)}
    assert (after.reservations[0].missing, after.reservations[0].resources_changed) == (0, True)
    assert place(climate, old).until == lease.period.end
    assert cloud.server(server) is not None
    assert consistency_check.differences(climate) == []


def test_to_any_other(climate: Climate, clock: Clock) -> None:
    lease = make(climate, clock, hosts_wanted(1, hypervisor_properties=FAST), start=1)
    (old,) = held(lease)
    for host in {5, 6, 7, 8} - {old, 8 if old != 8 else 7}:
        failures.fail(climate, ADMIN, str(host), "x")
    done = host_replacement.reallocate(climate, ADMIN, ReplacementRequest(str(old), lease_id=lease.id))
    assert done.to == (8 if old != 8 else 7)


def test_room_on_a_host_that_the_lease_has_already_will_do(climate: Climate, clock: Clock) -> None:
    for host in range(1, 7):
        failures.fail(climate, ADMIN, str(host), "x")
    other = make(climate, clock, servers(7), start=1)
    lease = make(climate, clock, servers(5), start=1)
    old, to = sorted(slots(lease))
    leases.delete(climate, MEMBER, other.id)
    assert host_replacement.reallocate(climate, ADMIN, ReplacementRequest(str(old), lease_id=lease.id)).to == to
    assert slots(get(climate, lease)) == {to: 5}


def test_one_that_does_not_match_needs_force(climate: Climate, clock: Clock) -> None:
    lease = make(climate, clock, hosts_wanted(1, hypervisor_properties=FAST), start=1)
    (old,) = held(lease)
    order = ReplacementRequest(str(old), lease_id=lease.id, to="1")
    before = rows(climate.engine)
    with pytest.raises(Conflict, match="does not match"):
        host_replacement.reallocate(climate, ADMIN, order)
    assert rows(climate.engine) == before
    forced = ReplacementRequest(str(old), lease_id=lease.id, to="1", force=True)
    assert host_replacement.reallocate(climate, ADMIN, forced).to == 1
    assert held(get(climate, lease)) == {1}
    run_due(climate)
    clock.forward(hours=1)
    run_due(climate)
    assert pool_of(climate, 1) == {reservation(lease)}


def test_one_that_is_not_free_is_refused_even_with_force(climate: Climate, clock: Clock) -> None:
    other = make(climate, clock, hosts_wanted(1, hypervisor_properties=FAST), start=2)
    lease = make(climate, clock, hosts_wanted(4), start=1)
    old, to = min(held(lease) - held(other)), min(held(other) - held(lease), default=0)
    if not to:
        return
    for force in (False, True):
        with pytest.raises(Conflict):
            host_replacement.reallocate(
                climate, ADMIN, ReplacementRequest(str(old), lease_id=lease.id, to=str(to), force=force)
            )
    assert get(climate, lease) == lease


def test_a_host_that_cannot_be_handed_over_now(climate: Climate, clock: Clock) -> None:
    lease = make(climate, clock, hosts_wanted(1), start=0)
    later = make(climate, clock, hosts_wanted(1), start=9)
    run_due(climate)
    (old,) = held(lease)
    to = 1 if old != 1 else 2
    failures.fail(climate, ADMIN, str(to), "x")
    with pytest.raises(Conflict, match="pool failed"):
        host_replacement.reallocate(
            climate, ADMIN, ReplacementRequest(str(old), lease_id=lease.id, to=str(to), force=True)
        )
    (held_later,) = held(later)
    if held_later != to:
        with pytest.raises(Conflict, match="pool failed"):
            host_replacement.reallocate(
                climate, ADMIN, ReplacementRequest(str(held_later), lease_id=later.id, to=str(to))
            )


def test_what_is_refused(climate: Climate, clock: Clock) -> None:
    lease = make(climate, clock, hosts_wanted(7), start=1)
    (free,) = {1, 2, 3, 4, 5, 6, 7, 8} - held(lease)
    old = str(min(held(lease)))
    with pytest.raises(Forbidden):
        host_replacement.reallocate(climate, MEMBER, ReplacementRequest(old, lease_id=lease.id))
    with pytest.raises(InvalidInput):
        host_replacement.reallocate(climate, ADMIN, ReplacementRequest(old))
    with pytest.raises(InvalidInput):
        host_replacement.reallocate(climate, ADMIN, ReplacementRequest(old, lease.id, lease.reservations[0].id))
    with pytest.raises(NotFound):
        host_replacement.reallocate(climate, ADMIN, ReplacementRequest(old, lease_id=lease.reservations[0].id))
    with pytest.raises(NotFound):
        host_replacement.reallocate(climate, ADMIN, ReplacementRequest(old, reservation_id=lease.id))
    with pytest.raises(NotFound):
        host_replacement.reallocate(climate, ADMIN, ReplacementRequest(old, lease_id=lease.id, to="99"))
    with pytest.raises(Conflict, match="not held"):
        host_replacement.reallocate(climate, ADMIN, ReplacementRequest(str(free), lease_id=lease.id))
    for same in held(lease):
        with pytest.raises(Conflict, match="already"):
            host_replacement.reallocate(climate, ADMIN, ReplacementRequest(old, lease_id=lease.id, to=str(same)))
    clock.forward(hours=1)
    begin(climate)
    with pytest.raises(Busy):
        host_replacement.reallocate(climate, ADMIN, ReplacementRequest(old, lease_id=lease.id, to=str(free)))
    assert pool_of(climate, free) == {FREEPOOL}
    assert inventory.get(climate, ADMIN, str(free)).name == f"h{free}"
    assert lease.period.end - lease.period.start == timedelta(hours=2)
    assert place(climate, free).pool is Pool.RESERVATION
