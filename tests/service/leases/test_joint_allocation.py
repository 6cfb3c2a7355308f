"""All reservations of a lease together, on a real database: what fits is granted, whatever the order it is asked in."""

import re
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any, cast

import pytest
from sqlalchemy import Engine, text

from climate.context import Climate
from climate.domain.errors import ClimateError, NotEnoughAddresses, NotEnoughHosts, NotEnoughStorage
from climate.domain.hosts.matching import Demand
from climate.domain.hosts.min_cost_flow import Whole
from climate.domain.hosts.packing import Slots
from climate.domain.lease import Lease, Reservation
from climate.domain.period import Period
from climate.plugin import ResourcePlugin
from climate.service.hosts import inventory
from climate.service.journal import consistency_check
from climate.service.leases import leases, update
from climate.service.leases.leases import LeaseRequest
from climate.service.leases.update import Changes
from climate.store.leases.leases import Listing
from tests.campaign import cases
from tests.conftest import ADMIN, MEMBER, Clock
from tests.domain.hosts.brute_force import fits
from tests.lock_waits import await_blocked
from tests.scenarios.test_races import at_once
from tests.service.capacity_factory import PARTS, all_leases, overruns, servers, sizes
from tests.service.floating_ip_factory import addresses_wanted, allocated, promised_twice, registered
from tests.service.lease_actions import hosts_wanted, make
from tests.service.storage_factory import amounts, pool, storage_wanted

ROUNDS = 14
HOSTS = (1, 2, 5, 6)
"""Two hosts of 4 VCPUs and two of 8."""

SHORTAGES = (NotEnoughHosts, NotEnoughAddresses, NotEnoughStorage)


def only(*hosts: int) -> str:
    return '["or", ' + ", ".join(f'["==", "$id", "{host}"]' for host in hosts) + "]"


def named(spec: Mapping[str, Any]) -> list[int]:
    return [int(number) for number in re.findall(r'"(\d+)"', spec["resource_properties"])]


@pytest.fixture
def small(climate: Climate) -> Climate:
    for host in set(range(1, 9)) - set(HOSTS):
        inventory.remove(climate, ADMIN, str(host))
    return climate


def reservation(random: Random) -> dict[str, Any]:
    hosts = only(*sorted(random.sample(HOSTS, random.choice([1, 2, 2, 3, 4]))))
    if random.random() < 0.6:
        least = random.choice([1, 1, 2])
        return hosts_wanted(least, least + random.randint(0, 1), resource_properties=hosts)
    affinity = random.choice([None, None, True, False])
    return servers(random.randint(1, 4), random.choice([1, 2, 3, 4]), affinity, resource_properties=hosts)


class Calendar:
    """What is free in a period, worked out from the leases."""

    def __init__(self, climate: Climate, period: Period, without: Lease | None = None) -> None:
        self.sizes, self.period = sizes(climate), period
        found = [lease for lease in all_leases(climate) if without is None or lease.id != without.id]
        self.held = [
            (hold, r.spec)
            for lease in found
            for r in lease.reservations
            for hold in r.holds
            if hold.during.overlaps(period)
        ]

    def demand(self, spec: Mapping[str, Any], exactly: int | None = None) -> Demand:
        if "max" in spec:
            free = [host for host in named(spec) if all(hold.host != host for hold, _ in self.held)]
            return Whole(free, exactly or spec["min"], exactly or spec["max"])
        shared = [host for host in named(spec) if all(hold.slots for hold, _ in self.held if hold.host == host)]
        return Slots(shared, spec["amount"], {part: spec[part] for part in PARTS}, spec["affinity"])

    def rooms(self) -> dict[int, dict[str, int]]:
        """The least of each resource that is free at any moment of the period."""
        moments = [self.period.start, *(h.during.start for h, _ in self.held if h.during.start > self.period.start)]
        return {
            host: {
                part: min(whole[place] - self.taken(host, part, moment) for moment in moments)
                for place, part in enumerate(PARTS)
            }
            for host, whole in self.sizes.items()
        }

    def taken(self, host: int, part: str, moment: datetime) -> int:
        return sum(
            hold.slots * spec[part]
            for hold, spec in self.held
            if hold.host == host and hold.slots and hold.during.start <= moment < hold.during.end
        )


