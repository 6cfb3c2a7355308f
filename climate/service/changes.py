"""Change a lease: its name, its dates, what it asks for.  All of it or nothing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import Connection

from climate.context import Climate
from climate.domain import schedule
from climate.domain.errors import Conflict, InvalidInput
from climate.domain.facts import Fact, Hold, LeaseRenamed, LeaseRescheduled, ReservationChanged
from climate.domain.lease import Lease, Reservation
from climate.domain.period import Period
from climate.domain.policy import Caller, require
from climate.domain.status import DONE, EventKind
from climate.plugin import Ask
from climate.service import refusals
from climate.service.leases import limited, scope, wake_if_soon
from climate.service.unit import work
from climate.store import leases


@dataclass(frozen=True, slots=True)
class Changes:
    """What is to be different; None leaves a thing as it is.  `now` for an end means at once."""

    name: str | None = None
    start: datetime | None = None
    end: datetime | None = None
    end_now: bool = False
    start_now: bool = False
    before_end: datetime | None = None
    reservations: Sequence[Mapping[str, Any]] = ()

    @property
    def only_the_name(self) -> bool:
        return self == Changes(name=self.name)


def update(
    climate: Climate,
    caller: Caller,
    lease_id: UUID,
    changes: Changes,
    version: int | None = None,
    *,
    dry_run: bool = False,
) -> Lease:
    """The lease after the changes, in one transaction: a refusal leaves it just as it was.

    Busy while one of its events is in progress; NotEnoughHosts or Conflict where the hosts are promised to others.
    """
    require(caller, "leases:put")

    def act(conn: Connection, patient: bool) -> Lease:
        lease = leases.get(conn, lease_id, project_id=scope(caller), lock=True)
        refusals.unless_version(lease, version)
        now = climate.now(conn)
        facts = _facts(climate, conn, _Wish(lease, caller, changes, now, patient))
        lease = leases.record(conn, caller, lease, *facts) if facts else lease
        wake_if_soon(climate, conn, lease, now)
        return lease

    with refusals.explained(climate):
        return work(climate, act, keep=not dry_run)


@dataclass(frozen=True, slots=True)
class _Wish:
    lease: Lease
    caller: Caller
    changes: Changes
    now: datetime
    patient: bool
    taken: tuple[int, ...] = ()


def _facts(climate: Climate, conn: Connection, wish: _Wish) -> list[Fact]:
    lease, changes, now = wish.lease, wish.changes, wish.now
    named = changes.name is not None and changes.name != lease.name
    facts: list[Fact] = [LeaseRenamed(now, changes.name or "")] if named else []
    if changes.only_the_name:
        return facts
    _refuse_strangers(lease, changes.reservations)
    start = now if changes.start_now else changes.start
    period = limited(schedule.new_period(lease, start, now if changes.end_now else changes.end, now), climate)
    moved = list(schedule.reschedule(lease, period, changes.before_end, now, uuid4))
    replanned: list[ReservationChanged] = []
    for present in lease.reservations:
        taken = tuple(hold.host for fact in replanned for hold in fact.holds)
        fact = _replanned(climate, conn, replace(wish, taken=taken), present, period)
        replanned += [fact] if fact else []
    if _started(lease) and any(_grown(lease.reservation(fact.reservation_id), fact) for fact in replanned):
        planned = schedule.adjustment(lease, now, uuid4)
        moved = [LeaseRescheduled(now, period, (*(e for fact in moved for e in _events(fact)), planned))]
    return [*facts, *moved, *replanned]


def _events(fact: Fact) -> Sequence[Any]:
    return fact.events if isinstance(fact, LeaseRescheduled) else ()


def _refuse_strangers(lease: Lease, wanted: Sequence[Mapping[str, Any]]) -> None:
    own = {str(r.id): r for r in lease.reservations}
    strangers = sorted(str(spec["id"]) for spec in wanted if str(spec["id"]) not in own)
    if strangers:
        raise InvalidInput(f"Please enter valid reservation IDs. Invalid reservation IDs are: {', '.join(strangers)}")
    for spec in wanted:
        if spec.get("resource_type", own[str(spec["id"])].resource_type) != own[str(spec["id"])].resource_type:
            raise Conflict("resource_type cannot be updated")


def _replanned(
    climate: Climate, conn: Connection, wish: _Wish, present: Reservation, period: Period
) -> ReservationChanged | None:
    """What has to change for a reservation, or None."""
    given = next((spec for spec in wish.changes.reservations if str(spec["id"]) == str(present.id)), {})
    spec = {**present.spec, **{k: v for k, v in given.items() if k not in ("id", "resource_type")}}
    if period == wish.lease.period and spec == present.spec:
        return None
    plugin = climate.plugins[present.resource_type]
    ask = Ask(spec, period, wish.caller, climate.settings, present, _started(wish.lease), wish.patient, wish.taken)
    if spec == present.spec and present.holds and (kept := _shrunk(present, ask)):
        return ReservationChanged(wish.now, present.id, spec, kept)
    got = plugin.reserve(conn, ask)
    if got.spec == present.spec and got.holds == present.holds:
        return None
    return ReservationChanged(wish.now, present.id, got.spec, got.holds)


def _shrunk(present: Reservation, ask: Ask) -> tuple[Hold, ...]:
    """The same hosts for a part of the time that they are held anyway: nobody needs to be asked."""
    window = ask.period.widened(ask.margin)
    inside = all(h.during.start <= window.start and window.end <= h.during.end for h in present.holds)
    return tuple(Hold(hold.host, window) for hold in present.holds) if inside else ()


def _started(lease: Lease) -> bool:
    return lease.touched or lease.event(EventKind.START).status is DONE


def _grown(present: Reservation, fact: ReservationChanged) -> bool:
    return bool({hold.host for hold in fact.holds} - set(present.hosts))
