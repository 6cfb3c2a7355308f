"""Offers of the search: each is what a create at once gets, and nothing that fits is missed."""

from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pytest
from sqlalchemy import event

from climate.context import Climate
from climate.domain.availability.daily_windows import Window, zone
from climate.domain.availability.search import Mode
from climate.domain.errors import ClimateError, Forbidden, InvalidInput
from climate.domain.limits import Limit
from climate.domain.period import Period
from climate.service.admission import limits
from climate.service.availability import search
from climate.service.availability.question import SearchRequest
from climate.service.availability.search import SearchResult
from climate.service.host_operations import maintenance
from climate.service.host_operations.maintenance import WindowRequest as MaintenanceOrder
from climate.service.leases import leases
from climate.service.leases.leases import LeaseRequest
from tests.campaign import cases
from tests.conftest import ADMIN, MEMBER, STRANGER, Clock
from tests.service.floating_ip_factory import addresses_wanted, registered
from tests.service.lease_actions import hosts_wanted, make
from tests.service.storage_factory import pool, storage_wanted

HOUR = timedelta(hours=1)


def wanted(
    clock: Clock, *reservations: dict[str, Any], hours: float = 2, within: float = 48, **more: Any
) -> SearchRequest:
    earliest = more.pop("earliest", clock.time)
    until = earliest + timedelta(hours=within)
    return SearchRequest(reservations or (hosts_wanted(),), timedelta(hours=hours), earliest, until, **more)


def find(climate: Climate, asked: SearchRequest) -> SearchResult:
    return search.find(search.prepare(climate, MEMBER, asked))


def starts(found: SearchResult) -> list[datetime]:
    return [offer.start for offer in found.offers]


def slots(amount: int, **more: Any) -> dict[str, Any]:
    size = {"vcpus": 2, "memory_mb": 1024, "disk_gb": 10}
    return {"resource_type": "virtual:instance", "amount": amount, "affinity": None, **size, **more}


def test_the_first_offer_is_where_enough_hosts_are_free(climate: Climate, clock: Clock) -> None:
    make(climate, clock, hosts_wanted(6), start=0, hours=5)
    make(climate, clock, hosts_wanted(8), start=6, hours=1)
    found = find(climate, wanted(clock, hosts_wanted(3, 5)))
    assert starts(found) == [clock.time + 7 * HOUR]
    [offer] = found.offers
    assert (offer.end - offer.start, offer.reservations[0].count, offer.reservations[0].free) == (2 * HOUR, 5, 8)


def test_most_prefers_the_time_with_more_hosts(climate: Climate, clock: Clock) -> None:
    make(climate, clock, hosts_wanted(6), start=0, hours=5)
    found = find(climate, wanted(clock, hosts_wanted(1, 8), mode=Mode.MOST))
    assert [(offer.start, offer.reservations[0].count) for offer in found.offers] == [
        (clock.time + 5 * HOUR, 8),
        (clock.time, 2),
    ]


def test_longest_goes_up_to_the_next_lease(climate: Climate, clock: Clock) -> None:
    make(climate, clock, hosts_wanted(6), start=10, hours=5)
    found = find(climate, wanted(clock, hosts_wanted(3), mode=Mode.LONGEST))
    assert [(offer.start, offer.end) for offer in found.offers] == [
        (clock.time + 15 * HOUR, clock.time + 48 * HOUR),
        (clock.time, clock.time + 10 * HOUR),
    ]


def test_cheapest_prefers_the_time_at_which_the_project_uses_least(climate: Climate, clock: Clock) -> None:
    limits.put(climate, ADMIN, "project", {Limit.HOSTS_AT_ONCE: 8})
    make(climate, clock, hosts_wanted(4), start=0, hours=5)
    found = find(climate, wanted(clock, hosts_wanted(2, 4), mode=Mode.CHEAPEST))
    first = found.offers[0]
    assert (first.start, first.cost, first.reservations[0].count) == (clock.time + 5 * HOUR, 0.25, 2)


def test_at_answers_for_one_time_only(climate: Climate, clock: Clock) -> None:
    make(climate, clock, hosts_wanted(8), start=0, hours=5)
    busy = replace(wanted(clock, mode=Mode.AT), latest=clock.time + 2 * HOUR)
    assert find(climate, busy).offers == ()
    later = clock.time + 5 * HOUR
    assert starts(find(climate, wanted(clock, mode=Mode.AT, earliest=later, within=2))) == [later]


def test_cleaning_grace_and_maintenance_are_kept_free(cleaned: Climate, clock: Clock) -> None:
    make(cleaned, clock, hosts_wanted(8), start=0, hours=1)
    for place in range(1, 9):
        day = Period(clock.time + 4 * HOUR, clock.time + 5 * HOUR)
        maintenance.plan(cleaned, ADMIN, MaintenanceOrder(str(place), day.start, day.end, "disks"))
    graceful = hosts_wanted(8, grace_period=600)
    cleaned = replace(cleaned, settings=replace(cleaned.settings, max_grace_period=3600))
    assert starts(find(cleaned, wanted(clock, graceful, hours=2.5)))[0] == clock.time + HOUR + timedelta(minutes=10)
    assert starts(find(cleaned, wanted(clock, graceful, hours=2.51))) == [clock.time + 5 * HOUR]


