"""Reallocation of the unusable hosts of a reservation, shared by all ways of healing."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from uuid import UUID

from sqlalchemy import Connection

from climate.context import Climate
from climate.domain import lease_health
from climate.domain.errors import NotEnoughHosts
from climate.domain.events import event_transitions
from climate.domain.events.event_transitions import Times, is_active, started
from climate.domain.facts import Fact, Hold, LeaseRescheduled, ReservationChanged
from climate.domain.hosts.pools import HostPlace, Pool, Transition
from climate.domain.lease import Lease, Reservation, fold
from climate.domain.lease_health import SortedHolds
from climate.domain.notifications import Notice
from climate.domain.policy import ADMIN, Caller
from climate.domain.sharing import sublease
from climate.domain.status import DONE, ERROR, IN_PROGRESS, UNDONE, EventKind
from climate.plugin import ResourceRequest
from climate.service.events import host_power_on
from climate.service.hosts import lease_transitions
from climate.service.leases import joint_allocation
from climate.service.leases.leases import wake_if_soon
from climate.service.notifications import delivery
from climate.service.preemption import lease_shortening
from climate.store import locks
from climate.store.hosts import health, pool_membership, quarantine
from climate.store.hosts.health import Unfit
from climate.store.journal import journal
from climate.store.leases import event_claims, leases
from climate.time_ordered_ids import time_ordered_id


@dataclass(frozen=True, slots=True)
class Case:
    """Locked lease, and the state of its hosts."""

    lease: Lease
    now: datetime
    author: Caller
    why: str
    """Reason for the owner, which names no host."""
    awaited: frozenset[int] = frozenset()
    """Hosts to be replaced if possible; otherwise the lease goes on waiting for them."""
    given_up: frozenset[int] = frozenset()
    """Hosts that the lease loses from now on."""
    without: frozenset[int] = frozenset()
    """Hosts that must not be chosen."""
    given: tuple[tuple[UUID, Hold], ...] = ()
    """Hosts that reservations get even if they do not match; they must be free, and their rows locked."""
    losers: tuple[Lease, ...] = ()
    """Locked preemptible leases, whose hosts the lease may get if no other are free."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Result of a reallocation. `lease` is the lease as it is now."""

    lease: Lease
    replaced: bool = False
    """Set if it got new hosts, or more room on those that it had."""
    short: int = 0
    """Amount that it still lacks."""
    moved: tuple[HostPlace, ...] = field(default=())
    """Hosts that were taken out of the running lease: the cloud has to be asked to move them."""


def can_reallocate(lease: Lease, now: datetime) -> bool:
    """Return whether the lease can be reallocated now: not while an event runs, nor once it is over or ending."""
    end = lease.event(EventKind.END)
    over = lease.gone or lease.deleting or lease.period.end <= now or end.status is not UNDONE or end.token
    start = lease.event(EventKind.START)
    return not (over or start.status is ERROR or any(event.status is IN_PROGRESS for event in lease.events))


def reallocate_hosts(conn: Connection, climate: Climate, case: Case) -> Outcome:
    """Replace the unusable hosts of each reservation of the lease, and count the missing ones.

    Waits for concurrent allocations, so all leases of the transaction must be locked before. Hosts that cannot be
    replaced are kept, because they may return, unless they are given up.
    """
    locks.lock_host_allocation(conn)
    lease = case.lease
    story = journal.of_lease(journal.read(conn, lease.id)) if _lacks(lease) else []
    held = pool_membership.of(conn, {host for r in lease.reservations for host in r.hosts})
    avoided, kept = health.unfit(conn), frozenset(quarantine.hosts(conn, case.now))
    choices = [
        _Choice(case, reservation, _sorted_holds(case, reservation, held, story), lease, avoided, kept)
        for reservation in lease.reservations
        if reservation.holds or reservation.missing
    ]
    together = _chosen_together(conn, climate, [choice for choice in choices if choice.there.wants > 0])
    changed: list[ReservationChanged] = []
    for choice in choices:
        r = choice.reservation
        got = together.get(r.id) or _choose(conn, climate, replace(choice, so_far=fold(changed, lease)))
        holds, missing = choice.there.settled(*got)
        kept_apart = _sound_sublets(case, r, held)
        changed += _change(case, r, tuple(sorted((*holds, *kept_apart), key=lambda hold: hold.host)), missing)
    return _record(conn, climate, case, changed, held)


