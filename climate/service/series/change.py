"""Changes and deletion of the occurrences of a series that have not begun, all in one transaction."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import dropwhile
from uuid import UUID
from zoneinfo import ZoneInfo

from sqlalchemy import Connection

from climate.context import Climate
from climate.domain.availability.daily_windows import zone as zone_of
from climate.domain.errors import ClimateError, Conflict, InvalidInput, PreconditionFailed
from climate.domain.events import event_transitions
from climate.domain.lease import Lease
from climate.domain.period import Period
from climate.domain.planning.series import Series, SeriesChanged, SeriesDeleted, SeriesReduced, is_unbegun
from climate.domain.policy import Caller, require
from climate.service.admission import admission, enforcement
from climate.service.admission.enforcement import Approvals
from climate.service.events import unbegun_claims
from climate.service.leases import reservation_aggregates, update
from climate.service.leases.dates import LATEST
from climate.service.leases.leases import scope, wake_if_soon
from climate.service.leases.update import Change, Changes
from climate.service.notifications import delivery, lease_events
from climate.service.preemption import second_try
from climate.service.preemption.second_try import BEFORE_ALL, Turn
from climate.service.series.create import Outcome, clash, refusal_of, whole
from climate.service.series.occurrence_alternatives import Occurrence, name_of
from climate.service.series.recurrence import moved
from climate.service.transaction import run
from climate.store.allocation import preemptible
from climate.store.leases import leases as stored_leases
from climate.store.leases import series as stored
from climate.store.leases.series import SeriesListing

ZERO = timedelta(0)
DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class SeriesChanges:
    """Changes of occurrences: from the lease `since` on, or of all that have not begun."""

    name: str | None = None
    """New name of the series; occurrences that have names of their own keep them."""
    move_by: timedelta = ZERO
    """Difference of local times by which each occurrence moves; negative: to an earlier time."""
    extend_by: timedelta = ZERO
    """Elapsed time by which each occurrence ends later; negative: it gets shorter."""
    since: UUID | None = None

    @property
    def is_empty(self) -> bool:
        """Return whether nothing is to be changed."""
        return self.name is None and not self.move_by and not self.extend_by


@dataclass(frozen=True, slots=True)
class _Request:
    caller: Caller
    series_id: UUID
    version: int | None
    changes: SeriesChanges
    may_be_over: bool = False
    """Set if the request also concerns a series of which each occurrence has begun."""
    turn: Turn = Turn.ONLY


def listed(climate: Climate, caller: Caller, listing: SeriesListing) -> list[tuple[Series, int]]:
    """Return the project's series with the number of their leases, or all for an admin; oldest first."""
    require(caller, "leases:get")
    own = scope(caller)
    return run(climate, _listed, listing if own is None else replace(listing, project_id=own))


def _listed(conn: Connection, listing: SeriesListing) -> list[tuple[Series, int]]:
    found = stored.listed(conn, listing)
    counts = stored.counts(conn, [one.id for one in found])
    return [(one, counts.get(one.id, 0)) for one in found]


def get(climate: Climate, caller: Caller, series_id: UUID) -> Outcome:
    """Return a series with its occurrences; one of another project is not found."""
    require(caller, "leases:get")
    return run(climate, _get, caller, series_id)


def _get(conn: Connection, caller: Caller, series_id: UUID) -> Outcome:
    series = stored.get(conn, series_id, project_id=scope(caller))
    return Outcome(series, whole(conn, series))


def change(
    climate: Climate,
    caller: Caller,
    series_id: UUID,
    changes: SeriesChanges,
    version: int | None = None,
    *,
    dry_run: bool = False,
) -> Outcome:
    """Change all occurrences, or none: OccurrencesClash names those that do not fit.

    Raise Busy while a worker runs an event of one of them, and PreconditionFailed if the series has another version.
    """
    require(caller, "leases:put")
    request = _Request(caller, series_id, version, changes, may_be_over=changes.is_empty)

    def attempt(turn: Turn) -> tuple[list[Lease], Outcome]:
        wish = replace(request, turn=turn)
        return enforcement.run_all_approved(climate, caller, _change, climate, wish, dry_run=dry_run)

    changed, outcome = second_try.if_lacking(attempt)
    if not dry_run:
        for lease in changed:
            reservation_aggregates.announce(climate, lease)
    return outcome


