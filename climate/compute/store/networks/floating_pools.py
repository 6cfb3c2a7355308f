"""Pools of floating addresses, and the addresses in them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, Text, cast, delete, func, select, text
from sqlalchemy.dialects.postgresql import insert

from climate.compute.store.tables.networks import floating_addresses, floating_pools

_ALONE = text("LOCK TABLE compute_floating_pools IN SHARE ROW EXCLUSIVE MODE")

_RANGES = text("""
    SELECT pool_id::text, host(min(address)) AS first, host(max(address)) AS last
    FROM (SELECT pool_id, address, address - inet '0.0.0.0' - row_number() OVER (PARTITION BY pool_id ORDER BY address)
                 AS island
          FROM compute_floating_addresses WHERE reservation IS NULL AND NOT single) AS numbered
    GROUP BY pool_id, island ORDER BY min(address)
""")

_ADD = text("""
    INSERT INTO compute_floating_addresses AS f (pool_id, address)
    SELECT CAST(:pool_id AS uuid), a.address FROM unnest(CAST(:addresses AS inet[])) AS a(address)
    ON CONFLICT (address) DO UPDATE SET single = false WHERE f.single AND f.pool_id = excluded.pool_id
    RETURNING host(address)
""")


@dataclass(frozen=True, slots=True)
class PoolRow:
    """A pool with its numbers of addresses, and of those that are not allocated. Times UTC."""

    id: str
    subnet_id: str
    name: str
    cidr: str
    gateway: str | None
    interface: str | None
    created_at: datetime
    addresses: int
    free: int


def pools(conn: Connection) -> list[PoolRow]:
    """Return the pools, with their numbers of addresses and of free ones."""
    pool = floating_pools.c
    free = func.count(floating_addresses.c.id).filter(floating_addresses.c.project_id.is_(None))
    query = (
        select(
            pool.id,
            pool.subnet_id,
            pool.name,
            cast(pool.cidr, Text),
            func.host(pool.gateway),
            pool.interface,
            pool.created_at,
            func.count(floating_addresses.c.id),
            free,
        )
        .outerjoin(floating_addresses, floating_addresses.c.pool_id == pool.id)
        .group_by(pool.id)
        .order_by(pool.created_at, pool.name)
    )
    return [PoolRow(*row) for row in conn.execute(query)]


def ranges(conn: Connection) -> dict[str, list[tuple[str, str]]]:
    """Return pool -> its ranges of addresses, first and last."""
    result: dict[str, list[tuple[str, str]]] = {}
    for row in conn.execute(_RANGES):
        result.setdefault(row.pool_id, []).append((row.first, row.last))
    return result


def create_pool(conn: Connection, name: str, cidr: str, wanted: Mapping[str, str | None]) -> str | None:
    """Create a pool without addresses; return its id, or None if the name or range is taken.

    `wanted`: optionally id, gateway, interface.
    """
    given = {key: wanted[key] for key in ("id", "gateway", "interface") if wanted.get(key) is not None}
    row = insert(floating_pools).values(name=name, cidr=cidr, **given)
    pool_id: str | None = conn.scalar(row.on_conflict_do_nothing().returning(floating_pools.c.id))
    return pool_id


def alone(conn: Connection) -> None:
    """Serialize the creation of pools until the end of the transaction."""
    conn.execute(_ALONE)


def lock(conn: Connection, pool_id: str) -> None:
    """Serialize changes of a pool's addresses until the end of the transaction.

    New addresses of projects and reservations wait as well; an allocation of an address of the pool does not.
    """
    # Whoever writes an address twice checks the foreign key of its pool again, with the address locked. FOR UPDATE
    # would make that check wait for this transaction, which waits for the address.
    conn.execute(select(floating_pools.c.id).where(floating_pools.c.id == pool_id).with_for_update(key_share=True))


def drop_pool(conn: Connection, pool_id: str) -> None:
    """Delete a pool without addresses, which is locked."""
    conn.execute(delete(floating_pools).where(floating_pools.c.id == pool_id))


def add(conn: Connection, pool_id: str, addresses: Sequence[str]) -> list[str]:
    """Add addresses to a pool, which is locked; return those that were in none."""
    return list(conn.execute(_ADD, {"pool_id": pool_id, "addresses": list(addresses)}).scalars())


def remove(conn: Connection, pool_id: str, first: str, last: str) -> str | None:
    """Remove a range of addresses from a pool, which is locked.

    Return None, or an allocated address, which prevents the removal.
    """
    own = floating_addresses.c
    inside = (own.pool_id == pool_id, own.address.between(first, last))
    is_free = own.project_id.is_(None)
    # Wait for those that are being allocated, and then look which of them are: nobody allocates the others.
    conn.execute(select(own.id).where(*inside, is_free).order_by(own.address).with_for_update())
    query = select(func.host(own.address)).where(*inside, ~is_free).order_by(own.address).limit(1)
    held: str | None = conn.scalar(query)
    if held is None:
        conn.execute(delete(floating_addresses).where(*inside, is_free))
    return held
