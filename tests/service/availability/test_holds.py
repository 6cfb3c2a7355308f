"""Holds of offers: kept for all clients at once, renewed once, and made leases of."""

from datetime import timedelta
from threading import Lock

from climate.context import Climate
from climate.domain.availability.search import Mode
from climate.domain.errors import ClimateError, Conflict
from climate.domain.lease import Lease
from climate.domain.status import LeaseStatus
from climate.service.availability import holds, search
from climate.service.availability.holds import Details
from climate.service.availability.question import SearchRequest
from climate.service.journal import consistency_check
from climate.service.journal.rebuild import rebuild
from climate.service.leases import leases
from climate.store.leases.leases import Listing
from tests.conftest import ADMIN, MEMBER, Clock
from tests.scenarios.test_races import at_once, nothing_is_promised_twice
from tests.service.floating_ip_factory import addresses_wanted, registered
from tests.service.lease_actions import hosts_wanted, kinds
from tests.service.storage_factory import pool, storage_wanted

CLIENTS = 16


def offered(
    climate: Climate, clock: Clock, *reservations: object, offers: int = 1, mode: Mode = Mode.FIRST
) -> list[str]:
    wanted = SearchRequest(
        reservations or (hosts_wanted(2),),  # type: ignore[arg-type]
        timedelta(hours=2),
        clock.time,
        clock.time + timedelta(hours=40),
        mode=mode,
        offers=offers,
    )
    found = search.find(search.prepare(climate, MEMBER, wanted))
    return [offer.id for offer in found.offers]


def test_offers_of_all_types_become_leases(climate: Climate, clock: Clock) -> None:
    pool(climate, 30)
    registered(climate, 3)
    slots = {"resource_type": "virtual:instance", "amount": 6, "vcpus": 2, "memory_mb": 1024, "disk_gb": 10}
    everything = (hosts_wanted(3, 5), {**slots, "affinity": None}, addresses_wanted(2), storage_wanted(20))
    [offer] = offered(climate, clock, *everything)
    hold = holds.create(climate, MEMBER, offer)
    lease = holds.take(climate, MEMBER, hold.id, Details("all"))
    assert (lease.status, lease.name) == (LeaseStatus.PENDING, "all")
    assert [one.resource_type for one in lease.reservations] == [
        *("physical:host", "virtual:instance", "virtual:floatingip", "storage:pool")
    ]
    assert len(lease.reservations[0].hosts) == 5
    assert kinds(climate, lease) == ["LeaseCreated", "LeaseRenamed", "HoldConfirmed"]


def test_a_renewed_hold_is_what_its_facts_say(climate: Climate, clock: Clock) -> None:
    [offer] = offered(climate, clock)
    hold = holds.create(climate, MEMBER, offer)
    clock.forward(minutes=5)
    renewed = holds.renew(climate, MEMBER, hold.id)
    assert renewed.hold_until == clock.time + timedelta(minutes=10)
    assert consistency_check.differences(climate) == []
    before = leases.listed(climate, ADMIN, Listing())
    rebuild(climate)
    assert leases.listed(climate, ADMIN, Listing()) == before == [renewed]


def test_sixteen_clients_hold_and_take_without_overlap(climate: Climate, clock: Clock) -> None:
    lock, made = Lock(), list[Lease]()

    def client() -> None:
        for _ in range(3):
            for offer in offered(climate, clock, hosts_wanted(2, 3), offers=2):
                try:
                    hold = holds.create(climate, MEMBER, offer)
                except Conflict:
                    continue
                lease = holds.take(climate, MEMBER, hold.id, Details("mine"))
                with lock:
                    made.append(lease)

    answers = at_once(*(client for _ in range(CLIENTS)))
    assert [one for one in answers if one is not None] == []
    assert made
    assert nothing_is_promised_twice(climate)
    assert consistency_check.differences(climate) == []


def test_one_of_many_takers_gets_the_lease(climate: Climate, clock: Clock) -> None:
    [offer] = offered(climate, clock)
    hold = holds.create(climate, MEMBER, offer)
    answers = at_once(*(lambda: holds.take(climate, MEMBER, hold.id, Details("mine")) for _ in range(8)))
    assert sorted(isinstance(one, ClimateError) for one in answers) == [False] + [True] * 7
