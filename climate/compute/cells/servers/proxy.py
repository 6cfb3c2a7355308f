"""Operations on servers at the top cell: checked here, then cast to or called in the cell of the server."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection

from climate.compute.cells import neighbours
from climate.compute.cells.errors import InstanceUnknownCell
from climate.compute.cells.messaging import send as messaging
from climate.compute.cells.messaging.messages import DOWN
from climate.compute.cells.servers import allowed_methods, sync
from climate.compute.cells.servers.methods import DELETE_EVERYWHERE, HARD, RUN, order_of
from climate.compute.context import Compute
from climate.compute.errors import BadRequest, Conflict, Forbidden, NotFound
from climate.compute.models.flavor import Flavor
from climate.compute.models.server import (
    DELETE,
    EVACUATE,
    LIVE_MIGRATE,
    MIGRATE,
    REBUILD,
    RESCUE,
    RESIZE,
    REWIRE,
    SHELVE,
    SNAPSHOT,
    UNSHELVE,
    VERIFY_RESIZE,
    VM_STATES,
    WISHES,
    Room,
    Server,
    may,
)
from climate.compute.servers import actions
from climate.compute.servers.interfaces.interfaces import Port, Requester
from climate.compute.servers.properties import ADMIN, OWNER, Changed, ChangedTags
from climate.compute.servers.rebuild import Rebuilt
from climate.compute.servers.resize import check_quota, size
from climate.compute.store.cells import servers
from climate.compute.store.projects import images, keypairs, quotas
from climate.compute.store.servers import tasks
from climate.database.connections import reading

Check = Callable[[Server], None]


def _no_check(server: Server) -> None:
    """Allow the command in any state."""


@dataclass(frozen=True, slots=True)
class Command:
    """Method of the Compute API to run in the cell of a server."""

    method: str
    action: str | None = None
    """Name in the list of actions; None: not listed."""
    args: Mapping[str, object] = field(default_factory=dict)
    task: str | None = None
    """Task shown until the cell has run it."""
    check: Check = _no_check
    """Function that raises if the state of the server does not allow it."""
    changes: Mapping[str, object] = field(default_factory=dict)
    """Fields of the server that the top cell changes at once."""
    heeds_lock: bool = True


def get(compute: Compute, server_id: str, project_id: str | None = None) -> Server:
    """Return the server. Raise NotFound if no cell has it, or it is another project's; project None: any."""
    with reading(compute.engine) as conn:
        return _own(servers.get(conn, server_id), server_id, project_id)


def cast(compute: Compute, requester: Requester, command: Command) -> None:
    """Run a method in the cell of a server without waiting; its outcome comes with the server's report.

    Raise NotFound, Conflict, Busy, and InstanceUnknownCell while no cell has reported the server.
    """
    with compute.engine.begin() as conn:
        server = locked(conn, requester)
        _check(server, requester, command)
        send(compute, conn, server, requester, command)


def call(compute: Compute, requester: Requester, command: Command) -> Any:
    """Run a method in the cell of a server; return its value.

    Raises as `cast`, the method's errors, and CellTimeout.
    """
    server = get(compute, requester.server_id, requester.project_id)
    _check(server, requester, command)
    order = order_of(server.id, command.method, command.args, requester.by)
    return messaging.call(compute, _cell(server), RUN, order)


def locked(conn: Connection, requester: Requester) -> Server:
    """Return the server with its row locked. Raise NotFound as `get` does."""
    return _own(servers.get(conn, requester.server_id, lock=True), requester.server_id, requester.project_id)


def send(compute: Compute, conn: Connection, server: Server, requester: Requester, command: Command) -> None:
    """Send a command to the cell of a server whose row is locked."""
    cell, now = _cell(server), compute.now(conn)
    if command.changes:
        servers.change(conn, server.id, command.changes, now)
    number = servers.command(conn, server.id, command.task, now)
    if command.action is not None:
        tasks.note(conn, server.id, command.action, requester.by, now)
    order = order_of(server.id, command.method, command.args, requester.by, number)
    if command.changes:
        order["noted"] = sync.noted(server, command.changes)
    messaging.cast(compute, conn, cell, RUN, order)