def _lacks(lease: Lease) -> bool:
    return any(r.missing for r in lease.reservations)


def _sorted_holds(case: Case, r: Reservation, held: Mapping[int, HostPlace], story: Sequence[Fact]) -> SortedHolds:
    apart = _sound_sublets(case, r, held)
    promised = lease_health.promised(r, story if r.missing else ()) - len(apart)
    others = replace(r, holds=tuple(hold for hold in r.holds if hold not in apart))
    there = lease_health.sort_holds(
        others, held, promised, active=is_active(case.lease), awaited=case.awaited, given_up=case.given_up
    )
    given = tuple(hold for number, hold in case.given if number == r.id)
    return replace(there, sound=(*there.sound, *given))


def _sound_sublets(case: Case, r: Reservation, held: Mapping[int, HostPlace]) -> tuple[Hold, ...]:
    """Return the holds on usable hosts that are promised to sub-leases: they end before the lease, and stay so."""
    _, pending = sublease.split_by_pending(r.holds, r.sublets)
    usable = (h for h in pending if h.host not in case.given_up)
    active = is_active(case.lease)
    return tuple(h for h in usable if lease_health.is_in_order(held[h.host], h, r, active=active))


@dataclass(frozen=True, slots=True)
class _Choice:
    case: Case
    reservation: Reservation
    there: SortedHolds
    so_far: Lease
    """Lease with the changes of its other reservations."""
    avoided: Unfit
    kept: frozenset[int]
    """Hosts that a lease has not given back, because its end failed."""


_Got = tuple[Sequence[Hold], int]
"""Holds to keep, including the usable ones, and the amount that is still missing."""


def _chosen_together(conn: Connection, climate: Climate, choices: Sequence[_Choice]) -> Mapping[UUID, _Got]:
    """Return the choice for several reservations that lack hosts; nothing if each has to choose by itself."""
    loaded = {c.reservation.resource_type for c in choices} <= climate.plugins.keys()
    if len(choices) < 2 or not loaded:
        return {}
    ids = {c.reservation.id for c in choices}
    lease = choices[0].case.lease
    others = replace(lease, reservations=tuple(r for r in lease.reservations if r.id not in ids))
    return _least_lacking(conn, climate, [replace(c, so_far=others) for c in choices])


def _least_lacking(conn: Connection, climate: Climate, choices: Sequence[_Choice]) -> Mapping[UUID, _Got]:
    """Return the choice of which the reservations together lack least; of equal ones the first in `_narrowing`."""
    best: Mapping[UUID, _Got] = {}
    for passed_over in _narrowing(choices[0]):
        got = _as_many_as_possible(conn, climate, choices, passed_over)
        if got and (not best or _missing(got) < _missing(best)):
            best = got
        if best and not _missing(best):
            break
    return best


def _as_many_as_possible(
    conn: Connection, climate: Climate, choices: Sequence[_Choice], passed_over: frozenset[int]
) -> Mapping[UUID, _Got]:
    """Return what the reservations can have together without some hosts; nothing if a plugin cannot say."""
    asked = [
        (climate.plugins[c.reservation.resource_type], _resource_request(climate, c, passed_over)) for c in choices
    ]
    allocations = joint_allocation.as_many_as_possible(conn, asked)
    if allocations is None:
        return {}
    return {c.reservation.id: _weighed(c, one.holds) for c, one in zip(choices, allocations, strict=True)}


def _weighed(choice: _Choice, holds: Sequence[Hold]) -> _Got:
    return holds, max(0, choice.there.promised - lease_health.weight(holds))


