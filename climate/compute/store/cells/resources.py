"""Capacity, flavors, images, networks and reservations of this cell, for reports to other cells."""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import Connection, text

MOST_NAMES = 2000
"""Maximum number of reported names of one kind; with more, none are reported."""

# Nodes of a lease or of its pool take no ordinary servers.
_FREE = text("""
    SELECT n.memory_mb, CASE WHEN o.open THEN n.memory_mb - n.reserved_ram_mb - n.used_ram_mb ELSE 0 END AS free_ram_mb,
           n.local_gb * 1024 AS disk_mb,
           CASE WHEN o.open
                THEN least(n.local_gb * 1024 - n.reserved_disk_mb - n.used_disk_mb, n.disk_least_gb * 1024)
                ELSE 0 END AS free_disk_mb
    FROM compute_nodes n JOIN compute_services v ON v.host = n.service_host
    CROSS JOIN LATERAL (SELECT n.pool IS NULL AND n.maintenance IS NULL AS open) o
    WHERE v.enabled AND n.present
""")

_SIZES = text("SELECT ram_mb, (disk_gb + ephemeral_gb) * 1024 AS disk_mb FROM compute_flavors")

_NAMES = {
    "flavors": text("SELECT name FROM compute_flavors ORDER BY name LIMIT :most"),
    "images": text("SELECT DISTINCT name FROM compute_images WHERE status = 'active' ORDER BY name LIMIT :most"),
    "reservations": text("""
        SELECT name FROM compute_aggregates WHERE kind = 'pool' AND metadata ? 'blazar:owner' ORDER BY name LIMIT :most
    """),
}

_IMAGES = text("""
    SELECT id::text FROM compute_images
    WHERE name = :name AND status = 'active' AND (visibility IN ('public', 'community') OR project_id = :project_id)
    ORDER BY created_at DESC, id LIMIT 2
""")

_LABELS = text("SELECT id::text, label FROM compute_networks WHERE id::text = ANY(CAST(:ids AS text[]))")

_LABELLED = text("""
    SELECT label, id::text FROM compute_networks WHERE label = ANY(CAST(:labels AS text[])) ORDER BY created_at DESC
""")

_SERVERS = text("SELECT id::text FROM compute_servers WHERE id::text = ANY(CAST(:ids AS text[]))")


class Free(NamedTuple):
    """The free capacity of one node, in MB."""

    ram_mb: int
    free_ram_mb: int
    disk_mb: int
    free_disk_mb: int


def free(conn: Connection) -> list[Free]:
    """Return the free capacity of each node for ordinary servers; none on nodes that take no such servers."""
    return [Free(*row) for row in conn.execute(_FREE)]


def sizes(conn: Connection) -> list[tuple[int, int]]:
    """Return (memory, disk) of each flavor, in MB."""
    return [(row.ram_mb, row.disk_mb) for row in conn.execute(_SIZES)]


def offers(conn: Connection) -> dict[str, list[str]]:
    """Return the names of flavors and images, and the reservations that accept servers.

    A kind with more than MOST_NAMES names is left out.
    """
    values = {
        kind: list(conn.execute(statement, {"most": MOST_NAMES + 1}).scalars()) for kind, statement in _NAMES.items()
    }
    return {kind: names for kind, names in values.items() if len(names) <= MOST_NAMES}


def images_named(conn: Connection, name: str, project_id: str) -> list[str]:
    """Return the ids of up to two images of this name that the project may use, newest first."""
    return list(conn.execute(_IMAGES, {"name": name, "project_id": project_id}).scalars())


def labels(conn: Connection, ids: Sequence[str]) -> dict[str, str]:
    """Return network id -> label, of existing networks."""
    return {row.id: row.label for row in conn.execute(_LABELS, {"ids": list(ids)})}


def labelled(conn: Connection, wanted: Sequence[str]) -> dict[str, str]:
    """Return label -> id of the oldest network that has it."""
    return {row.label: row.id for row in conn.execute(_LABELLED, {"labels": list(wanted)})}


def known_servers(conn: Connection, ids: Sequence[str]) -> list[str]:
    """Return those of these servers that are in this cell."""
    return list(conn.execute(_SERVERS, {"ids": list(ids)}).scalars())
