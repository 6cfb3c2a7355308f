"""Health of nodes: reasons why they cannot run servers."""

from collections.abc import Mapping
from datetime import timedelta

from sqlalchemy import Connection

from climate.compute.context import Compute
from climate.compute.store.nodes import health as rows
from climate.compute.store.nodes.health import Condition
from climate.database.connections import Query, reading


def of_nodes(compute: Compute) -> Mapping[str, str | None]:
    """Return the reason why each node, by name, cannot run servers; None: it can.

    If nodes of several services share a name, the one in a pool counts.
    """
    with reading(compute.engine) as conn:
        now = compute.now(conn)
        names = rows.all_well(conn, now, compute.down_seconds)
        if names is not None:
            return dict.fromkeys(names)
        result = rows.listed(conn, now, compute.down_seconds)
    return {node.name: _wrong(node) for node in sorted(result, key=lambda node: node.pool is not None)}


def query(compute: Compute, conn: Connection) -> Query:
    """Return the query of all nodes by name: the pool of a lease or of the engine, and whether it can run servers."""
    down = timedelta(seconds=compute.down_seconds)
    return Query(rows.NODES, {"cloud_now": compute.other_time(conn), "cloud_down": down})


def silent(compute: Compute) -> frozenset[str]:
    """Return the nodes of services that are down by their heartbeat or by decree.

    If nodes share a name, all of them must be down.
    """
    with reading(compute.engine) as conn:
        result = rows.listed(conn, compute.now(conn), compute.down_seconds)
    answering = {node.name for node in result if node.heard and not node.forced_down}
    return frozenset(node.name for node in result) - answering


def _wrong(node: Condition) -> str | None:
    if node.forced_down:
        return f"its service {node.service_host} was said to be down"
    if not node.heard:
        return f"its service {node.service_host} was last heard of at {node.beat_at:%Y-%m-%dT%H:%M:%SZ}"
    if not node.present:
        return f"its service {node.service_host} does not report it any more"
    if not node.enabled:
        return f"its service {node.service_host} is disabled{_because(node.disabled_reason)}"
    if node.maintenance is not None:
        return f"it is in maintenance{_because(node.maintenance)}"
    return None


def _because(reason: str | None) -> str:
    return f": {reason}" if reason else ""
