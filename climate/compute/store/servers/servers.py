"""Rows of servers."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from sqlalchemy import Connection, RowMapping, TextualSelect, and_, bindparam, column, func, select, text, update

from climate.compute.models.flavor import recorded
from climate.compute.models.server import RUNNING, Address, Room, Server
from climate.compute.store.columns import in_array, in_parameter
from climate.compute.store.nodes.availability_zones import ZONE_OF_NODE
from climate.compute.store.tables.nodes import nodes
from climate.compute.store.tables.servers import keypairs, servers

COLUMNS = f"""
    s.id::text, s.name, s.project_id, s.user_id, s.status, s.task, s.flavor, s.image_id::text, s.metadata, s.hints,
    s.zone, s.destination, s.access_ipv4, s.access_ipv6,
    s.build_id, s.launch_index, s.created_at, s.updated_at, s.launched_at, s.key_name, s.fault,
    s.task_image::text, s.tried, s.description, s.group_id::text, s.locked_by, s.locked_reason, s.old_flavor, s.before,
    s.shelved_image::text, s.task_details, s.config_drive, s.disk_config, s.vcpus, s.ram_mb, s.disk_mb, s.node_id,
    s.migration_id, s.tags, s.security_groups::text[] AS security_groups,
    n.name AS node, n.service_host, {ZONE_OF_NODE} AS node_zone,
    (SELECT json_agg(json_build_object('address', host(a.address), 'mac', v.mac, 'network_id', v.network_id,
                                       'label', w.label, 'floating', host(f.address)) ORDER BY v.place, a.address)
     FROM compute_vifs v JOIN compute_addresses a ON a.vif_id = v.id JOIN compute_networks w ON w.id = v.network_id
     LEFT JOIN compute_floating_addresses f ON f.fixed_network_id = a.network_id AND f.fixed_address = a.address
     WHERE v.server_id = s.id) AS addresses
"""

_NAMES = (
    *[
        "id",
        "name",
        "project_id",
        "user_id",
        "status",
        "task",
        "flavor",
        "image_id",
        "metadata",
        "hints",
        "zone",
        "destination",
    ],
    *[
        "access_ipv4",
        "access_ipv6",
        "build_id",
        "launch_index",
        "created_at",
        "updated_at",
        "launched_at",
        "key_name",
        "fault",
    ],
    *["task_image", "tried", "description", "group_id", "locked_by", "locked_reason", "old_flavor", "before"],
    *[
        "shelved_image",
        "task_details",
        "config_drive",
        "disk_config",
        "vcpus",
        "ram_mb",
        "disk_mb",
        "node_id",
        "migration_id",
        "tags",
        "security_groups",
        "node",
        "service_host",
        "node_zone",
        "addresses",
    ],
)
"""The names of COLUMNS, in order."""

FROM = "FROM compute_servers s LEFT JOIN compute_nodes n ON n.id = s.node_id"


def _known_columns(statement: str) -> TextualSelect:
    """Return a statement of COLUMNS with known result columns, so that they need not be described each time."""
    return text(statement).columns(*(column(name) for name in _NAMES))


_GET = _known_columns(f"SELECT {COLUMNS} {FROM} WHERE s.id = CAST(:id AS uuid)")

_GET_LOCKED = _known_columns(f"SELECT {COLUMNS} {FROM} WHERE s.id = CAST(:id AS uuid) FOR NO KEY UPDATE OF s")

_IN_POOL = text(f"SELECT {COLUMNS} {FROM} WHERE n.pool = :pool OR s.granted = :pool ORDER BY s.created_at, s.id")

_ON_NODE = text(f"SELECT {COLUMNS} {FROM} WHERE n.name = :name ORDER BY s.created_at, s.id")

_ON_SERVICE = text(f"SELECT {COLUMNS} {FROM} WHERE n.service_host = :host ORDER BY n.name, s.created_at, s.id")

_SLEEPING = text(f"SELECT {COLUMNS} {FROM} WHERE s.status = 'RESERVED' ORDER BY s.id")

_USER_DATA = select(servers.c.id, servers.c.user_data).where(
    in_parameter(servers.c.id, "ids"), servers.c.user_data.is_not(None)
)

_BOOT_DATA = (
    select(servers.c.user_data, func.coalesce(servers.c.public_key, keypairs.c.public_key).label("public_key"))
    .outerjoin(keypairs, and_(keypairs.c.user_id == servers.c.user_id, keypairs.c.name == servers.c.key_name))
    .where(servers.c.id == bindparam("id"))
)

# Servers here and in child zones, those that builds have still to place, and orders without an answer of a child.
_USED = text("""
    SELECT sum(each) AS instances, coalesce(sum(each * vcpus), 0) AS cores, coalesce(sum(each * ram_mb), 0) AS ram_mb
    FROM (SELECT count(*) AS each, vcpus, ram_mb FROM compute_servers
          WHERE project_id = :project_id GROUP BY vcpus, ram_mb
          UNION ALL
          SELECT 1, vcpus, ram_mb FROM compute_zone_servers WHERE project_id = :project_id
          UNION ALL
          SELECT pending, vcpus, ram_mb FROM compute_zone_builds WHERE project_id = :project_id AND pending > 0
          UNION ALL
          SELECT 1, vcpus, ram_mb FROM compute_zone_offers WHERE project_id = :project_id AND server_id IS NULL) AS used
