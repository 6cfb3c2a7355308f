"""Maintenance of services and nodes: their servers go on, and no new ones are placed there."""

from sqlalchemy import Connection

from climate.compute.audit_trail import NODE, SERVICE, Change
from climate.compute.context import Compute
from climate.compute.errors import Conflict, NotFound
from climate.compute.models.node import Node, Service
from climate.compute.store.nodes import nodes
from climate.compute.store.nodes import services as rows


def change(
    compute: Compute,
    service: Service,
    *,
    enabled: bool | None = None,
    reason: str | None = None,
    forced_down: bool | None = None,
) -> Service:
    """Enable or disable a service with a reason, or force it down. None: unchanged."""
    with compute.engine.begin() as conn:
        host = rows.lock(conn, service.id)
        before = _service(compute, conn, host or "") if host is not None else None
        if before is None:
            raise NotFound(f"Compute host {service.host} could not be found.")
        rows.change(conn, service.id, enabled=enabled, reason=reason, forced_down=forced_down)
        after = _service(compute, conn, before.host) or before
        compute.tell_change(conn, Change(SERVICE, before.host, before.host, _fields(before), _fields(after)))
    return after


def _service(compute: Compute, conn: Connection, host: str) -> Service | None:
    return next(iter(rows.listed(conn, compute.now(conn), compute.down_seconds, host)), None)


def _fields(of: Service) -> dict[str, object]:
    return {"enabled": of.enabled, "disabled_reason": of.disabled_reason, "forced_down": of.forced_down}


def remove(compute: Compute, service: Service) -> None:
    """Delete a service. Conflict unless it is down, without servers, and without nodes kept or lent for leases."""
    with compute.engine.begin() as conn:
        host = rows.lock(conn, service.id)
        if host is None:
            raise NotFound(f"Service {service.uuid} could not be found.")
        before = _service(compute, conn, host)
        if before is not None and before.up:
            raise Conflict(f"Service {host} is up: stop it first, or force it down.")
        servers, pooled = rows.lock_capacity(conn, host)
        if servers:
            raise Conflict(f"Service {host} still has servers ({servers}): delete them first.")
        if pooled:
            raise Conflict(f"Service {host} still has hosts kept or lent for leases ({pooled}): remove them first.")
        rows.delete(conn, host)
        if before is not None:
            compute.tell_change(conn, Change(SERVICE, host, host, _fields(before), None))


def maintain(compute: Compute, name: str, reason: str | None) -> list[Node]:
    """Put a node, or all nodes of a service host, into maintenance for a reason; None: end maintenance.

    NotFound, or Conflict if several services have a node of that name.
    """
    with compute.engine.begin() as conn:
        now = compute.now(conn)
        result = _matching(nodes.listed(conn, now, compute.down_seconds), name)
        rows.maintain(conn, [node.id for node in result], reason)
        for node in sorted(result, key=lambda node: (node.name, node.id)):
            was, now_is = {"maintenance": node.maintenance}, {"maintenance": reason}
            compute.tell_change(conn, Change(NODE, node.uuid, node.name, was, now_is))
        changed = {node.id for node in result}
        return [node for node in nodes.listed(conn, now, compute.down_seconds) if node.id in changed]


def _matching(known: list[Node], name: str) -> list[Node]:
    named = [node for node in known if node.name == name]
    if len(named) > 1:
        owners = ", ".join(node.service_host for node in named)
        raise Conflict(f"There are {len(named)} hosts named {name}, of the services {owners}.")
    result = named or [node for node in known if node.service_host == name]
    if not result:
        raise NotFound(f"Host {name} could not be found.")
    return result
