"""Decisions of the scheduler, kept as long as one of their servers exists."""

from collections.abc import Mapping
from datetime import datetime

from sqlalchemy import Connection, insert, text

from climate.compute.store.tables.servers import decisions

_ADD = insert(decisions)

_OF = text("""
    SELECT d.build_id, d.server_id::text, d.made_at, d.body
    FROM (SELECT id, build_id FROM compute_servers WHERE id = CAST(:server_id AS uuid)
          UNION ALL
          SELECT server_id, build_id FROM compute_zone_servers WHERE server_id = CAST(:server_id AS uuid)) AS s
    JOIN compute_decisions d ON d.build_id = s.build_id AND (d.server_id IS NULL OR d.server_id = s.id)
    ORDER BY d.id
""")

# A range of ids at a random position, so that each call reads so many rows and no more.
_FORGET = text("""
    WITH span AS (SELECT min(id) AS first, max(id) AS last FROM compute_decisions),
         start AS (SELECT first + floor(random() * greatest(0, last - first - :window + 2))::bigint AS id FROM span)
    DELETE FROM compute_decisions d
    WHERE d.id >= (SELECT id FROM start) AND d.id < (SELECT id FROM start) + :window
      AND NOT EXISTS (SELECT FROM compute_servers s
                      WHERE s.build_id = d.build_id AND (d.server_id IS NULL OR d.server_id = s.id))
      AND (d.server_id IS NOT NULL
           OR NOT EXISTS (SELECT FROM compute_zone_servers z WHERE z.build_id = d.build_id))
""")


def add(conn: Connection, build_id: str, server_id: str | None, now: datetime, body: Mapping[str, object]) -> None:
    """Insert a decision for one server, or for all of its build."""
    conn.execute(_ADD, {"build_id": build_id, "server_id": server_id, "made_at": now, "body": dict(body)})


def of(conn: Connection, server_id: str) -> list[Mapping[str, object]]:
    """Return the decisions about a server (build_id, server_id, made_at, body), oldest first."""
    return [dict(row) for row in conn.execute(_OF, {"server_id": server_id}).mappings()]


def forget(conn: Connection, window: int) -> int:
    """Delete decisions about deleted servers among `window` consecutive rows; return their number."""
    return conn.execute(_FORGET, {"window": window}).rowcount