def _change(
    conn: Connection, patient: bool, gates: Approvals, climate: Climate, request: _Request
) -> tuple[list[Lease], Outcome]:
    caller, changes = request.caller, request.changes
    grant = admission.begin(conn, climate, caller, gates.at(0))
    is_second = request.turn is Turn.SECOND
    losers = _losers(conn, climate, request) if is_second else frozenset()
    series, affected = _locked(conn, request)
    if changes.is_empty:
        return [], Outcome(series, whole(conn, series))
    now = climate.now(conn)
    affected = [unbegun_claims.take_back(conn, caller, lease, now) for lease in affected]
    turn = _turn(request, affected)
    changed: list[Lease] = []
    clashes: list[Occurrence] = []
    is_short = False
    for index, lease in enumerate(_in_order(affected, changes)):
        own = replace(grant, gate=gates.at(index))
        try:
            own_changes = _changes(series, lease, changes)
            wish = Change(lease, own_changes, now, patient or is_second, turn, _again(conn, losers))
            changed.append(update.apply(conn, climate, own, wish))
        except ClimateError as refusal:
            is_short |= second_try.may_help(refusal)
            clashes.append(Occurrence(lease.name, lease.period, lease, _reason(conn, refusal)))
    if is_short:
        second_try.refuse_lacking(conn, turn, _reach(climate, affected, changes))
    if clashes:
        raise clash(sorted(clashes, key=lambda one: one.period.start), len(affected))
    series = stored.record(conn, caller, series, _fact(changes, now))
    return changed, Outcome(series, whole(conn, series))


def _turn(request: _Request, affected: Sequence[Lease]) -> Turn:
    """Return the turn of the request; leases that are preemptible themselves have only one."""
    is_preemptible = second_try.gives_way(r.spec for lease in affected for r in lease.reservations)
    return Turn.ONLY if is_preemptible else request.turn


def _in_order(affected: Sequence[Lease], changes: SeriesChanges) -> Sequence[Lease]:
    """Return the leases in the order in which each one leaves before the next one needs its place."""
    return affected if changes.move_by < ZERO else affected[::-1]


def _reach(climate: Climate, affected: Sequence[Lease], changes: SeriesChanges) -> Period:
    """Return a time that covers all that the leases may need after the changes."""
    start = min((lease.period.start for lease in affected), default=BEFORE_ALL)
    end = max((lease.period.end for lease in affected), default=BEFORE_ALL)
    # A difference of local times may be a few hours of elapsed time more or less.
    earliest = start + min(changes.move_by, ZERO) - DAY
    latest = end + max(changes.move_by, ZERO) + max(changes.extend_by, ZERO) + DAY
    return second_try.reach(climate.settings, earliest, latest)


def _losers(conn: Connection, climate: Climate, request: _Request) -> frozenset[UUID]:
    """Lock the leases of the series and the preemptible ones that may lose hosts to them; return the latter."""
    series = stored.get(conn, request.series_id, project_id=scope(request.caller), lock=True)
    own = stored.occurrences(conn, series.id)
    known = [lease for lease in stored_leases.get_many(conn, own).values() if is_unbegun(lease)]
    locked = preemptible.lock(conn, _reach(climate, known, request.changes), own)
    return frozenset(lease.id for lease in locked)


def _again(conn: Connection, losers: frozenset[UUID]) -> tuple[Lease, ...]:
    """Return the locked preemptible leases as the occurrences before have left them."""
    return preemptible.read(conn, losers) if losers else ()


