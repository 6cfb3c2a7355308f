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
from climate.store.allocation.hosts import HORIZON, HORIZON_ROWS, Shortage, TryPatiently, earliest_fit
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


def pick(conn: Connection, wanted: AddressRequest, *, patient: bool) -> tuple[Chosen, ...]:
    """Return free addresses, in the order of their numbers; their rows stay locked until the transaction ends.

    Raise TryPatiently if the quick way does not suffice, and NotEnoughAddresses if the patient way does not.
    """
    return _patiently(conn, wanted) if patient else _quickly(conn, wanted)


def _quickly(conn: Connection, wanted: AddressRequest) -> tuple[Chosen, ...]:
    taken = _read(conn, _best(wanted).with_for_update(key_share=True, skip_locked=True))
    locks.note_others(conn)
    still = _still_free(conn, taken, wanted)
    if not _enough(still, wanted):
        raise TryPatiently()
    return still


def _patiently(conn: Connection, wanted: AddressRequest) -> tuple[Chosen, ...]:
    locks.hosts_alone(conn)
    for _ in range(PATIENT_LOOKS):
        candidates = _read(conn, _best(wanted))
        if not _enough(candidates, wanted):
            raise Short(wanted)
        lock(conn, [one.number for one in candidates])
        still = _still_free(conn, candidates, wanted)
        if len(still) == len(candidates):
            return still
    raise Busy("The floating IPs are being booked by others right now; try again shortly")


def lock(conn: Connection, numbers: Collection[int]) -> None:
    """Lock the rows of addresses, in the order of their numbers."""
    rows = select(floating_ips.c.number).where(_among(sorted(numbers)))
    conn.execute(locks.ordered(rows, floating_ips.c.number))


def free(conn: Connection, wanted: AddressRequest) -> tuple[Chosen, ...]:
    """Return all free addresses, best first. Raise Short if a required one is not free."""
    known = tuple(Chosen(*row) for row in conn.execute(_ranked(wanted)))
    if not {*wanted.required} <= {one.address for one in known}:
        raise Short(wanted)
    return known


def _enough(chosen: Sequence[Chosen], wanted: AddressRequest) -> bool:
    numbers, spelled = {one.number for one in chosen}, {one.address for one in chosen}
    return len(chosen) >= wanted.amount and set(wanted.must) <= numbers and set(wanted.required) <= spelled


def _read(conn: Connection, query: Select[int, str]) -> tuple[Chosen, ...]:
    return tuple(sorted((Chosen(*row) for row in conn.execute(query)), key=lambda one: one.number))


def _best(wanted: AddressRequest) -> Select[int, str]:
    return _ranked(wanted).limit(wanted.amount)


def _ranked(wanted: AddressRequest) -> Select[int, str]:
    """Return the free addresses: required ones first, then preferred ones."""
    number, address = floating_ips.c.number, floating_ips.c.address
    required = [bindparam(None, one, INET) for one in wanted.required]
    order = (
        *([number.in_(wanted.must).desc()] if wanted.must else []),
        *([address.in_(required).desc()] if required else []),
        *([number.in_(wanted.keep).desc()] if wanted.keep else []),
        number,
    )
    return select(number, func.host(address)).where(_free(wanted)).order_by(*order)


def _still_free(conn: Connection, chosen: Sequence[Chosen], wanted: AddressRequest) -> tuple[Chosen, ...]:
    """Return the addresses that are still free and registered; one may have been removed before its row was locked."""
    query = select(floating_ips.c.number, func.host(floating_ips.c.address))
    return _read(conn, query.where(_free(wanted), _among([one.number for one in chosen])))


def _suits(wanted: AddressRequest) -> ColumnElement[bool]:
    return and_(
        floating_ips.c.network_id == wanted.network_id,
        floating_ips.c.removed_at.is_(None),
        floating_ips.c.number.not_in(wanted.without),
    )


def _free(wanted: AddressRequest) -> ColumnElement[bool]:
    return and_(_suits(wanted), ~_taken(wanted))


def _taken(wanted: AddressRequest) -> ColumnElement[bool]:
    held = floating_allocations
    return exists().where(
        held.c.number == floating_ips.c.number,
        held.c.during.overlaps(Range(wanted.window.start, wanted.window.end)),
        held.c.reservation_id.not_in(wanted.own),
        in_force(held),
    )


def _among(numbers: Sequence[int]) -> ColumnElement[bool]:
    return in_array(floating_ips.c.number, numbers)


def shortage(conn: Connection, wanted: AddressRequest) -> tuple[Shortage, tuple[str, ...]]:
    """Return the explanation of a shortage, and the required addresses that are not available."""
    count = select(func.count(), func.count().filter(~_taken(wanted))).select_from(floating_ips)
    matching, free = conn.execute(count.where(_suits(wanted))).one()
    spelled = set(conn.scalars(select(func.host(floating_ips.c.address)).where(_free(wanted))))
    missing = tuple(one for one in wanted.required if one not in spelled)
    if missing or matching < wanted.amount:
        return Shortage(matching, free, None), missing
    until = wanted.window.end + HORIZON
    held = floating_allocations
    rows = conn.execute(
        select(held.c.number, func.lower(held.c.during), func.upper(held.c.during))
        .join(floating_ips, floating_ips.c.number == held.c.number)
        .where(_suits(wanted), in_force(held), held.c.reservation_id.not_in(wanted.own))
        .where(held.c.during.overlaps(Range(wanted.window.start, until)))
        .order_by(func.lower(held.c.during))
        .limit(HORIZON_ROWS)
    )
    taken = [(number, Period(start, end)) for number, start, end in rows]
    known_until = taken[-1][1].start if len(taken) == HORIZON_ROWS else until
    return Shortage(matching, free, earliest_fit(matching, taken, wanted.window, wanted.amount, known_until)), ()
