"""Creation of a series: one lease for each occurrence, all in one transaction."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID
from zoneinfo import ZoneInfo

from sqlalchemy import Connection

from climate.context import Climate
from climate.database.connections import reading
from climate.domain.availability.daily_windows import zone as zone_of
from climate.domain.errors import (
    Busy,
    ClimateError,
    Conflict,
    Forbidden,
    InvalidInput,
    NotEnoughAddresses,
    OccurrencesClash,
    Tampered,
)
from climate.domain.lease import Lease
from climate.domain.period import Period
from climate.domain.planning.series import Make, Series, SeriesCreated, Skipped
from climate.domain.policy import Caller, require
from climate.service.admission import enforcement
from climate.service.admission.enforcement import Approvals
from climate.service.leases import leases, reservation_aggregates, reservations, shortages
from climate.service.leases.leases import LeaseRequest
from climate.service.preemption import second_try
from climate.service.preemption.second_try import Turn
from climate.service.series import recurrence
from climate.service.series.occurrence_alternatives import Occurrence, name_of, suggested
from climate.service.transaction import run
from climate.store import idempotency
from climate.store.allocation import preemptible
from climate.store.idempotency import Key
from climate.store.leases import leases as stored_leases
from climate.store.leases import series as stored
from climate.time_ordered_ids import time_ordered_id

ELSEWHERE = ("zone", "cell", "across")
"""Fields of a reservation that place it in another deployment."""

SHOWN = 3
"""Occurrences in the text of a refusal; the details have all of them."""


@dataclass(frozen=True, slots=True)
class SeriesOrder:
    """Request for a series. `order` is that of the repeated lease; its name gets the date of each occurrence."""

    order: LeaseRequest
    rule: str
    zone: str
    make: Make = Make.ALL


@dataclass(frozen=True, slots=True)
class Outcome:
    """A series with its occurrences, those that did not fit among them."""

    series: Series
    occurrences: Sequence[Occurrence]


@dataclass(frozen=True, slots=True)
class _Request:
    caller: Caller
    wanted: SeriesOrder
    first: Period
    orders: Sequence[LeaseRequest]
    """One for each occurrence."""
    requested: Sequence[reservations.Requested]
    key: Key | None
    dry_run: bool
    turn: Turn = Turn.ONLY


def create(
    climate: Climate, caller: Caller, order: SeriesOrder, key: Key | None = None, *, dry_run: bool = False
) -> Outcome:
    """Create the leases of a series, all of them or those that fit, or none at all.

    A dry run returns what each occurrence would get, or the reason why it does not fit, with alternatives. Raise
    InvalidInput for a rule that is wrong or too long, and OccurrencesClash if too little fits. With a key that was used
    before, return the series as it was created, whatever has become of it since.
    """
    require(caller, "leases:post")
    if key and (known := run(climate, _earlier, caller, key)):
        return known
    request = _read(climate, caller, order, key, dry_run=dry_run)
    outcome = _twice(climate, request)
    occurrences = (
        outcome.occurrences if dry_run else [_announced(climate, occurrence) for occurrence in outcome.occurrences]
    )
    return replace(outcome, occurrences=suggested(climate, caller, order.order, occurrences))


def _twice(climate: Climate, request: _Request) -> Outcome:
    """Return the result of the request; an ordinary one that lacks hosts may take those of preemptible leases."""

    def attempt(turn: Turn) -> Outcome:
        wish, dry_run = replace(request, turn=turn), request.dry_run
        return enforcement.run_all_approved(climate, request.caller, _create, climate, wish, dry_run=dry_run)

    if second_try.gives_way(item.spec for item in request.requested):
        return attempt(Turn.ONLY)
    return second_try.if_lacking(attempt)


def _announced(climate: Climate, one: Occurrence) -> Occurrence:
    return (
        one if one.lease is None else replace(one, lease=reservation_aggregates.announce(climate, one.lease, new=True))
    )


def _read(climate: Climate, caller: Caller, wanted: SeriesOrder, key: Key | None, *, dry_run: bool) -> _Request:
    """Compute the occurrences, and check the reservations by the cloud."""
    zone, most = zone_of(wanted.zone), climate.settings.series_occurrences
    rule = recurrence.read(wanted.rule, most)
    order = wanted.order
    with reading(climate.engine) as conn:
        start = order.start or climate.now(conn).replace(microsecond=0)
    first = leases.limited(Period(start, order.end), climate)
    periods = recurrence.occurrences(rule, zone, first, most)
    requested = reservations.requested(climate, order.reservations)
    for item in requested:
        named = [name for name in ELSEWHERE if item.spec.get(name)]
        if named:
            raise InvalidInput(f"{named[0]} cannot be used in a series: its leases lie in this deployment")
    requested = reservations.checked(climate, caller, requested, periods[-1].end)
    orders = list(_orders(replace(order, start=start), periods, zone))
    return _Request(caller, replace(wanted, rule=rule.text), first, orders, requested, key, dry_run)


def _orders(order: LeaseRequest, periods: Sequence[Period], zone: ZoneInfo) -> Iterable[LeaseRequest]:
    """Yield the order of each occurrence; its other dates keep their distance from its start."""
    days = {period.start.astimezone(zone).date() for period in periods}
    for period in periods:
        later = period.start - (order.start or period.start)
        yield replace(
            order,
            name=name_of(order.name, period.start, zone, timed=len(days) < len(periods)),
            start=period.start,
            end=period.end,
            before_end=order.before_end and order.before_end + later,
            events=[replace(event, due_at=event.due_at + later) for event in order.events],
        )


def _earlier(conn: Connection, caller: Caller, key: Key) -> Outcome | None:
    """Return the series of an earlier request with this key as it was created, also if it is deleted."""
    known = idempotency.earlier(conn, caller, key)
    if known is None:
        return None
    series = stored.as_created(conn, UUID(known))
    return Outcome(series, _sorted(series, leases.as_created(conn, stored.all_occurrences(conn, series.id))))


def whole(conn: Connection, series: Series) -> list[Occurrence]:
    """Return the occurrences of a series, and those that it skipped, by their start."""
    own = stored_leases.get_many(conn, stored.occurrences(conn, series.id)).values()
    return _sorted(series, [lease for lease in own if not lease.gone])


def _sorted(series: Series, own: Iterable[Lease]) -> list[Occurrence]:
    zone = zone_of(series.zone)
    occurrences = [Occurrence(lease.name, lease.period, lease) for lease in own]
    skipped = [
        Occurrence(name_of(series.name, one.period.start, zone, timed=one.timed), one.period, reason=one.reason)
        for one in series.skipped
    ]
    return sorted([*occurrences, *skipped], key=lambda one: one.period.start)


def _create(conn: Connection, patient: bool, gates: Approvals, climate: Climate, request: _Request) -> Outcome:
    caller, wanted, key = request.caller, request.wanted, request.key
    if key and (known := _earlier(conn, caller, key)):
        return known
    terms = replace(leases.lock_limits(conn, climate, caller, gates.at(0)), turn=request.turn)
    if request.turn is Turn.SECOND:
        patient, terms = True, replace(terms, losers=_losers(conn, climate, request))
    series_id = time_ordered_id()
    occurrences, is_short = [], False
    for index, order in enumerate(request.orders):
        own = replace(terms, grant=replace(terms.grant, gate=gates.at(index)))
        order = replace(order, series_id=series_id)
        try:
            lease = leases.allocate_and_record(conn, climate, own, order, request.requested, patient)
        except ClimateError as refusal:
            is_short |= second_try.may_help(refusal)
            reason = refusal_of(conn, refusal)
            occurrences.append(Occurrence(order.name, _period(order), reason=reason))
        else:
            occurrences.append(Occurrence(order.name, lease.period, lease))
    if is_short:
        second_try.refuse_lacking(conn, request.turn, _reach(climate, request))
    if not request.dry_run:
        _refuse(occurrences, wanted.make)
    series = stored.create(conn, caller, _fact(request, series_id, terms.now, occurrences))
    if key:
        idempotency.remember(conn, caller, key, str(series_id), terms.now)
    return Outcome(series, occurrences)


def _reach(climate: Climate, request: _Request) -> Period:
    return second_try.reach(climate.settings, request.orders[0].start, request.orders[-1].end)


def _losers(conn: Connection, climate: Climate, request: _Request) -> frozenset[UUID]:
    """Lock the preemptible leases that hold a host at the time of some occurrence."""
    during = [second_try.reach(climate.settings, order.start, order.end) for order in request.orders]
    found = {lease_id for period in during for lease_id in preemptible.lease_ids(conn, period)}
    return frozenset(lease.id for lease in stored_leases.lock(conn, found))


def refusal_of(conn: Connection, error: ClimateError) -> str:
    """Return the reason why one occurrence does not fit; raise errors that are about the whole request."""
    is_own = isinstance(error, (Conflict, Forbidden, NotEnoughAddresses, *shortages.BARE))
    if not is_own or isinstance(error, Busy | Tampered):
        raise error
    return str(shortages.explanation(conn, error))


def _period(order: LeaseRequest) -> Period:
    if order.start is None:
        raise InvalidInput("an occurrence needs a start")
    return Period(order.start, order.end)


def _refuse(occurrences: Sequence[Occurrence], make: Make) -> None:
    clashes = [occurrence for occurrence in occurrences if occurrence.lease is None]
    if len(clashes) == len(occurrences) or (clashes and make is Make.ALL):
        raise clash(clashes, len(occurrences))


def clash(clashes: Sequence[Occurrence], number: int) -> OccurrencesClash:
    """Return the error that names the occurrences that do not fit, of a number of occurrences."""
    named = "; ".join(f"{one.name} at {one.period.start:%Y-%m-%d %H:%M} UTC: {one.reason}" for one in clashes[:SHOWN])
    more = f"; and {len(clashes) - SHOWN} more" if len(clashes) > SHOWN else ""
    details = [
        {
            "lease_id": None if one.lease is None else str(one.lease.id),
            "name": one.name,
            "start_date": f"{one.period.start:%Y-%m-%dT%H:%M:%SZ}",
            "end_date": f"{one.period.end:%Y-%m-%dT%H:%M:%SZ}",
            "reason": one.reason,
        }
        for one in clashes
    ]
    return OccurrencesClash(
        f"{len(clashes)} of {number} occurrences do not fit, so nothing was changed: {named}{more}",
        {"occurrences": details},
    )


def _fact(request: _Request, series_id: UUID, now: datetime, occurrences: Sequence[Occurrence]) -> SeriesCreated:
    wanted, caller, name = request.wanted, request.caller, request.wanted.order.name
    skipped = tuple(
        Skipped(
            occurrence.period,
            occurrence.reason or "",
            occurrence.name != name_of(name, occurrence.period.start, zone_of(wanted.zone)),
        )
        for occurrence in occurrences
        if occurrence.lease is None
    )
    return SeriesCreated(
        series_id=series_id,
        at=now,
        name=name,
        project_id=caller.project_id,
        user_id=caller.user_id,
        rule=wanted.rule,
        zone=wanted.zone,
        period=request.first,
        make=str(wanted.make),
        skipped=skipped,
    )
