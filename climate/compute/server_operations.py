"""Operations on servers for the Compute API: run here, or from a top cell in the cell of the server.

Each function is the operation on a server of this deployment. `at_top` names the operation that a top cell runs
instead, with the same arguments and errors.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from climate.compute.cells.servers import proxy
from climate.compute.context import Compute
from climate.compute.errors import BadRequest, Conflict, NotFound, VirtError
from climate.compute.migrations import cold_migration, evacuation, live_migration_requests
from climate.compute.models.flavor import Flavor
from climate.compute.models.server import Server
from climate.compute.network import floating_ips
from climate.compute.servers import (
    actions,
    fault_redaction,
    guest_conversion,
    properties,
)
from climate.compute.servers import (
    rebuild as rebuilding,
)
from climate.compute.servers import (
    resize as resizing,
)
from climate.compute.servers import (
    unshelve as unshelving,
)
from climate.compute.servers.interfaces import interfaces as addressing
from climate.compute.servers.interfaces.interfaces import Port, Requester, port_of
from climate.compute.servers.properties import Changed, ChangedTags
from climate.compute.servers.rebuild import Rebuilt
from climate.compute.store.cells import server_lists
from climate.compute.store.cells import servers as cell_servers
from climate.compute.store.servers import lists, servers
from climate.compute.store.servers.lists import Listing
from climate.database.connections import reading

P = ParamSpec("P")
R = TypeVar("R")
Operation = Callable[Concatenate[Compute, P], R]


def at_top(proxied: Operation[P, R]) -> Callable[[Operation[P, R]], Operation[P, R]]:
    """Make a top cell run `proxied` instead of the decorated operation."""

    def choose(here: Operation[P, R]) -> Operation[P, R]:
        @wraps(here)
        def operation(compute: Compute, /, *args: P.args, **kwargs: P.kwargs) -> R:
            chosen = proxied if compute.cells.is_api else here
            return chosen(compute, *args, **kwargs)

        return operation

    return choose


@at_top(proxy.get)
def get(compute: Compute, server_id: str, project_id: str | None = None) -> Server:
    """Return the server; NotFound if it does not exist or belongs to another project. None: any project."""
    return actions.get(compute, server_id, project_id)


def listed(compute: Compute, listing: Listing) -> list[Server]:
    """Return the servers that match a listing. BadRequest for an invalid pattern, NotFound for an unknown marker."""
    source = server_lists.ALL_CELLS if compute.cells.is_api else lists.HERE
    with reading(compute.engine) as conn:
        if listing.marker is not None:
            find = cell_servers.get if compute.cells.is_api else servers.get
            last = find(conn, listing.marker)
            if last is None or listing.wanted.get("project_id", last.project_id) != last.project_id:
                raise NotFound
        return lists.listed(conn, listing, source)


@at_top(proxy.request_task)
def request_task(compute: Compute, requester: Requester, task: str) -> None:
    """Request a task for a server."""
    actions.request_task(compute, requester.server_id, task, project_id=requester.project_id, by=requester.by)


@at_top(proxy.describe)
def describe(compute: Compute, requester: Requester, words: Mapping[str, str | None]) -> Server:
    """Update name, description or access addresses of a server; return the server."""
    return properties.describe(compute, requester.server_id, words, project_id=requester.project_id)


@at_top(proxy.set_metadata)
def set_metadata(compute: Compute, requester: Requester, changed: Changed) -> Mapping[str, str]:
    """Update the metadata of a server; return all of it."""
    return properties.set_metadata(compute, requester.server_id, changed, project_id=requester.project_id)


@at_top(proxy.set_tags)
def set_tags(compute: Compute, requester: Requester, changed: ChangedTags) -> Sequence[str]:
    """Update the tags of a server; return all of them."""
    return properties.set_tags(compute, requester.server_id, changed, project_id=requester.project_id)


@at_top(proxy.create_image)
def create_image(compute: Compute, requester: Requester, name: str, metadata: Mapping[str, str]) -> str:
    """Create an image of a server; return its id, at a top cell the id in the cell of the server."""
    return actions.create_image(
        compute, requester.server_id, name, metadata, project_id=requester.project_id, by=requester.by
    )


@at_top(proxy.resize)
def resize(compute: Compute, requester: Requester, flavor: Flavor) -> None:
    """Resize a server to another flavor; the owner confirms or reverts it."""
    resizing.resize(compute, requester.server_id, flavor, project_id=requester.project_id, by=requester.by)


@at_top(proxy.confirm)
def confirm_resize(compute: Compute, requester: Requester) -> None:
    """Confirm the new size of a server."""
    resizing.confirm(compute, requester.server_id, project_id=requester.project_id, by=requester.by)


@at_top(proxy.migrate)
def migrate(compute: Compute, requester: Requester, host: str | None) -> None:
    """Migrate a server to another host, to be confirmed; None: the scheduler chooses the host."""
    cold_migration.migrate(compute, requester.server_id, host, project_id=requester.project_id, by=requester.by)


@at_top(proxy.live_migrate)
def live_migrate(compute: Compute, requester: Requester, host: str | None, block: bool | str) -> None:
    """Live-migrate a server to another host;

    None: the scheduler chooses. See `live_migration_requests.live_migrate` for `block`.
    """
    live_migration_requests.live_migrate(compute, requester.server_id, host, block, by=requester.by)


@at_top(proxy.evacuate)
def evacuate(compute: Compute, requester: Requester, host: str | None) -> None:
    """Evacuate a server of a failed host to another host; None: the scheduler chooses the host."""
    evacuation.evacuate(compute, requester.server_id, host, project_id=requester.project_id, by=requester.by)


@at_top(proxy.rebuild)
def rebuild(compute: Compute, requester: Requester, rebuild: Rebuilt) -> None:
    """Rebuild a server from an image."""
    rebuilding.rebuild(compute, requester.server_id, rebuild, project_id=requester.project_id, by=requester.by)


@at_top(proxy.rescue)
def rescue(compute: Compute, requester: Requester, image_id: str | None) -> None:
    """Start a server from an image, with its own disk behind; None: from the image of the server."""
    rebuilding.rescue(compute, requester.server_id, image_id, project_id=requester.project_id, by=requester.by)


@at_top(proxy.shelve)
def shelve(compute: Compute, requester: Requester) -> None:
    """Shelve a server: store it in an image and remove it from its node."""
    actions.shelve(compute, requester.server_id, project_id=requester.project_id, by=requester.by)


@at_top(proxy.unshelve)
def unshelve(compute: Compute, requester: Requester, zone: str | None) -> None:
    """Unshelve a server onto a node."""
    unshelving.unshelve(compute, requester.server_id, zone, project_id=requester.project_id, by=requester.by)


@at_top(proxy.lock)
def lock(compute: Compute, requester: Requester, reason: str | None) -> None:
    """Lock a server: only administrators may change it."""
    properties.lock(compute, requester.server_id, reason, project_id=requester.project_id, by=requester.by)


@at_top(proxy.unlock)
def unlock(compute: Compute, requester: Requester) -> None:
    """Unlock a server."""
    properties.unlock(compute, requester.server_id, project_id=requester.project_id, by=requester.by)


@at_top(proxy.reset)
def reset_state(compute: Compute, requester: Requester, status: str) -> None:
    """Set the state of a server."""
    properties.reset(compute, requester.server_id, status, by=requester.by)


@at_top(proxy.console)
def console_output(compute: Compute, requester: Requester, lines: int | None) -> str:
    """Return the console output of a server, its last `lines` or all; VirtError if it cannot be read."""
    server = actions.get(compute, requester.server_id, requester.project_id)
    if server.node is None:
        return ""
    try:
        return compute.driver.console(guest_conversion.guest(compute, server), lines)
    except VirtError as error:
        reason = fault_redaction.readable(server, str(error))
        raise VirtError(f"The console log of instance {server.id} cannot be read: {reason}") from None


@at_top(proxy.interfaces)
def interfaces(compute: Compute, requester: Requester) -> list[Port]:
    """Return the interfaces of a server in order."""
    return [port_of(vif) for vif in addressing.interfaces(compute, requester.server_id, requester.project_id)]


@at_top(proxy.attach)
def attach(compute: Compute, requester: Requester, network_id: str, address: str | None) -> Port:
    """Attach an address of a network, the given one or any, to a server; return the interface that has it."""
    return port_of(addressing.add(compute, requester, network_id, address))


def attach_port(compute: Compute, requester: Requester, port_id: str) -> Port:
    """Attach a port to a server; return it. BadRequest for servers in cells."""
    if compute.cells.is_api:
        raise BadRequest("port_id: ports cannot be attached to servers in cells")
    return port_of(addressing.plug_port(compute, requester, port_id))


@at_top(proxy.detach)
def detach(compute: Compute, requester: Requester, port_id: str) -> None:
    """Detach an interface with all of its addresses from a server."""
    addressing.unplug(compute, requester, port_id)


@at_top(proxy.remove_address)
def remove_address(compute: Compute, requester: Requester, address: str) -> None:
    """Remove one address from a server."""
    addressing.remove(compute, requester, address)


@at_top(proxy.associate)
def associate(compute: Compute, requester: Requester, address: str, fixed_address: str | None) -> None:
    """Associate a floating address of the project with an address of a server, by default its first.

    As in Nova, an address that another server has moves to this one.
    """
    server = actions.get(compute, requester.server_id, requester.project_id)
    with compute.engine.begin() as conn:
        fixed = floating_ips.fixed(conn, server.project_id, server_id=server.id, address=fixed_address)
        there = floating_ips.by_address(conn, address, requester.project_id)
        floating_ips.move(conn, there, fixed, compute.now(conn), compute.network_notifier)


@at_top(proxy.disassociate)
def disassociate(compute: Compute, requester: Requester, address: str) -> None:
    """Disassociate a floating address from a server."""
    server = actions.get(compute, requester.server_id, requester.project_id)
    with compute.engine.begin() as conn:
        there = floating_ips.by_address(conn, address, requester.project_id)
        if there.server_id != server.id:
            raise Conflict(f"Floating IP {address} is not associated with instance {server.id}.")
        floating_ips.disassociate(conn, there, compute.now(conn), compute.network_notifier)
