"""Pools of reservations: promised and empty at first, then lent."""

import json
from collections.abc import Mapping

from sqlalchemy import Connection, delete, or_, select, text

from climate.compute.errors import Busy
from climate.compute.models.aggregate import POOL
from climate.compute.models.node import OWNER, PROMISED, WANTED
from climate.compute.store.tables.nodes import aggregates

FENCE = 1
"""Lower than every token, so that the first claim on the pool succeeds. Above zero, so that no API changes the pool."""

MOST_TRIES = 3

# One statement: a concurrent lend has the pool's row locked, and afterwards it is no longer promised.
_PROMISE = text(f"""
    WITH made AS (
        INSERT INTO compute_aggregates AS a (name, metadata, fence) VALUES (:pool, CAST(:metadata AS jsonb), {FENCE})
        ON CONFLICT (name) DO UPDATE SET metadata = excluded.metadata, updated_at = clock_timestamp()
        WHERE a.metadata ? '{PROMISED}' AND a.metadata <> excluded.metadata
        RETURNING id)
    SELECT id FROM made UNION ALL SELECT id FROM compute_aggregates WHERE name = :pool LIMIT 1
""")

INSERT = f"""
    INSERT INTO compute_aggregates (name, metadata, fence)
    SELECT key, value, {FENCE} FROM jsonb_each(CAST(:promised_pools AS jsonb))
    ON CONFLICT (name) DO NOTHING RETURNING name, id
"""
"""Statement that creates pools, for use in other statements."""


def promise(conn: Connection, pool: str, wanted: Mapping[str, str]) -> int:
    """Insert a promised pool, or update its requirements; return the id of its aggregate."""
    metadata = _metadata(wanted)
    for _ in range(MOST_TRIES):
        value: int | None = conn.execute(_PROMISE, {"pool": pool, "metadata": json.dumps(metadata)}).scalar()
        if value is not None:
            return value
        # Another connection has inserted the row just now; only a further statement sees it.
    raise Busy(f"Aggregate {pool} is being changed; try again shortly")


def inserted(wanted: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """Return the parameters of INSERT for these pools."""
    return {"promised_pools": json.dumps({pool: _metadata(wish) for pool, wish in wanted.items()})}


def forget(conn: Connection, pool: str) -> None:
    """Delete a pool that is only promised."""
    conn.execute(delete(aggregates).where(aggregates.c.name == pool, aggregates.c.metadata.has_key(PROMISED)))


def listed(conn: Connection) -> dict[str, tuple[int, Mapping[str, str] | None]]:
    """Return all pools of reservations by name: the id, and the requirements of a promised one."""
    own = aggregates.c
    is_promised_or_lent = or_(own.metadata.has_key(PROMISED), own.metadata.has_key(OWNER))
    query = select(own.id, own.name, own.metadata).where(own.kind == POOL, own.fence > 0, is_promised_or_lent)
    return {name: (number, _requirements(metadata)) for number, name, metadata in conn.execute(query)}


def _metadata(wanted: Mapping[str, str]) -> dict[str, str]:
    return {PROMISED: "true", **{f"{WANTED}{key}": value for key, value in wanted.items()}}


def _requirements(metadata: Mapping[str, str]) -> Mapping[str, str] | None:
    if PROMISED not in metadata:
        return None
    return {key.removeprefix(WANTED): value for key, value in metadata.items() if key.startswith(WANTED)}