def granted(act: Callable[[], object]) -> tuple[bool, str]:
    try:
        act()
    except SHORTAGES as refusal:
        return False, str(refusal)
    return True, ""


def create(climate: Climate, random: Random, now: datetime) -> bool:
    """Ask for a lease of several reservations; return whether it was granted, which has to be what brute force says."""
    start = now + timedelta(hours=random.randint(1, 3))
    period = Period(start, start + timedelta(hours=random.randint(1, 3)))
    specs = [reservation(random) for _ in range(random.choice([1, 2, 2, 3]))]
    order = LeaseRequest("l", period.start, period.end, None, specs)
    calendar = Calendar(climate, period)
    expected = fits([calendar.demand(spec) for spec in specs], calendar.rooms())
    done, why = granted(lambda: leases.create(climate, MEMBER, order, dry_run=random.random() < 0.2))
    assert done == expected, (specs, why)
    if not done:
        check_later(climate, order, why)
        check_numbers(calendar, specs, why)
    return done


def check_later(climate: Climate, order: LeaseRequest, why: str) -> None:
    """From the start that the refusal names the lease fits."""
    found = re.search(r"it would fit from (.*) UTC", why)
    if found and " together: " in why:
        start = datetime.fromisoformat(found[1]).replace(tzinfo=UTC)
        assert order.start
        end = start + (order.end - order.start)
        assert leases.create(climate, MEMBER, LeaseRequest("l", start, end, None, order.reservations), dry_run=True)


def check_numbers(calendar: Calendar, specs: Sequence[Mapping[str, Any]], why: str) -> None:
    """The reservations that a refusal names are too much together, and fit without any of them."""
    if " together: " not in why:
        return
    places = [int(number) - 1 for number in re.findall(r"reservation (\d+): ", why)]
    rooms, demands = calendar.rooms(), [calendar.demand(specs[place]) for place in places]
    assert not fits(demands, rooms)
    for place in range(len(demands)):
        assert fits([*demands[:place], *demands[place + 1 :]], rooms), why
    for place in places:
        if "max" in specs[place]:
            free = len(calendar.demand(specs[place]).candidates)
            assert f"reservation {place + 1}: {specs[place]['min']} wanted, {free} free for it" in why


def alter(climate: Climate, random: Random) -> bool | None:
    """Change some reservations of a lease; what is not to change may get other hosts, but as many."""
    found = [lease for lease in all_leases(climate) if len(lease.reservations) > 1]
    if not found:
        return None
    lease = random.choice(found)
    changes = {
        r.id: {name: value for name, value in changed(r, random).items() if name != "resource_type"}
        for r in lease.reservations
        if random.random() < 0.5
    }
    calendar = Calendar(climate, lease.period, lease)
    demands = [
        calendar.demand({**r.spec, **changes.get(r.id, {})}, None if differs(r, changes) else len(r.holds) or None)
        for r in lease.reservations
    ]
    wanted = Changes(reservations=[{"id": str(key), **spec} for key, spec in changes.items()])
    done, why = granted(lambda: update.update(climate, MEMBER, lease.id, wanted))
    assert done == fits(demands, calendar.rooms()), (lease, changes, why)
    return done


def changed(present: Reservation, random: Random) -> dict[str, Any]:
    """Other bounds for a reservation of the same form."""
    while True:
        spec = reservation(random)
        if ("max" in spec) == ("max" in present.spec):
            return spec


def differs(present: Reservation, changes: Mapping[Any, Mapping[str, Any]]) -> bool:
    return any(present.spec.get(name) != value for name, value in changes.get(present.id, {}).items())