def test_limits_of_the_project_are_kept_over_time(climate: Climate, clock: Clock) -> None:
    limits.put(climate, ADMIN, "project", {Limit.HOSTS_AT_ONCE: 5})
    make(climate, clock, hosts_wanted(3), start=0, hours=5)
    found = find(climate, wanted(clock, hosts_wanted(3, 8)))
    assert [offer.reservations[0].count for offer in found.offers] == [5]
    assert found.offers[0].start == clock.time + 5 * HOUR
    assert find(climate, wanted(clock, hosts_wanted(1, 8))).offers[0].reservations[0].count == 2


def test_hosts_of_other_projects_are_not_counted(climate: Climate, clock: Clock) -> None:
    with climate.engine.begin() as conn:
        conn.exec_driver_sql("""UPDATE hosts SET extra = extra || '{"authorized_projects": "others"}' WHERE id > 3""")
    found = find(climate, wanted(clock, hosts_wanted(1, 8), points=10))
    assert found.offers[0].reservations[0].free == 3
    assert [count for _, count in found.free[0] or ()] == [3]


def test_the_free_count_names_no_lease(climate: Climate, clock: Clock) -> None:
    order = LeaseRequest("secret", clock.time + HOUR, clock.time + 2 * HOUR, reservations=[hosts_wanted(6)])
    leases.create(climate, STRANGER, order)
    found = find(climate, wanted(clock, points=10))
    begin = int(clock.time.timestamp())
    assert found.free == (((begin, 8), (begin + 3600, 2), (begin + 7200, 8)),)


def test_reservations_that_compete_are_matched(climate: Climate, clock: Clock) -> None:
    gpu = '["==", "$gpu_count", "2"]'
    both = [hosts_wanted(4), hosts_wanted(4, resource_properties=gpu)]
    make(climate, clock, hosts_wanted(1), start=0, hours=3)
    found = find(climate, wanted(clock, *both))
    assert starts(found) == [clock.time + 3 * HOUR]


def test_windows_hold_the_whole_lease(climate: Climate, clock: Clock) -> None:
    office = Window(frozenset(range(5)), datetime(2000, 1, 1, 8).time(), datetime(2000, 1, 1, 18).time(), zone("UTC"))
    found = find(climate, wanted(clock, hours=7, windows=(office,)))
    assert starts(found) == [datetime(2030, 1, 2, 8, tzinfo=UTC)]


def test_a_step_makes_round_starts(climate: Climate, clock: Clock) -> None:
    make(climate, clock, hosts_wanted(8), start=0, hours=1.1)
    found = find(climate, wanted(clock, step=timedelta(minutes=30)))
    assert starts(found) == [clock.time + timedelta(minutes=90)]


