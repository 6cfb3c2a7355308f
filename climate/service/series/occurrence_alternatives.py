"""Occurrences of a series: their names, and alternatives for those that do not fit."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from zoneinfo import ZoneInfo

from climate.context import Climate
from climate.domain.availability.search import Mode
from climate.domain.errors import ClimateError
from climate.domain.lease import Lease
from climate.domain.period import Period
from climate.domain.policy import Caller
from climate.service.availability import reasons, search
from climate.service.availability.question import SearchRequest
from climate.service.availability.reasons import Reason
from climate.service.availability.search import Inquiry
from climate.service.leases.leases import LeaseRequest

MOST_SUGGESTED = 12
"""Maximum number of occurrences for which alternatives are searched."""


@dataclass(frozen=True, slots=True)
class Occurrence:
    """An occurrence: its lease, or the reason why it has none."""

    name: str
    period: Period
    lease: Lease | None = None
    reason: str | None = None
    suggestion: Reason | None = None
    """The limit that binds, and requests that would fit instead."""


def name_of(name: str, start: datetime, zone: ZoneInfo, *, timed: bool = False) -> str:
    """Return the name of an occurrence: that of its series and its local date, with the time if that is needed."""
    return f"{name}-{start.astimezone(zone):{'%Y-%m-%d-%H%M' if timed else '%Y-%m-%d'}}"


def suggested(
    climate: Climate, caller: Caller, order: LeaseRequest, occurrences: Sequence[Occurrence]
) -> Sequence[Occurrence]:
    """Return the occurrences, the first of those that do not fit with alternatives."""
    clashes = [place for place, one in enumerate(occurrences) if one.lease is None][:MOST_SUGGESTED]
    result = list(occurrences)
    inquiry: Inquiry | None = None
    for place in clashes:
        wanted = _search(order, occurrences[place].period)
        try:
            inquiry = search.prepare(climate, caller, wanted) if inquiry is None else inquiry.changed(wanted)
            reason = reasons.explain(inquiry, search.find(inquiry))
        except ClimateError:  # the plugin of a reservation has no search, or its answer takes too long
            break
        result[place] = replace(occurrences[place], suggestion=reason)
    return result


def _search(order: LeaseRequest, period: Period) -> SearchRequest:
    """Return the search for exactly the time of an occurrence."""
    return SearchRequest(
        order.reservations, period.end - period.start, period.start, period.end, mode=Mode.AT, offers=1
    )