def request_task(compute: Compute, requester: Requester, task: str) -> None:
    """Request a task of a server, as `actions.request_task` does in the server's cell."""
    if task == DELETE:
        delete(compute, requester)
        return
    with compute.engine.begin() as conn:
        server = locked(conn, requester)
        actions.check_lock(server, requester.project_id)
        may(server, task)
        if server.task != task:
            send(
                compute,
                conn,
                server,
                requester,
                Command(allowed_methods.METHOD_OF[task], WISHES[task].action, task=task),
            )


def delete(compute: Compute, who: Requester, delete_type: str = HARD) -> None:
    """Delete a server; if its cell is unknown or removed, delete it here and in whatever cell has it."""
    with compute.engine.begin() as conn:
        server = locked(conn, who)
        actions.check_lock(server, who.project_id)
        if server.service_host is not None and neighbours.leads_to(conn, server.service_host):
            send(compute, conn, server, who, Command("delete", WISHES[DELETE].action, task=DELETE))
            return
        servers.abandon(conn, server.id, compute.now(conn))
        everywhere = {"instance_uuid": server.id, "delete_type": delete_type, "by": dict(who.by)}
        messaging.broadcast(compute, conn, DOWN, DELETE_EVERYWHERE, everywhere)


def describe(compute: Compute, requester: Requester, words: Mapping[str, str | None]) -> Server:
    """Update name and description of a server; an unknown cell gets them later."""
    with compute.engine.begin() as conn:
        locked(conn, requester)
        servers.change(conn, requester.server_id, words, compute.now(conn))
        server = locked(conn, requester)
        # All of them, so that a delayed earlier command changes nothing.
        all_words = {
            "name": server.name,
            "description": server.description,
            "access_ipv4": server.access[0],
            "access_ipv6": server.access[1],
        }
        if server.service_host is not None:
            send(compute, conn, server, requester, Command("update", args={"words": all_words}))
    return get(compute, requester.server_id, requester.project_id)


def set_metadata(compute: Compute, requester: Requester, changed: Changed) -> Mapping[str, str]:
    """Update the metadata of a server; an unknown cell gets it later."""
    with compute.engine.begin() as conn:
        server = locked(conn, requester)
        actions.check_lock(server, requester.project_id)
        metadata = dict(changed(server.metadata))
        servers.change(conn, server.id, {"metadata": metadata}, compute.now(conn))
        if server.service_host is not None:
            send(compute, conn, server, requester, Command("update_instance_metadata", args={"metadata": metadata}))
    return metadata


def set_tags(compute: Compute, requester: Requester, changed: ChangedTags) -> Sequence[str]:
    """Update the tags of a server, which only the top cell has."""
    with compute.engine.begin() as conn:
        server = locked(conn, requester)
        tags = changed(server.tags)
        servers.change(conn, server.id, {"tags": list(tags)}, compute.now(conn))
    return tags


def lock(compute: Compute, requester: Requester, reason: str | None) -> None:
    """Lock a server against changes by non-administrators."""
    with compute.engine.begin() as conn:
        server = locked(conn, requester)
        own = server.project_id == requester.by["project_id"]
        if server.locked_by is not None and own:
            return
        changes = {"locked_by": OWNER if own else ADMIN, "locked_reason": reason}
        send(compute, conn, server, requester, Command("lock", "lock", {"reason": reason}, changes=changes))


def unlock(compute: Compute, requester: Requester) -> None:
    """Unlock a server. Raise Forbidden if an administrator locked it."""
    with compute.engine.begin() as conn:
        server = locked(conn, requester)
        if server.locked_by == ADMIN and requester.project_id is not None:
            raise Forbidden(f"Instance {server.id} was locked by an administrator, and only one unlocks it.")
        changes = {"locked_by": None, "locked_reason": None}
        send(compute, conn, server, requester, Command("unlock", "unlock", changes=changes))


