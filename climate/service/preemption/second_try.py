"""Second try of a request that lacks hosts: with the hosts of preemptible leases.

The first try counts these hosts as taken. So a request for which enough is free takes nothing from anybody, and costs
no statement more.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import TypeVar

from sqlalchemy import Connection

from climate.context import Climate
from climate.database.connections import reading
from climate.domain.errors import Conflict, NotEnoughHosts
from climate.domain.facts import Hold
from climate.domain.period import Period
from climate.domain.planning.preemption import is_preemptible
from climate.plugin.schema_fields import LONGEST_GRACE
from climate.service.leases.joint_allocation import Unmatchable
from climate.settings import Settings
from climate.store.allocation import preemptible
from climate.store.allocation.hosts import Short

T = TypeVar("T")

SHORT = (NotEnoughHosts, Unmatchable, Conflict)
"""Refusals that may be for hosts of preemptible leases. Conflict: a host of a running lease is promised to another."""


BEFORE_ALL = datetime(2000, 1, 1, tzinfo=UTC)


def reach(settings: Settings, start: datetime | None, end: datetime) -> Period:
    """Return the longest time for which a lease may need its hosts; without a start, from any time on."""
    margin = timedelta(seconds=LONGEST_GRACE + settings.cleaning_time)
    return Period(BEFORE_ALL if start is None or start >= end else start, end + margin)


class FewerHosts(NotEnoughHosts):
    """Fewer hosts are free than the lease may have, and preemptible leases hold others"""


def refuse_fewer(
    conn: Connection, during: Period, planned: Iterable[tuple[Mapping[str, object], Sequence[Hold]]]
) -> None:
    """Raise FewerHosts if a reservation, given by its spec and holds, may have more hosts than it was given.

    An ordinary lease has no fewer hosts because of preemptible ones.
    """
    short = any(len(holds) < int(str(spec["max"])) for spec, holds in planned if "max" in spec)
    if short and preemptible.are_there(conn, during):
        raise FewerHosts


class HostsLacking(Exception):
    """Some leases of a transaction lack hosts, and preemptible leases hold some in that time."""


class Turn(StrEnum):
    """Try of a request."""

    ONLY = "only"  # takes nothing from preemptible leases, and no other try follows
    FIRST = "first"
    SECOND = "second"  # may take hosts of preemptible leases


def if_short(climate: Climate, during: Period, attempt: Callable[[Turn], T]) -> T:
    """Return the result of the first try, or if that lacks hosts of the second one."""
    try:
        return attempt(Turn.FIRST)
    except SHORT as refusal:
        if not may_help(refusal):
            raise
        with reading(climate.engine) as conn:
            if not preemptible.are_there(conn, during):
                raise
    return attempt(Turn.SECOND)


def may_help(refusal: Exception) -> bool:
    """Return whether hosts of preemptible leases may change this refusal."""
    return isinstance(refusal, SHORT) and not (isinstance(refusal, Short) and refusal.is_final)


def refuse_lacking(conn: Connection, turn: Turn, during: Period) -> None:
    """Raise HostsLacking in a first try for several leases, if preemptible leases hold hosts in that time."""
    if turn is Turn.FIRST and preemptible.are_there(conn, during):
        raise HostsLacking


def if_lacking(attempt: Callable[[Turn], T]) -> T:
    """Return the result of the first try, or if that raises HostsLacking of the second one."""
    try:
        return attempt(Turn.FIRST)
    except HostsLacking:
        return attempt(Turn.SECOND)


def gives_way(specs: Iterable[Mapping[str, object]]) -> bool:
    """Return whether a lease with these reservations is preemptible itself."""
    return any(is_preemptible(spec) for spec in specs)
