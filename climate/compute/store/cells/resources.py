"""Capacity, flavors, images, networks and reservations of this cell, for reports to other cells."""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import Connection, Text, cast, or_, select, text

from climate.compute.store.columns import in_array
from climate.compute.store.tables import servers as tables
from climate.compute.store.tables.networks import networks
from climate.compute.store.tables.nodes import aggregates

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
    flavor = tables.flavors.c
    return [
        (ram, disk) for ram, disk in conn.execute(select(flavor.ram_mb, (flavor.disk_gb + flavor.ephemeral_gb) * 1024))
    ]


def offers(conn: Connection) -> dict[str, list[str]]:
    """Return the names of flavors and images, and the reservations that accept servers.

    A kind with more than MOST_NAMES names is left out.
    """
    images, flavors = tables.images.c, tables.flavors.c
    owner = aggregates.c.metadata.has_key("blazar:owner")
    names = {
        "flavors": select(flavors.name).order_by(flavors.name),
        "images": select(images.name).distinct().where(images.status == "active").order_by(images.name),
        "reservations": select(aggregates.c.name).where(aggregates.c.kind == "pool", owner).order_by(aggregates.c.name),
    }
    values = {kind: list(conn.scalars(query.limit(MOST_NAMES + 1))) for kind, query in names.items()}
    return {kind: names for kind, names in values.items() if len(names) <= MOST_NAMES}


def images_named(conn: Connection, name: str, project_id: str) -> list[str]:
    """Return the ids of up to two images of this name that the project may use, newest first."""
    own = tables.images.c
    is_usable = or_(own.visibility.in_(("public", "community")), own.project_id == project_id)
    query = select(own.id).where(own.name == name, own.status == "active", is_usable)
    return list(conn.scalars(query.order_by(own.created_at.desc(), own.id).limit(2)))


def labels(conn: Connection, ids: Sequence[str]) -> dict[str, str]:
    """Return network id -> label, of existing networks."""
    query = select(networks.c.id, networks.c.label).where(in_array(cast(networks.c.id, Text), ids))
    return {row.id: row.label for row in conn.execute(query)}


def labelled(conn: Connection, wanted: Sequence[str]) -> dict[str, str]:
    """Return label -> id of the oldest network that has it; those that projects created do not count."""
    named = in_array(networks.c.label, wanted)
    query = (
        select(networks.c.label, networks.c.id)
        .where(named, ~networks.c.by_project)
        .order_by(networks.c.created_at.desc())
    )
    return {row.label: row.id for row in conn.execute(query)}


def existing_servers(conn: Connection, ids: Sequence[str]) -> list[str]:
    """Return those of these servers that are in this cell."""
    own = tables.servers.c.id
    return list(conn.scalars(select(own).where(in_array(cast(own, Text), ids))))