@pytest.mark.parametrize("after", [-601, -1, 0, 1, 601])
@pytest.mark.parametrize("step", [1, 600])
@pytest.mark.parametrize("days", [2, 18])
def test_portions_of_the_time_miss_no_start_and_add_none(
    climate: Climate, clock: Clock, days: int, after: int, step: int
) -> None:
    """The first portion has the starts of two days, the second those of sixteen more."""
    end = clock.time + timedelta(days=days, seconds=after)
    make(climate, clock, hosts_wanted(8), start=0, hours=(end - clock.time) / HOUR)
    make(climate, clock, hosts_wanted(8), start=24 * 20, hours=10)
    found = find(climate, wanted(clock, hosts_wanted(2), within=24 * 60, step=timedelta(seconds=step)))
    rounded = datetime.fromtimestamp(-(-end.timestamp() // step) * step, UTC)
    assert starts(found) == [rounded, clock.time + timedelta(days=20, hours=10)]


def test_a_search_in_vain_tries_each_start_once(climate: Climate, clock: Clock) -> None:
    make(climate, clock, hosts_wanted(8), start=24 * 30, hours=1)
    make(climate, clock, hosts_wanted(8), start=0, hours=24 * 30)
    inquiry = search.prepare(climate, MEMBER, wanted(clock, hosts_wanted(1), hours=24 * 61, within=24 * 90))
    assert not search.find(inquiry).offers
    read = sorted(inquiry.portions, key=lambda one: one.start)
    assert [portion.start for portion in read][1:] == [
        clock.time + timedelta(days=days, seconds=-1) for days in (2, 18)
    ]
    assert read[-1].end == inquiry.wanted.latest


@pytest.mark.parametrize("count", [1, 300])
def test_the_number_of_statements_does_not_depend_on_the_leases(climate: Climate, clock: Clock, count: int) -> None:
    for place in range(count):
        make(climate, clock, hosts_wanted(1), start=place % 50, hours=0.5)
    seen: list[str] = []
    event.listen(climate.engine, "before_cursor_execute", lambda *given: seen.append(given[2]))
    inquiry = search.prepare(climate, MEMBER, wanted(clock, hosts_wanted(1), within=60, points=10, offers=1))
    assert search.find(inquiry).offers
    assert len([one for one in seen if "string_agg" in one]) == 2, "the first days, and all for the free count"
    assert len(seen) <= 20, "\n".join(seen)


def world(climate: Climate, clock: Clock, random: Random) -> None:
    """Random leases of all types, limits and maintenance."""
    pool(climate, 30)
    registered(climate, 3)
    for _ in range(random.randint(0, 8)):
        kind = random.choice([hosts_wanted(random.randint(1, 5)), slots(random.randint(1, 9)), storage_wanted(10)])
        start, hours = random.randint(0, 30) / 2, random.randint(1, 12) / 2
        try:
            make(climate, clock, kind, start=start, hours=hours)
        except ClimateError:
            continue
    if random.random() < 0.5:
        limits.put(climate, ADMIN, "project", {Limit.HOSTS_AT_ONCE: random.randint(4, 8)})
    if random.random() < 0.5:
        begin = clock.time + random.randint(0, 20) * HOUR / 2
        with suppress(ClimateError):
            maintenance.plan(climate, ADMIN, MaintenanceOrder(str(random.randint(1, 8)), begin, begin + HOUR, "fans"))


def question(clock: Clock, random: Random) -> SearchRequest:
    gpu = {"resource_properties": '["==", "$gpu_count", "2"]'} if random.random() < 0.4 else {}
    least = random.randint(1, 5)
    kinds = [
        hosts_wanted(least, random.randint(least, 8), **gpu),
        slots(random.randint(1, 12), affinity=random.choice([None, None, False, True])),
        addresses_wanted(random.randint(1, 3)),
        storage_wanted(random.choice([10, 20, 30])),
    ]
    chosen = random.sample(kinds, random.choice([1, 1, 2, 3]))
    return wanted(
        clock, *chosen, hours=random.randint(1, 8) / 2, within=30, offers=20, mode=random.choice(list(Mode)[:2])
    )


@pytest.mark.parametrize("seed", cases(range(400), range(8), range(8, 28)))
def test_offers_are_what_a_create_at_once_gets_and_none_is_missed(climate: Climate, clock: Clock, seed: int) -> None:
    random = Random(seed)
    world(climate, clock, random)
    asked = question(clock, random)
    found = find(climate, asked)
    fits = {}
    for half in range(61):
        start = clock.time + half * HOUR / 2
        if start + asked.length > asked.latest:
            break
        order = LeaseRequest("l", start, start + asked.length, reservations=asked.reservations)
        least = [{**one, "max": one["min"]} if "min" in one else one for one in asked.reservations]
        try:
            leases.create(climate, MEMBER, replace(order, reservations=least), dry_run=True)
        except ClimateError:
            fits[start] = False
        else:
            fits[start] = True
    possible = [start for start, fit in fits.items() if fit]
    assert bool(found.offers) == bool(possible)
    if asked.mode is Mode.FIRST and possible:
        assert found.offers[0].start - min(possible) <= timedelta(seconds=1)
    for offer in found.offers:
        exact = [
            {**one, "max": got.count} if "max" in one else one
            for one, got in zip(asked.reservations, offer.reservations, strict=True)
        ]
        lease = leases.create(
            climate, MEMBER, LeaseRequest("l", offer.start, offer.end, reservations=exact), dry_run=True
        )
        for got, reservation in zip(offer.reservations, lease.reservations, strict=True):
            if reservation.resource_type == "physical:host":
                assert len(reservation.hosts) == got.count


def test_who_may_create_no_lease_may_not_search(climate: Climate, clock: Clock) -> None:
    with pytest.raises(Forbidden):
        search.prepare(climate, replace(MEMBER, roles=frozenset({"reader"})), wanted(clock))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"reservations": ()}, "reservations must not be empty"),
        ({"length": timedelta(days=800)}, "latest|duration may be"),
        ({"latest": datetime(2199, 1, 1, tzinfo=UTC)}, "731 days"),
        ({"length": timedelta(hours=49)}, "latest must be later"),
        ({"earliest": datetime(2029, 12, 31, tzinfo=UTC)}, "earliest must be later than the current"),
        ({"reservations": (hosts_wanted(zone="north"),)}, "zone cannot be searched for"),
        ({"reservations": ({"resource_type": "no:such"},)}, "not supported"),
    ],
)
def test_bad_questions_are_refused(climate: Climate, clock: Clock, changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(InvalidInput, match=reason):
        search.prepare(climate, MEMBER, replace(wanted(clock), **changes))