def reset(compute: Compute, requester: Requester, status: str) -> None:
    """Reset the state of a server in its cell."""
    command = Command("reset_state", "os-resetState", {"status": status}, heeds_lock=False)
    cast(compute, requester, command)


def resize(compute: Compute, requester: Requester, flavor: Flavor) -> None:
    """Resize a server to another flavor, which its cell looks up by name."""
    with compute.engine.begin() as conn:
        seen = _own(servers.get(conn, requester.server_id), requester.server_id, requester.project_id)
        limits = quotas.lock_limits(conn, seen.project_id)
        server = locked(conn, requester)
        actions.check_lock(server, requester.project_id)
        actions.idle(server, RESIZE)
        if flavor.name == server.flavor.name:
            raise BadRequest(f"Instance {server.id} has the flavor {flavor.name} already.")
        more, held = size(flavor), server.held
        lacking = Room(max(0, more.vcpus - held.vcpus), max(0, more.ram_mb - held.ram_mb))
        check_quota(limits, servers.used(conn, server.project_id), lacking)
        args = {"flavor_id": flavor.id, "flavor_name": flavor.name}
        send(compute, conn, server, requester, Command("resize", WISHES[RESIZE].action, args, task=RESIZE))


def confirm(compute: Compute, requester: Requester) -> None:
    """Confirm the new size of a server."""

    def check(server: Server) -> None:
        if server.status != VERIFY_RESIZE or server.busy:
            state = f"task_state {server.task}" if server.busy else f"vm_state {VM_STATES[server.status]}"
            raise Conflict(f"Cannot 'confirmResize' instance {server.id} while it is in {state}")

    cast(compute, requester, Command("confirm_resize", "confirmResize", check=check))


def migrate(compute: Compute, requester: Requester, host: str | None) -> None:
    """Migrate a server to another host of its cell."""
    command = Command("migrate", WISHES[MIGRATE].action, {"host": host}, task=MIGRATE, check=_idle(MIGRATE))
    cast(compute, requester, command)


def live_migrate(compute: Compute, requester: Requester, host: str | None, block: bool | str) -> None:
    """Migrate a running server to another host of its cell."""
    args = {"host": host, "block": block}
    command = Command("live_migrate", WISHES[LIVE_MIGRATE].action, args, task=LIVE_MIGRATE, check=_idle(LIVE_MIGRATE))
    cast(compute, requester, command)


def evacuate(compute: Compute, requester: Requester, host: str | None) -> None:
    """Evacuate a server of a failed host to another host of its cell."""
    command = Command("evacuate", WISHES[EVACUATE].action, {"host": host}, task=EVACUATE, check=_idle(EVACUATE))
    cast(compute, requester, command)


def rebuild(compute: Compute, requester: Requester, rebuild: Rebuilt) -> None:
    """Rebuild a server from an image, which its cell looks up by name; a new key pair goes there with its key."""
    with compute.engine.begin() as conn:
        server = locked(conn, requester)
        actions.check_lock(server, requester.project_id)
        actions.idle(server, REBUILD)
        image = images.get(conn, rebuild.image_id)
        args = {
            "image_id": rebuild.image_id,
            "image_name": image.name if image else "",
            "name": rebuild.name,
            "metadata": None if rebuild.metadata is None else dict(rebuild.metadata),
            "description": rebuild.description,
            "boot_data": dict(rebuild.boot_data),
            "public_key": _public_key(conn, server, rebuild),
        }
        kept = {key: args[key] for key in ("image_id", "name", "metadata", "description") if args[key] is not None}
        kept |= {key: value for key, value in rebuild.boot_data.items() if key == "key_name"}
        command = Command("rebuild", WISHES[REBUILD].action, args, task=REBUILD, changes=kept)
        send(compute, conn, server, requester, command)


def _public_key(conn: Connection, server: Server, rebuild: Rebuilt) -> str:
    """Return the public key of the new key pair of a server, which its user has here; empty for none."""
    name = rebuild.boot_data.get("key_name")
    if name is None or rebuild.public_key is not None:
        return rebuild.public_key or ""
    return keypairs.public_key(conn, server.user_id, name)