def _fact(changes: SeriesChanges, now: datetime) -> SeriesChanged:
    move_by, extend_by = (int(by.total_seconds()) for by in (changes.move_by, changes.extend_by))
    return SeriesChanged(now, changes.name, move_by, extend_by, changes.since)


def _reason(conn: Connection, refusal: ClimateError) -> str:
    return str(refusal) if isinstance(refusal, InvalidInput) else refusal_of(conn, refusal)


def _from(leases: Sequence[Lease], since: UUID) -> list[Lease]:
    """Return a lease of the series and those after it; raise InvalidInput if it is none of them."""
    later = list(dropwhile(lambda lease: lease.id != since, leases))
    if not later:
        raise InvalidInput(f"from: the series has no lease {since}")
    return later


def _locked(conn: Connection, request: _Request) -> tuple[Series, list[Lease]]:
    """Lock the series and its leases; return it with those that are to change, by their start."""
    series = stored.get(conn, request.series_id, project_id=scope(request.caller), lock=True)
    if request.version is not None and request.version != series.version:
        raise PreconditionFailed(f"The series is at version {series.version}, not {request.version}")
    leases = stored_leases.lock(conn, stored.occurrences(conn, series.id))
    leases.sort(key=lambda lease: (lease.period.start, lease.id))
    since = request.changes.since
    if since is not None:
        leases = _from(leases, since)
    affected = [lease for lease in leases if is_unbegun(lease)]
    if not affected and (since is not None or (leases and not request.may_be_over)):
        raise Conflict("Each occurrence of the series has begun: change them one by one")
    return series, affected


def _changes(series: Series, lease: Lease, changes: SeriesChanges) -> Changes:
    """Return the changes of one occurrence."""
    zone = zone_of(series.zone)
    start = moved(lease.period.start, changes.move_by, zone)
    length = lease.period.end - lease.period.start + changes.extend_by
    if length <= ZERO:
        raise InvalidInput(f"extend_by would leave it {length.total_seconds():.0f} seconds long")
    period = Period(start, start + length)
    if period.end > LATEST:
        raise InvalidInput(f"it would end after {LATEST:%Y-%m-%d}, the last possible date")
    return Changes(
        name=_name(series, lease, changes, start, zone),
        start=None if period.start == lease.period.start else period.start,
        end=None if period.end == lease.period.end else period.end,
    )


def _name(series: Series, lease: Lease, changes: SeriesChanges, start: datetime, zone: ZoneInfo) -> str | None:
    """Return the new name of an occurrence; None if it has a name of its own."""
    for timed in (False, True):
        if lease.name == name_of(series.name, lease.period.start, zone, timed=timed):
            return name_of(changes.name or series.name, start, zone, timed=timed)
    return None


def delete(
    climate: Climate,
    caller: Caller,
    series_id: UUID,
    since: UUID | None = None,
    version: int | None = None,
    *,
    dry_run: bool = False,
) -> None:
    """Delete the occurrences that have not begun, all of them with the series, or those from the lease `since` on."""
    require(caller, "leases:delete")
    request = _Request(caller, series_id, version, SeriesChanges(since=since), may_be_over=True)
    deleted = run(climate, _delete, climate, request, keep=not dry_run)
    if not dry_run:
        for lease in deleted:
            reservation_aggregates.withdraw(climate, lease)


def _delete(conn: Connection, climate: Climate, request: _Request) -> list[Lease]:
    caller, since = request.caller, request.changes.since
    series, affected = _locked(conn, request)
    now = climate.now(conn)
    affected = [unbegun_claims.take_back(conn, caller, lease, now) for lease in affected]
    deleted = [stored_leases.record(conn, caller, lease, *event_transitions.delete(lease, now)) for lease in affected]
    for before, after in zip(affected, deleted, strict=True):
        delivery.notify(conn, now, *lease_events.of(climate.settings, before, after))
        wake_if_soon(conn, climate, after, now)
    fact = SeriesDeleted(now) if since is None else SeriesReduced(now, since)
    stored.record(conn, caller, series, fact)
    return deleted
