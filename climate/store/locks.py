"""Row locks of the engine, taken in one order (docs/locks.md).

No transaction waits for a lock that precedes one that it holds, and rows of one table are locked in ascending order. A
transaction that needs a host below one that it holds takes its row if it is free. Otherwise it restarts and locks all
needed hosts first: `HostsInUse`.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import TypeVarTuple
from uuid import UUID
from weakref import ref

from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    Connection,
    CursorResult,
    Select,
    Table,
    Transaction,
    Uuid,
    bindparam,
    func,
    select,
)
from sqlalchemy.dialects.postgresql import ARRAY

from climate.database import advisory_locks
from climate.database.advisory_locks import Subject
from climate.domain.errors import Busy
from climate.store.tables.hosts import hosts, windows
from climate.store.tables.leases import leases

Columns = TypeVarTuple("Columns")

_ALONE = select(func.pg_advisory_xact_lock(advisory_locks.HOSTS))
_STATE = "climate.store.locks"


class HostsInUse(Busy):
    """The hosts are being booked by others right now; try again shortly"""

    def __init__(self, numbers: Collection[int]) -> None:
        super().__init__()
        self.numbers = frozenset(numbers)


@dataclass
class _Held:
    """Hosts that a transaction has locked, and those that it locks together with the first one."""

    transaction: ref[Transaction] | None
    numbers: set[int] = field(default_factory=set)
    ahead: frozenset[int] = frozenset()
    has_more: bool = False
    """True if it holds other locks for which the holder of a resource may wait."""


def ordered(query: Select[*Columns], key: Column[object], *, skip_locked: bool = False) -> Select[*Columns]:
    """Return the query with the rows of the table of `key` locked in its order, until the transaction ends."""
    locked = query.order_by(None).order_by(key)
    return locked.with_for_update(of=key.table, key_share=True, skip_locked=skip_locked)


def expect_hosts(conn: Connection, numbers: Collection[int]) -> None:
    """Have the transaction lock these hosts together with the first one that it locks."""
    _held(conn).ahead = frozenset(numbers)


def note_hosts(conn: Connection, numbers: Iterable[int]) -> None:
    """Record that the transaction holds the rows of these hosts, which it has locked without waiting."""
    _held(conn).numbers.update(numbers)


def lock_hosts(conn: Connection, numbers: Collection[int]) -> None:
    """Lock the rows of hosts, including removed ones. Raise HostsInUse if that requires a wait out of order."""
    held = _held(conn)
    new = (set(numbers) if held.numbers or not numbers else held.ahead.union(numbers)) - held.numbers
    if not new:
        return
    if not held.numbers or min(new) > max(held.numbers):
        conn.execute(_HOSTS, {"ids": sorted(new)})
    elif set(conn.scalars(_FREE_HOSTS, {"ids": sorted(new)})) != new:
        raise HostsInUse(held.numbers | new)
    held.numbers |= new


def read_hosts(conn: Connection, query: Select[*Columns], numbers: Collection[int]) -> CursorResult[*Columns]:
    """Lock the rows of hosts as `lock_hosts`, and return those of a query of `hosts` for `:ids`."""
    held, given = _held(conn), {"ids": sorted(numbers)}
    if held.numbers or not held.ahead.issubset(numbers):
        lock_hosts(conn, numbers)
        return conn.execute(query, given)
    rows = conn.execute(ordered(query, hosts.c.id), given)
    held.numbers.update(numbers)
    return rows


def await_host(conn: Connection, number: int) -> None:
    """Wait until nobody holds the row of a host, in a transaction of its own that holds nothing afterwards.

    All that wait for the same holder continue at once.
    """
    conn.execute(_AWAITED, {"id": number})


def note_others(conn: Connection) -> None:
    """Record that the transaction holds rows of addresses or inventories, which it has locked without waiting."""
    _held(conn).has_more = True


def lock_host_allocation(conn: Connection) -> None:
    """Keep other allocations that wait for hosts from beginning until the transaction ends.

    Call this after all leases are locked, and before any host is.
    """
    _held(conn).has_more = True
    conn.execute(_ALONE)


def _held(conn: Connection) -> _Held:
    transaction = conn.get_transaction()
    held: _Held | None = conn.info.get(_STATE)
    # The reference to a transaction that is gone is None too, as is a transaction that has not begun yet.
    if held is None or transaction is None or held.transaction is None or held.transaction() is not transaction:
        held = conn.info[_STATE] = _Held(None if transaction is None else ref(transaction))
    return held


def lock_leases(conn: Connection, ids: Iterable[UUID]) -> list[UUID]:
    """Lock the rows of leases; return the ids of those that are not deleted, in order."""
    return list(conn.scalars(_LEASES, {"ids": list(ids)}))


def lock_windows(conn: Connection, *conditions: ColumnElement[bool]) -> list[UUID]:
    """Lock the rows of the maintenance windows that meet the conditions; return their ids."""
    return list(conn.scalars(ordered(select(windows.c.id).where(*conditions), windows.c.id)))


def lock_object(conn: Connection, subject: Subject, thing: object) -> None:
    """Lock an object without a row until the transaction ends."""
    conn.execute(select(func.pg_advisory_xact_lock(func.hashtextextended(subject.named(thing), 0))))


def lock_resource(conn: Connection, resource_id: str) -> None:
    """Lock a resource until the transaction ends: wait if no other lock is held, else raise Busy if it is taken."""
    held = _held(conn)
    if not held.numbers and not held.has_more:
        held.has_more = True
        lock_object(conn, Subject.RESOURCE, resource_id)
        return
    free = func.pg_try_advisory_xact_lock(func.hashtextextended(Subject.RESOURCE.named(resource_id), 0))
    if not conn.scalar(select(free)):
        raise Busy(f"{resource_id} is being reserved by another request; try again shortly")


def _known(table: Table, ids: object) -> Select[object]:
    return select(table.c.id).where(table.c.id == func.any(ids))


_SOME_HOSTS = _known(hosts, bindparam("ids", type_=ARRAY(BigInteger)))
_HOSTS = ordered(_SOME_HOSTS, hosts.c.id)
_FREE_HOSTS = ordered(_SOME_HOSTS, hosts.c.id, skip_locked=True)
# The commit of a released lock does not wait for the disk.
_AT_ONCE = func.set_config("synchronous_commit", "off", True)
_HOST = select(hosts.c.id, _AT_ONCE).where(hosts.c.id == bindparam("id", type_=BigInteger))
_AWAITED = _HOST.with_for_update(read=True)
_LEASES = ordered(_known(leases, bindparam("ids", type_=ARRAY(Uuid))).where(~leases.c.gone), leases.c.id)
