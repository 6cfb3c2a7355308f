"""Leases that wait: without resources until some are free, in their order, and gone when their time is over."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from climate.cloud.fake import FakeCloud
from climate.context import Climate
from climate.domain.errors import Conflict, InvalidInput, LimitExceeded, NotEnoughHosts, NotFound
from climate.domain.lease import Lease
from climate.domain.limits import Limit
from climate.domain.policy import Caller
from climate.domain.status import LeaseStatus
from climate.domain.waiting import Wait
from climate.service.admission import limits
from climate.service.journal import check
from climate.service.journal.rebuild import rebuild
from climate.service.leases import leases, update
from climate.service.leases.leases import Order
from climate.service.leases.update import Changes
from climate.service.notifications import delivery
from climate.service.waiting_list import entries, places
from climate.service.waiting_list import round as waiting_round
from climate.store.idempotency import Key
from climate.store.leases.leases import Listing
from tests.conftest import ADMIN, MEMBER, Clock
from tests.service.lease_actions import START, get, held, hosts_wanted, kinds, make, reservation, rows, run_due

ALL = 8
"""Hosts of the fixture."""


def queue(
    climate: Climate,
    clock: Clock,
    *wanted: dict[str, Any],
    start: float | None = 1,
    hours: float = 2,
    until: float | None = None,
    caller: Caller = MEMBER,
    **more: Any,
) -> Lease:
    """A lease that may wait, `start` hours from now, None for one from now on; `until` hours from now."""
    begin = None if start is None else clock.time + timedelta(hours=start)
    end = (begin or clock.time) + timedelta(hours=hours)
    order = Order("w", begin, end, None, wanted or [hosts_wanted()])
    wait = Wait(None if until is None else clock.time + timedelta(hours=until))
    return entries.create(climate, caller, order, wait, **more)


def story_is_whole(climate: Climate) -> None:
    """The rows are what the facts say, and they can be made anew from the facts alone."""
    assert check.differences(climate) == []
    before = leases.listed(climate, ADMIN, Listing())
    rebuild(climate)
    assert check.differences(climate) == []
    assert leases.listed(climate, ADMIN, Listing()) == before


def notices(climate: Climate, *kinds: str) -> list[str]:
    return [one.notice.kind for one in delivery.listed(climate, ADMIN, delivery.Listing()) if one.notice.kind in kinds]


def test_what_fits_is_an_ordinary_lease(climate: Climate, clock: Clock) -> None:
    lease = queue(climate, clock)
    assert (lease.waits, len(held(lease)), lease.wait_over) == (False, 1, None)


def test_a_lease_waits_without_resources_and_gets_them_when_another_is_deleted(climate: Climate, clock: Clock) -> None:
    first = make(climate, clock, hosts_wanted(ALL))
    lease = queue(climate, clock, hosts_wanted(2))
    assert (lease.status, lease.waits, lease.wait_until, held(lease)) == (
        LeaseStatus.PENDING,
        True,
        lease.period.start,
        set(),
    )
    assert waiting_round.run_round(climate) == []
    assert places.estimated(climate, lease) == places.Place(1, first.period.end)
    story_is_whole(climate)
    leases.delete(climate, MEMBER, first.id)
    assert waiting_round.run_round(climate) == [lease.id]
    got = get(climate, lease)
    assert (got.waits, len(held(got)), got.period, got.reservations[0].id) == (
        False,
        2,
        lease.period,
        lease.reservations[0].id,
    )
    assert kinds(climate, lease) == ["LeaseCreated", "LeaseGranted"]
    assert notices(climate, "lease.granted") == ["lease.granted"]
    story_is_whole(climate)
    clock.forward(hours=1)
    run_due(climate)
    assert get(climate, lease).status is LeaseStatus.ACTIVE
    story_is_whole(climate)


def test_nothing_of_a_lease_starts_while_it_waits(climate: Climate, clock: Clock, cloud: FakeCloud) -> None:
    make(climate, clock, hosts_wanted(ALL), start=0, hours=10)
    lease = queue(climate, clock, start=1, until=5)
    clock.forward(hours=1)
    run_due(climate)
    waiting_round.run_round(climate)
    assert get(climate, lease).event(START).token == 0
    assert reservation(lease) not in cloud.pools()
    assert get(climate, lease).waits


def test_a_wait_ends_with_the_start_and_a_notice(climate: Climate, clock: Clock) -> None:
    make(climate, clock, hosts_wanted(ALL))
    lease = queue(climate, clock)
    clock.forward(hours=1)
    run_due(climate)
    with pytest.raises(NotFound):
        get(climate, lease)
    assert kinds(climate, lease) == [
        *("LeaseCreated", "EventClaimed", "WaitExpired", *["EventSkipped"] * 2, "LeaseDeleted")
    ]
    assert notices(climate, "lease.not_granted", "lease.missed") == ["lease.not_granted"]
    story_is_whole(climate)
