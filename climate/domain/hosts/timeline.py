"""Rows of a calendar of hosts: the allocations of each host as spans, and what a viewer may know of them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from uuid import UUID


class SpanKind(StrEnum):
    """Use of a host in a span."""

    LEASE = "lease"
    GRACE = "grace"  # after a lease, while its servers continue
    CLEANING = "cleaning"
    MAINTENANCE = "maintenance"
    BUSY = "busy"  # of another project, with nothing else about it


@dataclass(frozen=True, slots=True)
class Allocated:
    """One allocation of a host as stored, with the lease or the maintenance window that it belongs to."""

    id: int
    host: int
    kind: str
    state: str
    start: datetime
    end: datetime
    slots: int = 0
    vcpus: int = 0
    memory_mb: int = 0
    reservation_id: UUID | None = None
    lease_id: UUID | None = None
    lease_name: str | None = None
    project_id: str | None = None
    status: str | None = None
    """Status of the lease."""
    ends_at: datetime | None = None
    """Agreed end of the lease; the host is kept until `end`."""
    grace_seconds: int = 0
    """Longest grace period of the lease."""
    window_id: UUID | None = None
    reason: str | None = None
    """Reason of the maintenance."""
    is_shared: bool = False
    """Set if the lease is shared with the viewer."""


@dataclass(frozen=True, slots=True)
class Span:
    """A span in the row of a host. Fields of a lease or a window are None where the viewer may not know them."""

    kind: SpanKind
    start: datetime
    end: datetime
    id: str = ""
    """Identifies the span among those of the calendar while it exists; empty for a span of another project."""
    slots: int = 0
    """Slots on a shared host; 0: the whole host."""
    vcpus: int = 0
    memory_mb: int = 0
    reservation_id: UUID | None = None
    lease_id: UUID | None = None
    lease_name: str | None = None
    project_id: str | None = None
    status: str | None = None
    window_id: UUID | None = None
    reason: str | None = None


def spans(allocated: Sequence[Allocated], viewer: str | None) -> list[Span]:
    """Return the spans of allocations; `viewer` is a project, or None for an administrator, who sees everything."""
    return [span for one in allocated for span in _spans(one, viewer)]


def _spans(one: Allocated, viewer: str | None) -> Iterator[Span]:
    if one.lease_id is None:
        yield _upkeep(one, knows_why=viewer is None)
        return
    if viewer is not None and one.project_id != viewer and not one.is_shared:
        # One span for all of it: the length of the grace period is a choice of the other project.
        yield Span(SpanKind.BUSY, one.start, one.end, slots=min(one.slots, 1))
        return
    agreed = max(one.start, min(one.ends_at or one.end, one.end))
    graced = min(agreed + timedelta(seconds=one.grace_seconds), one.end)
    if agreed > one.start:
        yield _of_lease(one, SpanKind.LEASE, one.start, agreed)
    if graced > agreed:
        yield _of_lease(one, SpanKind.GRACE, agreed, graced)
    if one.end > graced:
        yield _of_lease(one, SpanKind.CLEANING, graced, one.end)


def _upkeep(one: Allocated, *, knows_why: bool) -> Span:
    """Return the span of an allocation of climate itself; only administrators learn the reason of maintenance."""
    kind = SpanKind(one.kind) if one.kind in (SpanKind.MAINTENANCE, SpanKind.CLEANING) else SpanKind.BUSY
    window, reason = (one.window_id, one.reason) if knows_why else (None, None)
    return Span(kind, one.start, one.end, str(one.id) if knows_why else "", window_id=window, reason=reason)


def _of_lease(one: Allocated, kind: SpanKind, start: datetime, end: datetime) -> Span:
    return Span(
        kind,
        start,
        end,
        id=str(one.id) if kind is SpanKind.LEASE else f"{one.id}-{kind}",
        slots=one.slots,
        vcpus=one.vcpus,
        memory_mb=one.memory_mb,
        reservation_id=one.reservation_id,
        lease_id=one.lease_id,
        lease_name=one.lease_name,
        project_id=one.project_id,
        status=one.status,
    )
