"""The waiting list: leases without resources, which get them when some are released.

A lease in the list has an event `expire_wait` before all its other events. It is closed when the lease gets its
resources, and the lease is gone once it has run. If the wait ends after the start, the period moves: the lease begins
when it gets its resources, and keeps its length.

The list is served in its order, and what fits goes ahead. A lease that has waited for the patience of the deployment is
protected. If its period moves, it is promised the first period that begins in time: a few leases at once, those in
front. Otherwise what is free for it is kept from the leases behind it.
"""

from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol
from uuid import UUID

from climate.domain import facts
from climate.domain.errors import Conflict, InvalidInput
from climate.domain.events.event import Event
from climate.domain.lease import Lease
from climate.domain.period import Period
from climate.domain.status import UNDONE

LONGEST = timedelta(days=731)
"""Longest wait."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Request to wait. No `until` means up to the start of the lease."""

    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """A lease in the list."""

    lease_id: UUID
    project_id: str
    user_id: str
    asked: Period
    until: datetime
    since: datetime
    reservations: Sequence[tuple[str, dict[str, object]]]
    """Resource type and request of each reservation."""
    is_passed_over: bool = False
    """Set if it is not to be tried now: nothing that it could use was released, or it was refused a short time ago."""

    @property
    def moves(self) -> bool:
        """Return whether its period moves while it waits."""
        return self.until > self.asked.start

    @property
    def reach(self) -> datetime:
        """Return the latest end that its period may have."""
        return max(self.asked.end, self.until + (self.asked.end - self.asked.start))

    def may_start(self, start: datetime) -> bool:
        """Return whether it can begin then: at its start, or if its period moves up to the end of its wait."""
        return start < max(self.asked.start, self.until) + timedelta(seconds=1)  # searches round to seconds

    def period(self, now: datetime) -> Period:
        """Return the period for which it wants its resources now."""
        start = max(self.asked.start, now) if self.moves else self.asked.start
        return Period(start, start + (self.asked.end - self.asked.start))


def until(wait: Wait, start: datetime | None, now: datetime) -> datetime:
    """Return the end of the wait of a lease with that start, None for now; raise InvalidInput for a useless wait."""
    if wait.until is None and (start is None or start <= now):
        raise InvalidInput("wait.until is required for a lease that starts now: it says how long the lease may wait")
    end = wait.until or start or now
    if end <= now:
        raise InvalidInput(f"wait.until is {end:%Y-%m-%d %H:%M:%S} UTC: it must be later than the current date")
    if end > now + LONGEST:
        raise InvalidInput(f"wait.until may be {LONGEST.days} days ahead at most, not {end:%Y-%m-%d %H:%M:%S} UTC")
    return end


def running(lease: Lease, now: datetime) -> Event | None:
    """Return the event that will end the wait; None for a lease that does not wait, or whose wait is over."""
    over = lease.wait_over
    if over is None or not lease.waits or over.stage is not UNDONE or over.due_at <= now:
        return None
    return over


def granted(over: Event, reservations: tuple[facts.PlannedReservation, ...], now: datetime) -> facts.LeaseGranted:
    """Return the fact that gives a lease its resources."""
    return facts.LeaseGranted(over.id, now, reservations)


def refuse_while_waiting(lease: Lease) -> None:
    """Raise Conflict for a lease in the waiting list, of which only the name may change."""
    if lease.wait_until is not None:
        raise Conflict(
            f"The lease {lease.id} is in the waiting list until {lease.wait_until:%Y-%m-%d %H:%M:%S} UTC: "
            "delete it and create another one, or change it once it has its resources"
        )


class FreeResources(Protocol):
    """Resources, as the list sees them. `kept` are numbers of hosts that must not be used."""

    def fits(self, entry: Entry, period: Period, kept: Set[int]) -> bool:
        """Return whether the entry seems to fit; a cheap answer that may be outdated."""
        ...

    def grant(self, entry: Entry, period: Period, kept: Set[int]) -> bool:
        """Give the entry its resources for the period; return whether that succeeded."""
        ...

    def first(self, entry: Entry, now: datetime, kept: Set[int]) -> Period | None:
        """Return the first period that fits and begins before the wait of the entry ends."""
        ...

    def free(self, entry: Entry, period: Period) -> frozenset[int]:
        """Return the hosts that are free for the entry."""
        ...


@dataclass(frozen=True, slots=True)
class Rule:
    """Rule that protects a lease from those behind it."""

    patience: timedelta | None
    """Wait after which a lease is protected; None: never."""
    promises: int = 0
    """Number of leases that may be promised a later period now."""


def serve(entries: Iterable[Entry], world: FreeResources, now: datetime, rule: Rule) -> Iterator[UUID]:
    """Give resources to the entries that fit, in this order; yield the leases that got some."""
    patience, promises = rule.patience, rule.promises
    kept: list[tuple[Period, frozenset[int]]] = []
    for entry in entries:
        if now >= entry.until:
            continue
        period = entry.period(now)
        if not entry.is_passed_over and _served(entry, world, period, _kept_hosts(kept, period)):
            yield entry.lease_id
        elif patience is None or now - entry.since < patience:
            continue
        elif not entry.moves:
            kept.append((period, world.free(entry, period)))
        elif promises > 0 and not entry.is_passed_over and _promised(entry, world, now, kept):
            promises -= 1
            yield entry.lease_id


def _served(entry: Entry, world: FreeResources, period: Period, kept: Set[int]) -> bool:
    return world.fits(entry, period, kept) and world.grant(entry, period, kept)


def _promised(entry: Entry, world: FreeResources, now: datetime, kept: Sequence[tuple[Period, frozenset[int]]]) -> bool:
    whole = Period(entry.period(now).start, entry.until + (entry.asked.end - entry.asked.start))
    barred = _kept_hosts(kept, whole)
    later = world.first(entry, now, barred)
    return later is not None and world.grant(entry, later, barred)


def _kept_hosts(kept: Sequence[tuple[Period, frozenset[int]]], period: Period) -> Set[int]:
    """Return the hosts that are kept for others in that period."""
    return frozenset().union(*(hosts for during, hosts in kept if during.overlaps(period)))
