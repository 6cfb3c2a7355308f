"""All that reservations could have: nothing that is taken, and everything else, best first."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from climate.context import Climate
from climate.domain.facts import FOREVER
from climate.domain.hosts.min_cost_flow import Whole
from climate.domain.hosts.packing import Slots
from climate.domain.hosts.requirements import AllOf
from climate.domain.hosts.shared_capacity import Size, SlotRequest
from climate.domain.period import Period
from climate.store.allocation import candidates, floating_ips
from climate.store.allocation.candidates import AFTER, DURING, Candidates
from climate.store.allocation.floating_ips import AddressRequest
from climate.store.allocation.hosts import HostRequest
from climate.store.allocation.inventories import AmountRequest
from climate.store.allocation.shared_capacity import CapacityRequest
from tests.conftest import Clock
from tests.service.capacity_factory import servers
from tests.service.floating_ip_factory import NETWORK, addresses_wanted, registered
from tests.service.lease_actions import hosts_wanted, make
from tests.service.leases.test_flavor_demand import describe
from tests.service.storage_factory import pool, storage_wanted

ANYTHING = AllOf(())
SIZE = Size(2, 128, 1)


def asked(climate: Climate, of: Callable[..., Candidates], *wanted: object) -> Candidates:
    with climate.engine.begin() as conn:
        return of(conn, *wanted)


def window(clock: Clock, start: float = 1, hours: float = 2) -> Period:
    begin = clock.time + timedelta(hours=start)
    return Period(begin, begin + timedelta(hours=hours))


def test_all_free_hosts_with_preferred_ones_first(climate: Climate, clock: Clock) -> None:
    taken = make(climate, clock, hosts_wanted(3, resource_properties='["in", "$id", ["4", "5", "6"]]'))
    wanted = HostRequest(ANYTHING, window(clock), 1, 2, keep=(8, 7))
    found = asked(climate, candidates.of_hosts, wanted).demand
    assert isinstance(found, Whole)
    assert set(found.candidates) == {1, 2, 3, 7, 8}
    assert set(found.candidates[:2]) == {7, 8}
    assert {host: found.drawbacks[host] for host in found.candidates} == {7: 0, 8: 0, 1: 1, 2: 1, 3: 1}
    own = HostRequest(ANYTHING, window(clock), 1, 2, own=frozenset([taken.reservations[0].id]))
    assert set(asked(climate, candidates.of_hosts, own).demand.candidates) == {*range(1, 9)}


def test_what_is_free_of_shared_hosts_with_resource_classes(climate: Climate, clock: Clock) -> None:
    describe(climate, 3, resources__CUSTOM_GPU="3")
    lease = make(climate, clock, servers(1, 3, resource_properties='["==", "$id", "3"]'), hosts_wanted(1))
    wanted = CapacityRequest(ANYTHING, window(clock), SlotRequest(SIZE, 2), classes={"CUSTOM_GPU": 1})
    found = asked(climate, candidates.of_capacity, wanted)
    (whole,) = lease.reservations[1].hosts
    assert isinstance(found.demand, Slots)
    assert whole not in found.demand.candidates
    assert 3 not in found.demand.candidates, "one VCPU is left, and two are wanted"
    again = CapacityRequest(
        ANYTHING,
        window(clock),
        SlotRequest(SIZE, 2),
        own=frozenset(r.id for r in lease.reservations),
        together=frozenset(r.id for r in lease.reservations),
        classes={"CUSTOM_GPU": 1},
    )
    rooms = asked(climate, candidates.of_capacity, again).rooms
    assert set(rooms) == {*range(1, 9)}
    assert (rooms[3]["vcpus"], rooms[3]["CUSTOM_GPU"], rooms[4]["CUSTOM_GPU"]) == (4, 3, 0)


def test_required_addresses_must_be_among_the_free_ones(climate: Climate, clock: Clock) -> None:
    known = registered(climate, 3)
    make(climate, clock, addresses_wanted(1, known[0].address))
    free = AddressRequest(NETWORK, 1, window(clock), required=(known[2].address,))
    found = asked(climate, candidates.of_addresses, free)
    assert isinstance(found.demand, Whole)
    assert set(found.names.values()) == {known[1].address, known[2].address}
    assert {found.names[number] for number in found.demand.must} == {known[2].address}
    with pytest.raises(floating_ips.Short):
        asked(climate, candidates.of_addresses, AddressRequest(NETWORK, 1, window(clock), required=(known[0].address,)))


def test_storage_that_is_kept_needs_room_after_the_lease_too(climate: Climate, clock: Clock) -> None:
    fast = pool(climate, 100)
    make(climate, clock, storage_wanted(30), start=1, hours=2)
    make(climate, clock, storage_wanted(50), start=8, hours=2)
    until = window(clock)
    kept = AmountRequest("storage:pool", "ssd", 10, 2, Period(until.start, FOREVER))
    assert asked(climate, candidates.of_amounts, kept, until).rooms == {fast.number: {DURING: 70, AFTER: 50}}
    found = asked(climate, candidates.of_amounts, AmountRequest("storage:pool", "ssd", 10, 2, until), until)
    assert found.rooms == {fast.number: {DURING: 70}}
    assert isinstance(found.demand, Slots)
    assert found.demand.size == {DURING: 10}
