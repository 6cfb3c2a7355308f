"""Taking services and nodes out of work, and back: what is on them goes on, nothing new is put there."""

from climate.compute.context import Compute
from climate.compute.errors import Conflict, NotFound
from climate.compute.models.node import Node, Service
from climate.compute.nodes import services
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
    """Enable or disable a service, with a reason; call it down, whatever is heard of it.  None: as it was."""
    with compute.engine.begin() as conn:
        rows.change(conn, service.id, enabled=enabled, reason=reason, forced_down=forced_down)
    found = services.listed(compute, service.host)
    if not found:
        raise NotFound(f"Compute host {service.host} could not be found.")
    return found[0]


def remove(compute: Compute, service: Service) -> None:
    """Forget a service.  Conflict unless it is down, without servers, and without nodes kept or lent for leases."""
    with compute.engine.begin() as conn:
        host = rows.lock(conn, service.id)
        if host is None:
            raise NotFound(f"Service {service.uuid} could not be found.")
        if any(found.up for found in rows.listed(conn, compute.now(conn), compute.down_seconds, host)):
            raise Conflict(f"Service {host} is up: stop it first, or say that it is down.")
        servers, pooled = rows.held(conn, host)
        if servers:
            raise Conflict(f"Service {host} still has servers ({servers}): delete them first.")
        if pooled:
            raise Conflict(f"Service {host} still has hosts kept or lent for leases ({pooled}): remove them first.")
        rows.delete(conn, host)


def maintain(compute: Compute, name: str, reason: str | None) -> list[Node]:
    """Put a node, or all nodes of a service host, into maintenance for a reason; None: back to work.

    NotFound, or Conflict when several services have a node of that name.
    """
    with compute.engine.begin() as conn:
        now = compute.now(conn)
        found = _meant(nodes.listed(conn, now, compute.down_seconds), name)
        rows.maintain(conn, [node.id for node in found], reason)
        changed = {node.id for node in found}
        return [node for node in nodes.listed(conn, now, compute.down_seconds) if node.id in changed]


def _meant(known: list[Node], name: str) -> list[Node]:
    named = [node for node in known if node.name == name]
    if len(named) > 1:
        owners = ", ".join(node.service_host for node in named)
        raise Conflict(f"There are {len(named)} hosts called {name}, of the services {owners}.")
    found = named or [node for node in known if node.service_host == name]
    if not found:
        raise NotFound(f"Host {name} could not be found.")
    return found