def _missing(got: Mapping[UUID, _Got]) -> int:
    return sum(short for _, short in got.values())


def _choose(conn: Connection, climate: Climate, choice: _Choice) -> _Got:
    """Return the holds to keep, including the usable ones, and the amount that is still missing."""
    sound, best = choice.there.sound, choice.there.sound
    if choice.there.wants <= 0:
        return sound, 0
    plugin = climate.plugins.get(choice.reservation.resource_type)
    if plugin is None:  # uninstalled although leases are left: no other plugin can choose for them
        return sound, choice.there.wants
    for passed_over in _narrowing(choice):
        try:
            got = plugin.reserve(conn, _resource_request(climate, choice, passed_over)).holds
        except NotEnoughHosts:
            continue
        if _counted(choice.reservation):
            best = got if lease_health.weight(got) > lease_health.weight(best) else best
        else:
            return got, 0
        if lease_health.weight(best) >= choice.there.promised:
            break
    return best, max(0, choice.there.promised - lease_health.weight(best))


def _narrowing(choice: _Choice) -> Sequence[frozenset[int]]:
    """Return hosts to exclude, first at the first attempt, and then if too few are left.

    A host that is off may not come up in time, and a busy one may not be given back in time. A lease that needs
    it now cannot take a busy one at all, unless it is of a preemptible lease.
    """
    off, busy = choice.avoided.off, choice.avoided.busy
    lost = frozenset(host for lease in choice.case.losers for host in _hosts(lease))
    strict = (off | busy, busy, *([busy - lost] if lost else []))
    now = started(choice.case.lease) or choice.case.lease.period.start <= choice.case.now
    return strict if now else (*strict, off, frozenset())


def _resource_request(climate: Climate, choice: _Choice, passed_over: frozenset[int]) -> ResourceRequest:
    """Return the request for the missing amount: existing slots stay, and any number up to the promise is accepted."""
    case, r, sound = choice.case, choice.reservation, choice.there.sound
    stays = {hold.host for hold in sound}
    avoided = {*choice.kept, *choice.avoided.unwell, *case.given_up, *case.awaited, *case.without, *passed_over} - stays
    bounds = {"min": len(sound) or 1, "max": choice.there.promised} if _counted(r) else {}
    return ResourceRequest(
        spec={**r.spec, **bounds},
        period=case.lease.period,
        caller=case.author,
        settings=climate.settings,
        present=replace(r, holds=sound),
        active=bool(sound) or started(case.lease),
        patient=True,
        taken=tuple(sorted((_hosts(choice.so_far) | avoided) - stays)),
        grace_of_lease=event_transitions.grace(reservation.spec for reservation in case.lease.reservations),
        beside=tuple(reservation for reservation in choice.so_far.reservations if reservation.id != r.id),
        avoided=frozenset(avoided),
        giving_way=lease_shortening.reservations(case.losers),
        held_until=case.lease.parent.until if case.lease.parent else None,
    )


def _counted(reservation: Reservation) -> bool:
    """Return whether a number of whole hosts was requested, of which some are better than none."""
    return "max" in reservation.spec


def _change(case: Case, r: Reservation, holds: tuple[Hold, ...], missing: int) -> Iterator[ReservationChanged]:
    if holds != r.holds or missing != r.missing:
        others = {hold.host for hold in holds} != set(r.hosts)
        changed = True if others and is_active(case.lease) else None
        yield ReservationChanged(case.now, r.id, r.spec, holds, missing=missing, changed=changed, reason=case.why)


