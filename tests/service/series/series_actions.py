"""Series that tests create again and again."""

from datetime import timedelta
from typing import Any

from climate.context import Climate
from climate.domain.lease import Lease
from climate.domain.planning.series import Make
from climate.domain.policy import Caller
from climate.service.leases.leases import LeaseRequest
from climate.service.series import create
from climate.service.series.create import Outcome, SeriesOrder
from climate.store.idempotency import Key
from tests.conftest import MEMBER, Clock
from tests.service.lease_actions import hosts_wanted


def wanted(clock: Clock, *reservations: dict[str, Any], count: int = 3, make: Make = Make.ALL) -> SeriesOrder:
    """A daily series of two hours, from an hour from now on."""
    begin = clock.time + timedelta(hours=1)
    order = LeaseRequest("s", begin, begin + timedelta(hours=2), None, reservations or [hosts_wanted()])
    return SeriesOrder(order, f"FREQ=DAILY;COUNT={count}", "UTC", make)


def repeat(
    climate: Climate,
    clock: Clock,
    *reservations: dict[str, Any],
    caller: Caller = MEMBER,
    key: Key | None = None,
    **more: Any,
) -> Outcome:
    return create.create(climate, caller, wanted(clock, *reservations, **more), key)


def leases_of(outcome: Outcome) -> list[Lease]:
    return [one.lease for one in outcome.occurrences if one.lease]
