"""An offer that is taken at once becomes a lease, whatever else binds: a property over random deployments."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from random import Random

import pytest

from climate.context import Climate
from climate.domain.availability.search import Mode
from climate.domain.lease import Lease
from climate.domain.status import LeaseStatus
from climate.service.availability import holds, search
from climate.service.availability.holds import Details
from climate.service.availability.offers import Offer
from climate.service.availability.question import SearchRequest
from climate.service.leases import leases
from climate.service.leases.leases import LeaseRequest
from tests.campaign import cases
from tests.conftest import MEMBER, Clock
from tests.service.availability.test_search import HOUR, slots, world
from tests.service.floating_ip_factory import addresses_wanted
from tests.service.lease_actions import hosts_wanted
from tests.service.storage_factory import storage_wanted
from tests.webhook_receiver import Exchange, Receiver, receiving

TURNS = 4
"""Offers that are taken one after the other in each deployment."""


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as found:
        yield found


def even_hours_only(exchange: Exchange) -> None:
    """Refuse leases that start in an odd hour, as an approval service may do."""
    start = datetime.fromisoformat(exchange.got.body["lease"]["start_date"])
    exchange.say(403 if start.hour % 2 else 204)


def bound(climate: Climate, receiver: Receiver, random: Random) -> Climate:
    """A deployment with cleaning, power-up times, hosts that are off, and an approval service: any of them or none."""
    more: dict[str, object] = {"max_grace_period": 3600, "cleaning_time": random.choice([0, 600])}
    if random.random() < 0.5:
        more |= {"idle_off_after": 600, "power_on_lead": 540}
        with climate.engine.begin() as conn:
            conn.exec_driver_sql("UPDATE hosts SET switched_on = false WHERE id > 4")
    if random.random() < 0.5:
        receiver.answer = even_hours_only
        more |= {"enforcement_url": f"{receiver.url}/v1/", "enforcement_seconds": 20.0}
    return replace(climate, settings=replace(climate.settings, **more))  # type: ignore[arg-type]


def asked(clock: Clock, random: Random) -> SearchRequest:
    least, grace = random.randint(1, 4), random.choice([0, 600])
    kinds = [
        hosts_wanted(least, random.randint(least, 8), grace_period=grace),
        slots(random.randint(1, 9), affinity=random.choice([None, False, True])),
        addresses_wanted(random.randint(1, 2)),
        storage_wanted(10),
    ]
    chosen = random.sample(kinds, random.choice([1, 1, 2, 3]))
    length = timedelta(minutes=30 * random.randint(1, 8))
    return SearchRequest(chosen, length, clock.time, clock.time + 30 * HOUR, mode=random.choice(list(Mode)), offers=3)


@pytest.mark.parametrize("seed", cases(range(400), range(6), range(6, 30)))
def test_an_offer_that_is_taken_at_once_becomes_a_lease(
    climate: Climate, clock: Clock, receiver: Receiver, seed: int
) -> None:
    random = Random(seed)
    world(climate, clock, random)
    climate = bound(climate, receiver, random)
    for _ in range(TURNS):
        wanted = asked(clock, random)
        offers = search.find(search.prepare(climate, MEMBER, wanted)).offers
        if not offers:
            continue
        offer = random.choice(offers)
        if random.random() < 0.5:
            hold = holds.create(climate, MEMBER, offer.id)
            lease = holds.take(climate, MEMBER, hold.id, Details("taken"))
        else:
            lease = leases.create(climate, MEMBER, directly(offer, wanted))
        assert (lease.status, lease.period.start, lease.period.end) == (LeaseStatus.PENDING, offer.start, offer.end)
        assert counts(lease) == [one.count for one in offer.reservations if one.resource_type == "physical:host"]


def directly(offer: Offer, wanted: SearchRequest) -> LeaseRequest:
    """The order of a client that creates the lease without a hold."""
    reservations = [
        {**one, "max": got.count} if "max" in one else one
        for one, got in zip(wanted.reservations, offer.reservations, strict=True)
    ]
    return LeaseRequest("taken", offer.start, offer.end, reservations=reservations)


def counts(lease: Lease) -> list[int]:
    return [len(one.hosts) for one in lease.reservations if one.resource_type == "physical:host"]
