"""Series of leases: their facts, and the state that follows from these.

Each series has its own stream, by its id. An occurrence is a lease with a stream of its own, whose `series_id` names
the series. The series records the rule from which its occurrences were created, and the changes of all of them.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from climate.domain.lease import Lease
from climate.domain.period import Period
from climate.domain.status import DONE, EventKind


class Make(StrEnum):
    """Condition under which the occurrences of a new series are created."""

    ALL = "all"  # all of them, or none
    FITTING = "fitting"  # those that fit


@dataclass(frozen=True, slots=True)
class Skipped:
    """Occurrence that did not fit, and the reason."""

    period: Period
    reason: str
    timed: bool = False
    """Set if its name has the time beside the date."""


@dataclass(frozen=True, slots=True)
class SeriesCreated:
    """Creation of a series. `period` is that of the request; `rule` and `zone` determine the occurrences."""

    series_id: UUID
    at: datetime
    name: str
    project_id: str
    user_id: str
    rule: str
    zone: str
    period: Period
    make: str
    skipped: tuple[Skipped, ...] = ()


@dataclass(frozen=True, slots=True)
class SeriesChanged:
    """Change of occurrences that had not begun: all of them, or those from the lease `since` on.

    `move_by` is a difference of local times, and `extend_by` one of lengths, both in seconds. `name` is None if it
    stays.
    """

    at: datetime
    name: str | None = None
    move_by: int = 0
    extend_by: int = 0
    since: UUID | None = None


@dataclass(frozen=True, slots=True)
class SeriesReduced:
    """Deletion of the occurrences that had not begun, from the lease `since` on."""

    at: datetime
    since: UUID


@dataclass(frozen=True, slots=True)
class SeriesDeleted:
    """Deletion of a series with all occurrences that had not begun."""

    at: datetime


SeriesFact = SeriesCreated | SeriesChanged | SeriesReduced | SeriesDeleted


@dataclass(frozen=True, slots=True)
class Series:
    """State of a series, folded from its facts."""

    id: UUID
    name: str
    project_id: str
    user_id: str
    rule: str
    zone: str
    period: Period
    make: str
    created_at: datetime
    skipped: tuple[Skipped, ...] = ()
    updated_at: datetime | None = None
    gone: bool = False
    version: int = 1
    """Number of its facts."""


def fold(facts: Iterable[SeriesFact], series: Series | None = None) -> Series:
    """Return the series after its facts; raise ValueError unless they begin with SeriesCreated."""
    for fact in facts:
        series = _after(series, fact)
    if series is None:
        raise ValueError("nothing has happened to this series")
    return series


def _after(series: Series | None, fact: SeriesFact) -> Series:
    if isinstance(fact, SeriesCreated):
        return Series(
            id=fact.series_id,
            name=fact.name,
            project_id=fact.project_id,
            user_id=fact.user_id,
            rule=fact.rule,
            zone=fact.zone,
            period=fact.period,
            make=fact.make,
            created_at=fact.at,
            skipped=fact.skipped,
        )
    if series is None:
        raise ValueError(f"{type(fact).__name__} before SeriesCreated")
    after = replace(series, updated_at=fact.at, version=series.version + 1)
    match fact:
        case SeriesChanged(_, str() as name, since=None):
            return replace(after, name=name)
        case SeriesDeleted():
            return replace(after, gone=True)
    return after


def is_unbegun(lease: Lease) -> bool:
    """Return whether nothing of an occurrence has begun, so that changes of its series apply to it."""
    started = lease.touched or lease.event(EventKind.START).stage is DONE
    return not (lease.gone or lease.deleting or lease.held or started)