def _record(
    conn: Connection,
    climate: Climate,
    case: Case,
    changed: Sequence[ReservationChanged],
    held: Mapping[int, HostPlace],
) -> Outcome:
    """Record the result, with the event that hands over new resources, and notify the owner."""
    lease, now = case.lease, case.now
    after = fold(changed, lease)
    facts = [*_events(conn, climate, case, after, held), *changed]
    if not facts:
        return Outcome(lease, short=sum(r.missing for r in lease.reservations))
    token = event_claims.tokens(conn, 1)[0]
    holds = (hold for r in after.reservations for hold in r.holds)
    lease_shortening.shorten(conn, climate, case.losers, lease.id, holds, now)
    after = leases.record(conn, case.author, lease, *facts)
    moved = lease_transitions.follow(conn, climate, case.author, Transition(lease, after, now, token))
    delivery.notify(conn, now, *_notices(case, after))
    wake_if_soon(conn, climate, after, now)
    return Outcome(
        after,
        replaced=bool(_held(after) - _held(lease)),
        short=sum(r.missing for r in after.reservations),
        moved=tuple(pool_membership.of(conn, {place.host for place, _ in moved}).values()),
    )


def _hosts(lease: Lease) -> set[int]:
    return {host for r in lease.reservations for host in r.hosts}


def _held(lease: Lease) -> set[tuple[UUID, int, int]]:
    """Return the resources by place: more room on the same host counts as new."""
    return {(r.id, hold.host, hold.slots) for r in lease.reservations for hold in r.holds}


def _events(
    conn: Connection, climate: Climate, case: Case, after: Lease, held: Mapping[int, HostPlace]
) -> Sequence[Fact]:
    lease, now = case.lease, case.now
    if started(lease):
        wanted = _to_hand_over(lease, after, held)
        adjustment = event_transitions.adjustment(lease, now, time_ordered_id)
        return [LeaseRescheduled(now, lease.period, (adjustment,))] if wanted else []
    if _hosts(after) == _hosts(lease):
        return []
    due_at = host_power_on.due_at(conn, climate.settings, lease.period, _hosts(after), now)
    times = Times(lease.period, prepare=due_at, grace=event_transitions.grace(r.spec for r in lease.reservations))
    return event_transitions.reschedule(lease, times, now, time_ordered_id)


def _to_hand_over(lease: Lease, after: Lease, held: Mapping[int, HostPlace]) -> bool:
    """Return whether the running lease has hosts that are not lent to it, without a planned event that lends them."""
    if _held(after) - _held(lease):
        return True
    to_adjust = [event for event in lease.events if event.kind is EventKind.ADJUST and event.status is not DONE]
    if to_adjust or not is_active(lease):
        return False
    idle = frozenset(place.host for place in held.values() if place.pool is Pool.RESERVATION)
    return any(_has_idle(r, lease.reservation(r.id), idle) for r in after.reservations)


def _has_idle(r: Reservation, before: Reservation, idle: frozenset[int]) -> bool:
    """Return whether an idle host is to be lent to a reservation: for slots, only if it lacks fewer than before."""
    lacks_fewer = r.missing < before.missing
    return any(hold.host in idle and (lacks_fewer or not hold.slots) for hold in r.holds)


def _notices(case: Case, after: Lease) -> Iterator[Notice]:
    new = {number for number, _, _ in _held(after) - _held(case.lease)}
    for r in after.reservations:
        before = case.lease.reservation(r.id)
        lacks = f"{r.missing} of what it reserved"
        if r.missing > before.missing:
            yield _notice("lease.degraded", f"Lease {after.name} lacks {lacks}: {case.why}", case, r)
        elif r.missing < before.missing or r.id in new:
            still = f", but lacks {lacks}" if r.missing else ""
            yield _notice("lease.healed", f"Lease {after.name} has other hosts, or its own again{still}", case, r)


def _notice(kind: str, message: str, case: Case, r: Reservation) -> Notice:
    lease, body = case.lease, {"reservation_id": str(r.id), "missing": r.missing, "reason": case.why}
    return Notice(kind, message, lease.project_id, lease.user_id, lease.id, body=body)


def engine(lease: Lease) -> Caller:
    """Return the engine as the author of its actions on a lease."""
    return Caller("climate:healing", lease.project_id, frozenset({ADMIN}))
