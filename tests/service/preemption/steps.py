"""Steps of the tests of preemptible leases."""

from datetime import datetime, timedelta
from typing import Any

from climate.context import Climate
from climate.domain.lease import Lease
from climate.domain.policy import Caller
from climate.service.host_operations import recycling
from climate.service.leases import leases
from climate.service.leases.leases import LeaseRequest
from climate.service.notifications import delivery
from climate.service.notifications.delivery import Listing
from climate.service.preemption import round as preemption
from tests.conftest import ADMIN, MEMBER, STRANGER, Clock
from tests.service.lease_actions import hosts_wanted, run_due

ALL = 8
"""Hosts of the fixture `climate`."""

NOTICE = timedelta(seconds=120)
LEAD = timedelta(seconds=120)


def spare(
    climate: Climate, clock: Clock, least: int = 1, most: int | None = None, *, start: float = 0, hours: float = 8
) -> Lease:
    """A preemptible lease of the member's, `start` hours from now."""
    begin = clock.time + timedelta(hours=start)
    wanted = hosts_wanted(least, most, preemptible=True)
    return leases.create(climate, MEMBER, LeaseRequest("spare", begin, begin + timedelta(hours=hours), None, [wanted]))


def ordinary(
    climate: Climate,
    clock: Clock,
    *wanted: dict[str, Any],
    start: float = 0,
    hours: float = 2,
    caller: Caller = STRANGER,
    **more: Any,
) -> Lease:
    """An ordinary lease of another project, `start` hours from now."""
    begin = clock.time + timedelta(hours=start)
    order = LeaseRequest("ordinary", begin, begin + timedelta(hours=hours), None, wanted or [hosts_wanted()], **more)
    return leases.create(climate, caller, order)


def told(climate: Climate, lease: Lease) -> list[str]:
    """Kinds of the notices about a lease, in their order, without those that all leases have."""
    notices = delivery.listed(climate, ADMIN, Listing(limit=1000))
    return [one.notice.kind for one in notices if one.notice.lease_id == lease.id and "preempt" in one.notice.kind]


def tick(climate: Climate, clock: Clock, until: datetime | None = None) -> None:
    """Rounds and workers at their work, now or in steps up to a time."""
    while True:
        preemption.run_round(climate)
        recycling.run_round(climate)
        run_due(climate)
        if until is None or clock.time >= until:
            return
        clock.time = min(until, clock.time + timedelta(seconds=30))


def ends(lease: Lease) -> list[datetime]:
    return sorted(hold.during.end for r in lease.reservations for hold in r.holds)