@pytest.mark.parametrize("seed", cases(range(24), range(2), (2, 3)))
def test_leases_of_several_reservations_are_granted_exactly_if_they_fit(
    small: Climate, clock: Clock, seed: int
) -> None:
    random, outcomes = Random(seed), set[bool | None]()
    for _ in range(ROUNDS):
        for lease in random.sample(known := all_leases(small), len(known) // 3):
            leases.delete(small, MEMBER, lease.id)
        outcomes |= {create(small, random, clock.time) for _ in range(3)}
        outcomes |= {alter(small, random)}
        assert overruns(small) == []
    assert {True, False} <= outcomes
    assert consistency_check.differences(small) == []


def test_any_order_of_the_reservations_is_the_same(climate: Climate, clock: Clock) -> None:
    """The first ones prefer what the last can only have; six orders would not find it."""
    chain = [hosts_wanted(1, resource_properties=only(place, place + 1)) for place in range(1, 8)]
    last = hosts_wanted(1, resource_properties=only(1))
    lease = make(climate, clock, *chain, last)
    assert [r.hosts for r in lease.reservations] == [(place + 1,) for place in range(1, 8)] + [(1,)]


def test_the_reservations_that_cannot_be_had_together_are_named(climate: Climate, clock: Clock) -> None:
    make(climate, clock, hosts_wanted(1, resource_properties=only(1)), hours=3)
    with pytest.raises(NotEnoughHosts) as refused:
        make(
            climate,
            clock,
            hosts_wanted(2, resource_properties=only(1, 2, 3)),
            hosts_wanted(1),
            hosts_wanted(1, resource_properties=only(2, 3)),
        )
    assert str(refused.value) == (
        "Not enough hosts available for reservations 1 and 3 together: reservation 1: 2 wanted, 2 free for it; "
        "reservation 3: 1 wanted, 2 free for it; together 2 free, 1 too few for reservation 3; "
        "it would fit from 2030-01-01 16:00:00 UTC"
    )


def test_whole_hosts_and_slots_are_matched_together(climate: Climate, clock: Clock) -> None:
    """Servers go to the fullest host first, which leaves no room there for the one that can be nowhere else."""
    make(climate, clock, servers(1, resource_properties=only(6)))
    anywhere, there = servers(2, 4, resource_properties=only(5, 6, 7)), servers(1, 6, resource_properties=only(6))
    lease = make(climate, clock, anywhere, hosts_wanted(2, resource_properties=only(5, 7, 8)), there)
    servers_on, whole, last = ({hold.host: hold.slots for hold in r.holds} for r in lease.reservations)
    assert last == {6: 1}
    assert servers_on in ({5: 2}, {7: 2})
    assert set(whole) == {5, 7, 8} - set(servers_on)
    assert overruns(climate) == []


def test_required_addresses_are_left_to_the_reservation_that_requires_them(climate: Climate, clock: Clock) -> None:
    known = [one.address for one in registered(climate, 3)]
    lease = make(climate, clock, addresses_wanted(2), addresses_wanted(1, known[0]))
    assert allocated(lease)[2] == known[0]
    assert promised_twice(climate) == []
    with pytest.raises(NotEnoughAddresses, match="floating IPs available for reservations 1 and 2 together"):
        make(climate, clock, addresses_wanted(2), addresses_wanted(2), start=10)


def test_volumes_are_matched_to_pools_together(climate: Climate, clock: Clock) -> None:
    """The small volume fits where the large one has to go: the tightest pool that suffices is full of it then."""
    large, small = pool(climate, 60, "large"), pool(climate, 50, "small")
    lease = make(climate, clock, storage_wanted(45), storage_wanted(50), storage_wanted(15, on_end="keep"))
    assert amounts(lease) == {large.number: 60, small.number: 50}


def test_an_update_moves_what_did_not_change_if_that_is_needed(climate: Climate, clock: Clock) -> None:
    for host in (3, 4, 5, 6, 7, 8):
        inventory.remove(climate, ADMIN, str(host))
    lease = make(climate, clock, hosts_wanted(1), hosts_wanted(1))
    first, second = lease.reservations
    tight = {"id": str(second.id), "resource_properties": only(*first.hosts)}
    changed = update.update(climate, MEMBER, lease.id, Changes(reservations=[tight]))
    assert [r.hosts for r in changed.reservations] == [second.hosts, first.hosts]
    assert consistency_check.differences(climate) == []


def test_a_host_is_removed_while_the_choice_for_all_waits_for_its_row(
    climate: Climate, clock: Clock, engine: Engine
) -> None:
    wanted = [hosts_wanted(1, resource_properties=only(1, 2)), hosts_wanted(1, resource_properties=only(2))]
    with engine.connect() as other, ThreadPoolExecutor(1) as threads:
        with other.begin():
            other.execute(text("UPDATE hosts SET removed_at = now() WHERE id = 1"))
            booking = threads.submit(make, climate, clock, *wanted)
            await_blocked(engine, booking.done)
        with pytest.raises(NotEnoughHosts, match="reservations 1 and 2 together"):
            booking.result()


class OnlyReserves:
    """A plugin of whole hosts without the hook that offers them."""

    resource_type = "physical:host"

    def __init__(self, plugin: ResourcePlugin) -> None:
        self.spec_schema, self.check, self.reserve = plugin.spec_schema, plugin.check, plugin.reserve
        self.pool_metadata = plugin.pool_metadata


def test_a_plugin_without_offers_chooses_before_the_others(climate: Climate, clock: Clock) -> None:
    older = cast(ResourcePlugin, OnlyReserves(climate.plugins["physical:host"]))
    there = replace(climate, plugins={**climate.plugins, "physical:host": older})
    room = servers(1, resource_properties=only(1, 2))
    lease = make(there, clock, room, hosts_wanted(1, resource_properties=only(1)))
    assert [r.hosts for r in lease.reservations] == [(2,), (1,)]
    with pytest.raises(NotEnoughHosts):
        make(there, clock, room, hosts_wanted(1, resource_properties=only(1)))


WRITERS = 16


def test_many_clients_with_mixed_leases_meet_neither_overlap_nor_false_refusal(climate: Climate, clock: Clock) -> None:
    registered(climate, 6)
    pool(climate, 100)

    def mixed(seed: int) -> Callable[[], list[Lease | ClimateError]]:
        random = Random(seed)

        def churn() -> list[Lease | ClimateError]:
            results: list[Lease | ClimateError] = []
            for _ in range(4):
                wanted = [
                    random.choice(
                        [
                            hosts_wanted(1, 2, resource_properties=only(*random.sample(range(1, 9), 4))),
                            servers(2, 2, resource_properties=only(*random.sample(range(1, 9), 3))),
                            addresses_wanted(1),
                            storage_wanted(20),
                        ]
                    )
                    for _ in range(random.randint(2, 3))
                ]
                try:
                    lease = make(climate, clock, *wanted)
                    results.append(lease)
                    if random.random() < 0.5:
                        leases.delete(climate, MEMBER, lease.id)
                except ClimateError as error:
                    results.append(error)
            return results

        return churn

    results = [one for done in at_once(*[mixed(seed) for seed in range(WRITERS)]) for one in done]
    assert {type(one) for one in results} <= {Lease, *SHORTAGES}, results
    assert overruns(climate) == []
    assert promised_twice(climate) == []
    assert consistency_check.differences(climate) == []
    calendar = Calendar(climate, (now := leases.listed(climate, ADMIN, Listing())[0]).period)
    free = [host for host in range(1, 9) if all(hold.host != host for hold, _ in calendar.held)]
    if len(free) > 1:
        pair = hosts_wanted(len(free) - 1), hosts_wanted(1, resource_properties=only(free[0]))
        start = (now.period.start - clock.time).total_seconds() / 3600
        assert make(climate, clock, *pair, start=start), "what is free at the end is granted"