""")


def get(conn: Connection, server_id: str, *, lock: bool = False) -> Server | None:
    """Return the server, with its row locked if requested; None if it does not exist."""
    row = conn.execute(_GET_LOCKED if lock else _GET, {"id": server_id}).mappings().one_or_none()
    return server_of(row) if row else None


def user_data(conn: Connection, ids: Sequence[str]) -> dict[str, str]:
    """Return the user data of these servers, in Base64; only servers with user data."""
    return {row.id: row.user_data for row in conn.execute(_USER_DATA, {"ids": list(ids)})}


def boot_data(conn: Connection, server_id: str) -> tuple[str | None, str | None]:
    """Return the user data of a server, in Base64, and the public key of its key pair; None: it has none."""
    row = conn.execute(_BOOT_DATA, {"id": server_id}).one_or_none()
    return (row.user_data, row.public_key) if row else (None, None)


def in_pool(conn: Connection, pool: str) -> list[Server]:
    """Return the servers on the nodes of a pool; for a grant, those that use its capacity or wait for some."""
    return [server_of(row) for row in conn.execute(_IN_POOL, {"pool": pool}).mappings()]


def on_node(conn: Connection, name: str) -> list[Server]:
    """Return the servers on the nodes of a name."""
    return [server_of(row) for row in conn.execute(_ON_NODE, {"name": name}).mappings()]


def on_service(conn: Connection, host: str) -> list[Server]:
    """Return the servers on all nodes of a compute service."""
    return [server_of(row) for row in conn.execute(_ON_SERVICE, {"host": host}).mappings()]


def sleeping(conn: Connection) -> list[Server]:
    """Return all servers that are RESERVED."""
    return [server_of(row) for row in conn.execute(_SLEEPING).mappings()]


def busy_nodes(conn: Connection, names: Collection[str]) -> frozenset[str]:
    """Return those of the nodes on which at least one server runs."""
    query = select(nodes.c.name).distinct().join(servers, servers.c.node_id == nodes.c.id)
    running = query.where(in_array(nodes.c.name, sorted(names)), servers.c.status.in_(RUNNING))
    return frozenset(conn.scalars(running))


def existing(conn: Connection, ids: Sequence[str]) -> set[str]:
    """Return those of `ids` that are servers."""
    return set(conn.scalars(select(servers.c.id).where(in_array(servers.c.id, ids))))


def set_status(conn: Connection, server_id: str, status: str, now: datetime) -> None:
    """Set the status of a server without a task."""
    conn.execute(update(servers).where(servers.c.id == server_id).values(status=status, updated_at=now))


def used(conn: Connection, project_id: str) -> Mapping[str, int]:
    """Return the usage of a project, here and in child zones: instances, cores, ram_mb."""
    row = conn.execute(_USED, {"project_id": project_id}).mappings().one()
    return {key: int(value or 0) for key, value in row.items()}


def server_of(row: RowMapping) -> Server:
    """Return the server in a row of COLUMNS."""
    values = dict(row)
    values["flavor"] = recorded(values["flavor"])
    values["addresses"] = tuple(Address(**address) for address in values["addresses"] or ())
    values["access"] = (values.pop("access_ipv4"), values.pop("access_ipv6"))
    values["tried"] = tuple(values["tried"])
    values["tags"] = tuple(values["tags"])
    groups = values["security_groups"]
    values["security_groups"] = None if groups is None else tuple(groups)
    values["held"] = Room(values.pop("vcpus"), values.pop("ram_mb"), values.pop("disk_mb"))
    values["old_flavor"] = recorded(values["old_flavor"]) if values["old_flavor"] else None
    return Server(**values)
