"""Messages to the allocators of networks: written with the change, kept until the network's host has applied it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, delete, func, select, text

from climate.compute.store.tables.networks import network_messages, networks

_WRITE = text("""
    INSERT INTO compute_network_messages (network_id, method, body)
    SELECT CAST(m.network_id AS uuid), m.method, CAST(m.body AS jsonb)
    FROM unnest(CAST(:networks AS text[]), CAST(:methods AS text[]), CAST(:bodies AS text[]))
         WITH ORDINALITY AS m(network_id, method, body, place)
    WHERE EXISTS (SELECT FROM compute_networks n WHERE n.id = CAST(m.network_id AS uuid))
    ORDER BY m.place
""")

# A host that is down is not woken: the host that claims its networks is.
_RING = text("""
    WITH due AS (SELECT m.id, n.host
                 FROM compute_network_messages m
                 JOIN compute_networks n ON n.id = m.network_id
                 JOIN compute_network_hosts h ON h.host = n.host
                 WHERE (m.rung_at IS NULL OR m.rung_at < CAST(:now AS timestamptz) - make_interval(secs => :again))
                   AND h.beat_at >= CAST(:now AS timestamptz) - make_interval(secs => :down)
                 ORDER BY m.id LIMIT 1000 FOR NO KEY UPDATE OF m SKIP LOCKED),
    rung AS (UPDATE compute_network_messages m SET rung_at = :now FROM due WHERE m.id = due.id RETURNING due.host)
    SELECT DISTINCT host FROM rung
""")


@dataclass(frozen=True, slots=True)
class AllocatorMessage:
    """A message to an allocator about one change."""

    id: int
    network_id: str
    method: str
    body: Mapping[str, Any]


def write(conn: Connection, messages: Sequence[tuple[str, str, Mapping[str, object]]]) -> None:
    """Write messages to the allocators of networks: (network, method, body) of each change, in order."""
    if messages:
        networks, methods, bodies = zip(*messages, strict=True)
        given = {"networks": list(networks), "methods": list(methods), "bodies": [json.dumps(body) for body in bodies]}
        conn.execute(_WRITE, given)


def of_host(conn: Connection, host: str) -> list[AllocatorMessage]:
    """Return the messages to the allocator of a host, in the order of the changes; if many, some of each network."""
    own = network_messages.c
    query = (
        select(own.id, own.network_id, own.method, own.body)
        .join(networks, networks.c.id == own.network_id)
        .where(networks.c.host == host)
        .order_by(func.row_number().over(partition_by=own.network_id, order_by=own.id), own.id)
        .limit(1000)
    )
    return sorted((AllocatorMessage(*row) for row in conn.execute(query)), key=lambda message: message.id)


def done(conn: Connection, message_id: int) -> None:
    """Delete a message that its allocator has applied."""
    conn.execute(delete(network_messages).where(network_messages.c.id == message_id))


def to_ring(conn: Connection, now: datetime, again: float, down: float) -> list[str]:
    """Return live hosts with messages, each at most every `again` seconds; live: heard within `down` seconds."""
    return list(conn.execute(_RING, {"now": now, "again": again, "down": down}).scalars())