def rescue(compute: Compute, requester: Requester, image_id: str | None) -> None:
    """Rescue a server with an image, which its cell looks up by name; None: with the image of the server."""
    image = None
    if image_id is not None:
        with reading(compute.engine) as conn:
            image = images.get(conn, image_id)
    args = {"image_id": image_id, "image_name": image.name if image else ""}
    cast(compute, requester, Command("rescue", WISHES[RESCUE].action, args, task=RESCUE, check=_idle(RESCUE)))


def shelve(compute: Compute, requester: Requester) -> None:
    """Shelve a server in its cell."""
    cast(compute, requester, Command("shelve", WISHES[SHELVE].action, task=SHELVE, check=_idle(SHELVE)))


def unshelve(compute: Compute, requester: Requester, zone: str | None) -> None:
    """Unshelve a server in its cell."""
    command = Command("unshelve", WISHES[UNSHELVE].action, {"zone": zone}, task=UNSHELVE, check=_idle(UNSHELVE))
    cast(compute, requester, command)


def create_image(compute: Compute, requester: Requester, name: str, metadata: Mapping[str, str]) -> str:
    """Create an image of a server in its cell; return its id there."""
    args = {"name": name, "metadata": dict(metadata)}
    command = Command("snapshot", args=args, check=_idle(SNAPSHOT), heeds_lock=False)
    return str(call(compute, requester, command))


def console(compute: Compute, requester: Requester, lines: int | None) -> str:
    """Return the console log of a server from its cell; `lines`: the last ones, None: all."""
    return str(call(compute, requester, Command("get_console_output", args={"lines": lines}, heeds_lock=False)))


def interfaces(compute: Compute, requester: Requester) -> list[Port]:
    """Return the interfaces of a server from its cell."""
    result = call(compute, requester, Command("get_interfaces", heeds_lock=False))
    return [_port(one) for one in result]


def attach(compute: Compute, requester: Requester, network_id: str, address: str | None) -> Port:
    """Add an address of a network of its cell to a server; return the interface."""
    command = Command("attach_interface", args={"network_id": network_id, "address": address}, check=_idle(REWIRE))
    return _port(call(compute, requester, command))


def detach(compute: Compute, requester: Requester, port_id: str) -> None:
    """Remove an interface from a server, with all of its addresses."""
    call(compute, requester, Command("detach_interface", args={"port_id": port_id}, check=_idle(REWIRE)))


def remove_address(compute: Compute, requester: Requester, address: str) -> None:
    """Remove one address from a server."""
    call(compute, requester, Command("remove_fixed_ip", args={"address": address}, check=_idle(REWIRE)))


def associate(compute: Compute, requester: Requester, address: str, fixed_address: str | None) -> None:
    """Associate a floating address of the project in the server's cell with one of the server's."""
    args = {"address": address, "fixed_address": fixed_address}
    call(compute, requester, Command("associate_floating_ip", args=args, heeds_lock=False))


def disassociate(compute: Compute, requester: Requester, address: str) -> None:
    """Disassociate a floating address from a server."""
    call(compute, requester, Command("disassociate_floating_ip", args={"address": address}, heeds_lock=False))


def _port(given: Mapping[str, Any]) -> Port:
    return Port(**{**given, "addresses": tuple(given["addresses"])})


def _idle(task: str) -> Check:
    return lambda server: actions.idle(server, task)


def _check(server: Server, requester: Requester, command: Command) -> None:
    if command.heeds_lock:
        actions.check_lock(server, requester.project_id)
    command.check(server)


def _cell(server: Server) -> str:
    if server.service_host is None:
        raise InstanceUnknownCell(f"Cell is not known for instance {server.id}: no cell has reported it yet.")
    return server.service_host


def _own(server: Server | None, server_id: str, project_id: str | None) -> Server:
    if server is None or (project_id is not None and server.project_id != project_id):
        raise NotFound(f"Instance {server_id} could not be found.")
    return server
