"""Lists of servers: conditions, orders and pages, in one statement however many servers there are."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from sqlalchemy import Connection, RowMapping, TextClause, text
from sqlalchemy.exc import DBAPIError

from climate.compute.errors import BadRequest
from climate.compute.models.node import DEFAULT_ZONE
from climate.compute.models.server import Server
from climate.compute.store.nodes.availability_zones import ZONE_OF_NODE
from climate.compute.store.servers.servers import COLUMNS, FROM, server_of

PATTERN_SECONDS = 3
"""Timeout in seconds after which patterns are refused."""

_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_ ^$.")

CONDITIONS: Mapping[str, str] = {
    "project_id": "s.project_id = :project_id",
    "user_id": "s.user_id = :user_id",
    "uuid": "s.id::text = :uuid",
    "name": "s.name ~ :name",
    "description": "s.description ~ :description",
    "shown_as": """s.task = ANY(CAST(:tasks AS text[])) OR s.status = ANY(CAST(:shown_as AS text[]))
                   AND (s.task IS NULL OR s.task <> ALL(CAST(:hiding AS text[])))""",
    "vm_states": "s.status = ANY(CAST(:vm_states AS text[]))",
    "task_state": "s.task = :task_state",
    "host": "n.service_host = :host OR n.name = :host",
    "node": "n.name = :node",
    "image": "s.image_id::text = :image",
    "flavor": "s.flavor ->> 'id' = :flavor",
    "key_name": "s.key_name = :key_name",
    "zone": f"CASE WHEN n.id IS NULL THEN s.zone ELSE coalesce({ZONE_OF_NODE}, '{DEFAULT_ZONE}') END = :zone",
    "build_id": "s.build_id = :build_id",
    "locked": "(s.locked_by IS NOT NULL) = :locked",
    "changes_since": "s.updated_at >= :changes_since",
    "changes_before": "s.updated_at <= :changes_before",
    "ip": "EXISTS (SELECT FROM compute_vifs v JOIN compute_addresses a ON a.vif_id = v.id "
    "WHERE v.server_id = s.id AND host(a.address) ~ :ip)",
    "tags": "s.tags @> CAST(:tags AS text[])",
    "tags_any": "s.tags && CAST(:tags_any AS text[])",
    "not_tags": "NOT s.tags @> CAST(:not_tags AS text[])",
    "not_tags_any": "NOT s.tags && CAST(:not_tags_any AS text[])",
    "none": "NOT CAST(:none AS boolean)",
}
"""Filter of a list -> its condition.

`shown_as` needs two more: `tasks`, those whose names are requested statuses, and

`hiding`, all tasks that are shown instead of a server's status.
"""

PATTERNS = ("name", "description", "ip")
"""Conditions with a regular expression."""

ORDERS: Mapping[str, str] = {
    "created_at": "s.created_at",
    "updated_at": "s.updated_at",
    "launched_at": "coalesce(s.launched_at, '-infinity')",
    "display_name": "s.name",
    "display_description": "coalesce(s.description, '')",
    "uuid": "s.id",
    "vm_state": "s.status",
    "task_state": "coalesce(s.task, '')",
    "host": "coalesce(n.service_host, '')",
    "node": "coalesce(n.name, '')",
    "availability_zone": f"coalesce({ZONE_OF_NODE}, '')",
    "project_id": "s.project_id",
    "user_id": "s.user_id",
    "image_ref": "coalesce(s.image_id::text, '')",
    "instance_type_id": "s.flavor ->> 'id'",
    "key_name": "coalesce(s.key_name, '')",
    "launch_index": "s.launch_index",
    "locked_by": "coalesce(s.locked_by, '')",
}
"""Sort key of a list -> its value, never NULL, so that a page can begin after any server."""


@dataclass(frozen=True, slots=True)
class Listing:
    """A query for servers: conditions by name, which must all hold, and an order of (key, descending)."""

    wanted: Mapping[str, object] = field(default_factory=dict)
    order: Sequence[tuple[str, bool]] = ()
    marker: str | None = None
    """The id of the last server of the previous page."""
    limit: int = 1000


@dataclass(frozen=True, slots=True)
class Source:
    """The source of a list of servers; in its SQL a server is `s`."""

    columns: str
    rows: str
    conditions: Mapping[str, str]
    orders: Mapping[str, str]
    read: Callable[[RowMapping], Server]
    always: str = "true"
    """Condition on every listed server."""


HERE = Source(COLUMNS, FROM, CONDITIONS, ORDERS, server_of)
"""The servers of this deployment."""


def _statement(listing: Listing, source: Source, wanted: Collection[str]) -> TextClause:
    """Return the statement with the conditions of the wanted keys, the order, and the page behind the marker."""
    conditions = [source.always, *(f"({source.conditions[key]})" for key in wanted)]
    keys = [(source.orders[key], descending) for key, descending in listing.order] or [("s.created_at", True)]
    keys.append(("s.id", keys[-1][1]))
    after = ""
    if listing.marker is not None:
        marks = ", ".join(f"{value} AS k{index}" for index, (value, _) in enumerate(keys))
        after = f"CROSS JOIN (SELECT {marks} {source.rows} WHERE s.id = CAST(:marker AS uuid)) AS k"
        conditions.append(_behind(keys))
    order = ", ".join(f"{value} {'DESC' if descending else 'ASC'}" for value, descending in keys)
    where = " AND ".join(conditions)
    return text(f"SELECT {source.columns} {source.rows} {after} WHERE {where} ORDER BY {order} LIMIT :limit")


def listed(conn: Connection, listing: Listing, source: Source = HERE) -> list[Server]:
    """Return the matching servers, newest first unless another order is given. BadRequest for an invalid pattern."""
    wanted = {key: value for key, value in listing.wanted.items() if key in source.conditions}
    statement = _statement(listing, source, wanted)
    given = {**listing.wanted, "marker": listing.marker, "limit": listing.limit}
    try:
        _check_patterns(conn, [str(wanted[key]) for key in PATTERNS if key in wanted])
        return [source.read(row) for row in conn.execute(statement, given).mappings()]
    except DBAPIError as error:
        raise _unusable(error) from None


def _check_patterns(conn: Connection, patterns: Sequence[str]) -> None:
    """Check that patterns are valid even if no server is compared, and that none keeps the database busy."""
    for pattern in patterns:
        if not set(pattern) <= _PLAIN:
            conn.execute(text(f"SET LOCAL statement_timeout = '{PATTERN_SECONDS}s'"))
            conn.execute(text("SELECT '' ~ CAST(:pattern AS text)"), {"pattern": pattern})


def _behind(keys: Sequence[tuple[str, bool]]) -> str:
    """Return the condition that a server comes after the marker in an order that may go up and down."""
    steps = []
    for index, (value, descending) in enumerate(keys):
        same = [f"{earlier} = k.k{number}" for number, (earlier, _) in enumerate(keys[:index])]
        steps.append(" AND ".join([*same, f"{value} {'<' if descending else '>'} k.k{index}"]))
    return f"({' OR '.join(f'({step})' for step in steps)})"


def _unusable(error: DBAPIError) -> Exception:
    """Return the error for an invalid pattern; any other error unchanged."""
    state = getattr(error.orig, "sqlstate", None)
    if state == "2201B":
        return BadRequest("A pattern in the query is no regular expression; it must be one like '^web-[0-9]+$'.")
    if state == "57014":
        return BadRequest("A pattern in the query takes too long; ask for a simpler one like '^web-[0-9]+$'.")
    return error
