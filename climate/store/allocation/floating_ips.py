"""Allocation of floating IPs for a period, in the same two ways as hosts (climate.store.allocation.hosts).

The quick way locks free addresses that nobody else is booking. In a new statement, and hence a new snapshot, it keeps
those that are still free. It never waits. The patient way waits for the rows, in the order of their numbers.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, Select, and_, bindparam, exists, func, select
from sqlalchemy.dialects.postgresql import INET, Range

from climate.database.sql_arrays import in_array
from climate.domain.errors import Busy, NotEnoughAddresses
from climate.domain.period import Period
from climate.store import locks
from climate.store.allocation.hosts import HORIZON, HORIZON_ROWS, MustWait, Shortage, earliest_fit
from climate.store.tables.floating_ips import floating_allocations, floating_ips
from climate.store.tables.leases import in_force

PATIENT_LOOKS = 50


@dataclass(frozen=True, slots=True)
class AddressRequest:
    """Request for `amount` addresses of a network, all free for the whole `window`."""

    network_id: str
    amount: int
    window: Period
    own: frozenset[UUID] = frozenset()
    """Reservations whose present addresses count as free."""
    keep: tuple[int, ...] = ()
    """Numbers of addresses to prefer over all others."""
    must: tuple[int, ...] = ()
    """Numbers among them that are in use already and have to be free for the window."""
    required: tuple[str, ...] = ()
    """Addresses that have to be included, as text."""
    without: tuple[int, ...] = ()
    """Numbers of addresses to exclude, even if they are free."""


class Short(NotEnoughAddresses):
    """Not enough floating IPs available"""

    def __init__(self, wanted: AddressRequest) -> None:
        super().__init__()
        self.wanted = wanted


@dataclass(frozen=True, slots=True)
class Chosen:
    """A free address: its number and its text."""

    number: int
    address: str


def pick(conn: Connection, request: AddressRequest, *, patient: bool) -> tuple[Chosen, ...]:
    """Return free addresses, in the order of their numbers; their rows stay locked until the transaction ends.

    Raise TryPatiently if the quick way does not suffice, and NotEnoughAddresses if the patient way does not.
    """
    return _patiently(conn, request) if patient else _quickly(conn, request)


def _quickly(conn: Connection, request: AddressRequest) -> tuple[Chosen, ...]:
    taken = _read(conn, _best(request).with_for_update(key_share=True, skip_locked=True))
    locks.note_others(conn)
    still = _still_free(conn, taken, request)
    if not _enough(still, request):
        raise MustWait()
    return still


def _patiently(conn: Connection, request: AddressRequest) -> tuple[Chosen, ...]:
    locks.lock_host_allocation(conn)
    for _ in range(PATIENT_LOOKS):
        candidates = _read(conn, _best(request))
        if not _enough(candidates, request):
            raise Short(request)
        lock(conn, [candidate.number for candidate in candidates])
        still = _still_free(conn, candidates, request)
        if len(still) == len(candidates):
            return still
    raise Busy("The floating IPs are being booked by others right now; try again shortly")


def lock(conn: Connection, numbers: Collection[int]) -> None:
    """Lock the rows of addresses, in the order of their numbers."""
    rows = select(floating_ips.c.number).where(_among(sorted(numbers)))
    conn.execute(locks.ordered(rows, floating_ips.c.number))


def free(conn: Connection, request: AddressRequest) -> tuple[Chosen, ...]:
    """Return all free addresses, best first. Raise Short if a required one is not free."""
    known = tuple(Chosen(*row) for row in conn.execute(_ranked(request)))
    if not {*request.required} <= {one.address for one in known}:
        raise Short(request)
    return known


def _enough(chosen: Sequence[Chosen], request: AddressRequest) -> bool:
    numbers, spelled = {one.number for one in chosen}, {one.address for one in chosen}
    return len(chosen) >= request.amount and set(request.must) <= numbers and set(request.required) <= spelled


def _read(conn: Connection, query: Select[int, str]) -> tuple[Chosen, ...]:
    return tuple(sorted((Chosen(*row) for row in conn.execute(query)), key=lambda one: one.number))


def _best(request: AddressRequest) -> Select[int, str]:
    return _ranked(request).limit(request.amount)


def _ranked(request: AddressRequest) -> Select[int, str]:
    """Return the free addresses: required ones first, then preferred ones."""
    number, address = floating_ips.c.number, floating_ips.c.address
    required = [bindparam(None, one, INET) for one in request.required]
    order = (
        *([number.in_(request.must).desc()] if request.must else []),
        *([address.in_(required).desc()] if required else []),
        *([number.in_(request.keep).desc()] if request.keep else []),
        number,
    )
    return select(number, func.host(address)).where(_free(request)).order_by(*order)


def _still_free(conn: Connection, chosen: Sequence[Chosen], request: AddressRequest) -> tuple[Chosen, ...]:
    """Return the addresses that are still free and registered; one may have been removed before its row was locked."""
    query = select(floating_ips.c.number, func.host(floating_ips.c.address))
    return _read(conn, query.where(_free(request), _among([one.number for one in chosen])))


def _suits(request: AddressRequest) -> ColumnElement[bool]:
    return and_(
        floating_ips.c.network_id == request.network_id,
        floating_ips.c.removed_at.is_(None),
        floating_ips.c.number.not_in(request.without),
    )


def _free(request: AddressRequest) -> ColumnElement[bool]:
    return and_(_suits(request), ~_taken(request))


def _taken(request: AddressRequest) -> ColumnElement[bool]:
    held = floating_allocations
    return exists().where(
        held.c.number == floating_ips.c.number,
        held.c.during.overlaps(Range(request.window.start, request.window.end)),
        held.c.reservation_id.not_in(request.own),
        in_force(held),
    )


def _among(numbers: Sequence[int]) -> ColumnElement[bool]:
    return in_array(floating_ips.c.number, numbers)


def shortage(conn: Connection, request: AddressRequest) -> tuple[Shortage, tuple[str, ...]]:
    """Return the explanation of a shortage, and the required addresses that are not available."""
    count = select(func.count(), func.count().filter(~_taken(request))).select_from(floating_ips)
    matching, free = conn.execute(count.where(_suits(request))).one()
    spelled = set(conn.scalars(select(func.host(floating_ips.c.address)).where(_free(request))))
    missing = tuple(one for one in request.required if one not in spelled)
    if missing or matching < request.amount:
        return Shortage(matching, free, None), missing
    until = request.window.end + HORIZON
    held = floating_allocations
    rows = conn.execute(
        select(held.c.number, func.lower(held.c.during), func.upper(held.c.during))
        .join(floating_ips, floating_ips.c.number == held.c.number)
        .where(_suits(request), in_force(held), held.c.reservation_id.not_in(request.own))
        .where(held.c.during.overlaps(Range(request.window.start, until)))
        .order_by(func.lower(held.c.during))
        .limit(HORIZON_ROWS)
    )
    taken = [(number, Period(start, end)) for number, start, end in rows]
    known_until = taken[-1][1].start if len(taken) == HORIZON_ROWS else until
    return Shortage(matching, free, earliest_fit(matching, taken, request.window, request.amount, known_until)), ()
