"""Services and nodes of all cells below, listed for administrators of the top cell by asking each cell."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any, Generic, TypeVar

import structlog

from climate.compute.cells.messaging import collecting, paths
from climate.compute.cells.messaging.dispatch import CellContext, Handlers
from climate.compute.cells.messaging.messages import Message
from climate.compute.cells.servers import report_fields
from climate.compute.cells.value_checks import Check, is_flag, is_uuid, or_none
from climate.compute.context import Compute
from climate.compute.models.node import Node, Service
from climate.compute.nodes import services
from climate.compute.reservations import pools
from climate.compute.store.cells import servers
from climate.database.connections import reading

log = structlog.get_logger(__name__)

SERVICES, NODES = "service_get_all", "compute_node_get_all"
"""Methods of each cell."""

PATIENCE = 10.0
"""Maximum seconds for which a list waits for the cells."""

LONGEST_TEXT = 65536

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Inventory(Generic[T]):
    """Resources of several cells, named `path@name`, and the cells that did not answer."""

    items: tuple[T, ...]
    missing: Mapping[str, str]
    """Path of a cell -> reason."""


def services_of(compute: Compute, host: str | None = None) -> Inventory[Service]:
    """Return the compute services, at the top cell those of all cells; `host`: of that host only."""
    if not compute.cells.is_api:
        return Inventory(tuple(services.listed(compute, host)), {})
    result = _collected(compute, SERVICES, _service)
    return replace(result, items=tuple(item for item in result.items if host in (None, item.host)))


def nodes_of(compute: Compute) -> Inventory[Node]:
    """Return the nodes, at the top cell those of all cells."""
    if not compute.cells.is_api:
        return Inventory(tuple(pools.all_nodes(compute)), {})
    return _collected(compute, NODES, _node)


def servers_by_node(compute: Compute, nodes: Sequence[Node]) -> Mapping[str, Sequence[tuple[str, str]]]:
    """Return uuid of a node -> (id, name) of its servers, at the top cell from the cells' reports."""
    if not compute.cells.is_api:
        there = pools.servers_by_node(compute, nodes)
        return {node.uuid: there[node.id] for node in nodes}
    with reading(compute.engine) as conn:
        known = servers.by_place(conn)
    return {node.uuid: known.get(_place(node), ()) for node in nodes}


def is_foreign(name: str) -> bool:
    """Return whether this is the name or id of a resource in another cell."""
    return paths.split_item(name)[0] is not None


def _place(node: Node) -> tuple[str, str]:
    """Return (path of its cell, digest of the node in reports of servers)."""
    path, host = paths.split_item(node.service_host)
    return path or "", report_fields.place_of(host, paths.split_item(node.name)[1])


def _collected(compute: Compute, method: str, read: Callable[[str, Mapping[str, object]], T]) -> Inventory[T]:
    limit = min(PATIENCE, compute.cells.call_timeout)
    collected = collecting.collect(compute, method, {}, seconds=limit)
    matching = [one for path, given in sorted(collected.values().items()) for one in _read(path, given, read)]
    return Inventory(tuple(matching), collected.missing())


def _read(path: str, given: Any, read: Callable[[str, Mapping[str, object]], T]) -> Iterator[T]:
    for one in given if isinstance(given, list) else [given]:
        try:
            yield read(path, one)
        except (TypeError, ValueError, KeyError) as error:
            log.warning("service or node of a cell skipped", cell=path, reason=str(error)[:200])


def _is_text(value: object) -> bool:
    return isinstance(value, str) and len(value) <= LONGEST_TEXT


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**62


_SERVICE: Mapping[str, Check] = {
    "uuid": is_uuid,
    "host": _is_text,
    "enabled": is_flag,
    "disabled_reason": or_none(_is_text),
    "forced_down": is_flag,
    "up": is_flag,
    "beat_at": _is_text,
    "zone": or_none(_is_text),
}

_NODE: Mapping[str, Check] = {
    **dict.fromkeys(("uuid", "service_uuid"), is_uuid),
    **dict.fromkeys(("name", "service_host", "hypervisor_type", "cpu_info", "host_ip"), _is_text),
    **dict.fromkeys(("zone", "maintenance", "disabled_reason"), or_none(_is_text)),
    **dict.fromkeys(("present", "enabled", "up"), is_flag),
    **dict.fromkeys(
        (
            "vcpus",
            "memory_mb",
            "local_gb",
            "used_vcpus",
            "used_ram_mb",
            "used_disk_mb",
            "hypervisor_version",
            "reserved_ram_mb",
            "reserved_disk_mb",
            "servers",
        ),
        _is_count,
    ),
}
"""Field -> check, for the fields that leave a cell; pools of leases do not."""


def _checked(given: Mapping[str, Any], checks: Mapping[str, Check]) -> dict[str, Any]:
    wrong = next((key for key, fits in checks.items() if not fits(given[key])), None)
    if wrong is not None:
        raise ValueError(f"{wrong} is {str(given[wrong])[:80]!r}")
    return {key: given[key] for key in checks}


def _service(path: str, given: Mapping[str, object]) -> Service:
    fields = _checked(given, _SERVICE)
    beat_at = datetime.fromisoformat(fields["beat_at"])
    named = {key: paths.with_item(path, fields[key]) for key in ("uuid", "host")}
    return Service(**{**fields, **named, "beat_at": beat_at, "id": 0})


def _node(path: str, given: Mapping[str, object]) -> Node:
    fields = _checked(given, _NODE)
    keys = ("uuid", "name", "service_uuid", "service_host")
    named = {key: paths.with_item(path, fields[key]) for key in keys}
    return Node(**{**fields, **named, "id": 0, "service_id": 0, "pool": None})


def _written(one: Service | Node, checks: Mapping[str, Check]) -> dict[str, object]:
    return {key: value for key, value in asdict(one).items() if key in checks}


def _service_get_all(context: CellContext, message: Message, kwargs: Mapping[str, object]) -> list[dict[str, object]]:
    result = services.listed(context.compute)
    return [{**_written(one, _SERVICE), "beat_at": one.beat_at.isoformat()} for one in result]


def _compute_node_get_all(
    context: CellContext, message: Message, kwargs: Mapping[str, object]
) -> list[dict[str, object]]:
    return [_written(one, _NODE) for one in pools.all_nodes(context.compute)]


HANDLERS = Handlers(broadcast={SERVICES: _service_get_all, NODES: _compute_node_get_all})
