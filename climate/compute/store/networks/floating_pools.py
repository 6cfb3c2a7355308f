"""Pools of floating addresses, and the addresses in them."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, text

_ALONE = text("LOCK TABLE compute_floating_pools IN SHARE ROW EXCLUSIVE MODE")

_LOCK = text("SELECT FROM compute_floating_pools WHERE id = CAST(:id AS uuid) FOR UPDATE")

_KEEP = text("SELECT FROM compute_floating_pools WHERE id = CAST(:id AS uuid) FOR KEY SHARE")

_POOLS = text("""
    SELECT p.id::text, p.subnet_id::text, p.name, p.cidr::text, host(p.gateway) AS gateway, p.interface, p.created_at,
           count(f.id) AS addresses, count(f.id) FILTER (WHERE f.project_id IS NULL) AS free
    FROM compute_floating_pools p LEFT JOIN compute_floating_addresses f ON f.pool_id = p.id
    GROUP BY p.id ORDER BY p.created_at, p.name
""")

_RANGES = text("""
    SELECT pool_id::text, host(min(address)) AS first, host(max(address)) AS last
    FROM (SELECT pool_id, address, address - inet '0.0.0.0' - row_number() OVER (PARTITION BY pool_id ORDER BY address)
                 AS island
          FROM compute_floating_addresses WHERE reservation IS NULL AND NOT single) AS numbered
    GROUP BY pool_id, island ORDER BY min(address)
""")

_MAKE_POOL = text("""
    INSERT INTO compute_floating_pools (id, name, cidr, gateway, interface)
    VALUES (coalesce(CAST(:id AS uuid), gen_random_uuid()), :name, CAST(:cidr AS cidr), CAST(:gateway AS inet),
            :interface)
    ON CONFLICT DO NOTHING RETURNING id::text
""")

_DROP_POOL = text("DELETE FROM compute_floating_pools WHERE id = CAST(:id AS uuid)")

# Addresses that are locked here cannot be allocated until the transaction ends.
_HELD_OF = text("""
    SELECT host(address) FROM (SELECT address, project_id FROM compute_floating_addresses
                               WHERE pool_id = CAST(:id AS uuid)
                                 AND address BETWEEN CAST(:first AS inet) AND CAST(:last AS inet) FOR UPDATE) AS locked
    WHERE project_id IS NOT NULL ORDER BY address LIMIT 1
""")

_REMOVE = text("""
    DELETE FROM compute_floating_addresses
    WHERE pool_id = CAST(:id AS uuid) AND address BETWEEN CAST(:first AS inet) AND CAST(:last AS inet)
""")

_ADD = text("""
    INSERT INTO compute_floating_addresses AS f (pool_id, address)
    SELECT CAST(:pool_id AS uuid), a.address FROM unnest(CAST(:addresses AS inet[])) AS a(address)
    ON CONFLICT (address) DO UPDATE SET single = false WHERE f.single AND f.pool_id = excluded.pool_id
    RETURNING host(address)
""")


def pools(conn: Connection) -> list[dict[str, Any]]:
    """Return the pools, with their numbers of addresses and of free ones."""
    return [dict(row) for row in conn.execute(_POOLS).mappings()]


def ranges(conn: Connection) -> dict[str, list[tuple[str, str]]]:
    """Return pool -> its ranges of addresses, first and last."""
    result: dict[str, list[tuple[str, str]]] = {}
    for row in conn.execute(_RANGES):
        result.setdefault(row.pool_id, []).append((row.first, row.last))
    return result


def make_pool(conn: Connection, name: str, cidr: str, wanted: Mapping[str, str | None]) -> str | None:
    """Create a pool without addresses; return its id, or None if the name or range is taken.

    `wanted`: optionally id, gateway, interface.
    """
    given = {"id": None, "gateway": None, "interface": None, **wanted, "name": name, "cidr": cidr}
    made: str | None = conn.execute(_MAKE_POOL, given).scalar()
    return made


def alone(conn: Connection) -> None:
    """Serialize the creation of pools until the end of the transaction."""
    conn.execute(_ALONE)


def lock(conn: Connection, pool_id: str) -> None:
    """Serialize additions to a pool until the end of the transaction."""
    conn.execute(_LOCK, {"id": pool_id})


def keep(conn: Connection, pool_id: str) -> None:
    """Prevent the deletion of a pool until the end of the transaction."""
    conn.execute(_KEEP, {"id": pool_id})


def drop_pool(conn: Connection, pool_id: str) -> None:
    """Delete a pool without addresses."""
    conn.execute(_DROP_POOL, {"id": pool_id})


def add(conn: Connection, pool_id: str, addresses: Sequence[str]) -> list[str]:
    """Add addresses to a pool; return those that were in none."""
    return list(conn.execute(_ADD, {"pool_id": pool_id, "addresses": list(addresses)}).scalars())


def remove(conn: Connection, pool_id: str, first: str, last: str) -> str | None:
    """Remove a range of addresses from a pool; return None, or an allocated one, which prevents the removal."""
    given = {"id": pool_id, "first": first, "last": last}
    held: str | None = conn.execute(_HELD_OF, given).scalar()
    if held is None:
        conn.execute(_REMOVE, given)
    return held
