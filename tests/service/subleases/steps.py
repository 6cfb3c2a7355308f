"""Steps of the tests of sub-leases."""

from datetime import datetime, timedelta
from typing import Any

from climate.context import Climate
from climate.domain.hosts.pools import Pool
from climate.domain.lease import Lease
from climate.domain.policy import Caller
from climate.service.host_operations import recycling
from climate.service.leases import healing, leases
from climate.service.leases.leases import LeaseRequest
from climate.service.notifications import delivery
from climate.service.notifications.delivery import Listing
from climate.service.subleases import create
from climate.service.subleases import round as subleases
from climate.service.subleases.create import SubleaseOrder
from climate.store.hosts import pool_membership
from tests.conftest import ADMIN, MEMBER, STRANGER, Clock
from tests.service.lease_actions import hosts_wanted, run_due

ALL = 8
"""Hosts of the fixture `climate`."""

LEAD = timedelta(seconds=120)
NOTICE = timedelta(seconds=120)


def parent(climate: Climate, clock: Clock, *wanted: dict[str, Any], start: float = 0, hours: float = 24) -> Lease:
    """A lease of the member's, `start` hours from now; of four hosts, unless others are wanted."""
    begin = clock.time + timedelta(hours=start)
    order = LeaseRequest("long", begin, begin + timedelta(hours=hours), None, wanted or [hosts_wanted(4)])
    return leases.create(climate, MEMBER, order)


def ordered(clock: Clock, *, start: float = 0, hours: float = 2, **more: Any) -> SubleaseOrder:
    """Two hosts for the stranger's project, `start` hours from now."""
    begin = clock.time + timedelta(hours=start)
    wanted = {"hosts": 2, "project_id": STRANGER.project_id, **more}
    return SubleaseOrder("class", end=begin + timedelta(hours=hours), start=begin if start else None, **wanted)


def give(climate: Climate, clock: Clock, lease: Lease, caller: Caller = MEMBER, **more: Any) -> Lease:
    """A sub-lease of a lease."""
    return create.create(climate, caller, lease.id, ordered(clock, **more))


def tick(climate: Climate, clock: Clock, until: datetime | None = None) -> None:
    """Rounds and workers at their work: now, and in steps of the last minutes up to a time."""
    _work(climate)
    if until is not None:
        clock.time = max(clock.time, until - timedelta(minutes=5))
        while clock.time < until:
            _work(climate)
            clock.time = min(until, clock.time + timedelta(minutes=1))
        _work(climate)


def _work(climate: Climate) -> None:
    for _ in range(2):
        subleases.run_round(climate)
        recycling.run_round(climate)
        healing.heal_all(climate)
        run_due(climate)


def pool_of(climate: Climate, host: int) -> Pool:
    with climate.engine.connect() as conn:
        return pool_membership.of(conn, [host])[host].pool


def told(climate: Climate, lease: Lease) -> list[str]:
    """Kinds of the notices about hosts of a lease in sub-leases, in their order."""
    notices = delivery.listed(climate, ADMIN, Listing(limit=1000))
    return [one.notice.kind for one in notices if one.notice.lease_id == lease.id and "sublet" in one.notice.kind]
