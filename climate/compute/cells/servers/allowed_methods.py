"""Methods of the Compute API that the top cell may run on a server of this cell; all others are refused."""

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

from sqlalchemy import Connection

from climate.compute.cells.errors import CellError
from climate.compute.context import Compute
from climate.compute.errors import BadRequest, VirtError
from climate.compute.migrations import cold_migration, evacuation, live_migration_requests
from climate.compute.models.flavor import Flavor
from climate.compute.models.image import ACTIVE
from climate.compute.models.server import (
    DELETE,
    PAUSE,
    REBOOT,
    REBOOT_HARD,
    RESUME,
    REVERT,
    REWIRE,
    START,
    STOP,
    SUSPEND,
    UNPAUSE,
    UNRESCUE,
)
from climate.compute.network import floating_ips
from climate.compute.servers import actions, fault_redaction, guest_conversion, properties, rebuild, resize, unshelve
from climate.compute.servers.actions import By
from climate.compute.servers.interfaces import interfaces
from climate.compute.servers.interfaces.interfaces import Requester, port_of
from climate.compute.servers.rebuild import Rebuilt
from climate.compute.store.projects import flavors, images
from climate.compute.store.projects.images import ImageQuery
from climate.database.connections import reading

Args = Mapping[str, Any]
Method = Callable[[Compute, str, Args, By], object]
"""Function (context, id of the server, arguments, requester) -> JSON value."""

TASKS: Mapping[str, str] = {
    "start": START,
    "stop": STOP,
    "pause": PAUSE,
    "unpause": UNPAUSE,
    "suspend": SUSPEND,
    "resume": RESUME,
    "reboot": REBOOT,
    "reboot_hard": REBOOT_HARD,
    "revert_resize": REVERT,
    "unrescue": UNRESCUE,
    "rewire": REWIRE,
    "delete": DELETE,
}
"""Method -> the task that it requests."""

METHOD_OF: Mapping[str, str] = {task: method for method, task in TASKS.items()}


def _task(task: str) -> Method:
    return lambda compute, server_id, args, by: actions.request_task(compute, server_id, task, by=by)


def _update(compute: Compute, server_id: str, args: Args, by: By) -> None:
    properties.describe(compute, server_id, dict(args["words"]))


def _update_metadata(compute: Compute, server_id: str, args: Args, by: By) -> None:
    properties.set_metadata(compute, server_id, lambda there: dict(args["metadata"]))


def _lock(compute: Compute, server_id: str, args: Args, by: By) -> None:
    properties.lock(compute, server_id, args["reason"], project_id=None, by=by)


def _unlock(compute: Compute, server_id: str, args: Args, by: By) -> None:
    properties.unlock(compute, server_id, project_id=None, by=by)


def _reset_state(compute: Compute, server_id: str, args: Args, by: By) -> None:
    properties.reset(compute, server_id, args["status"], by=by)


def _resize(compute: Compute, server_id: str, args: Args, by: By) -> None:
    with reading(compute.engine) as conn:
        flavor = find_flavor(conn, args["flavor_id"], args["flavor_name"])
    resize.resize(compute, server_id, flavor, by=by)


def _confirm_resize(compute: Compute, server_id: str, args: Args, by: By) -> None:
    resize.confirm(compute, server_id, by=by)


def _migrate(compute: Compute, server_id: str, args: Args, by: By) -> None:
    cold_migration.migrate(compute, server_id, args["host"], by=by)


def _live_migrate(compute: Compute, server_id: str, args: Args, by: By) -> None:
    live_migration_requests.live_migrate(compute, server_id, args["host"], args["block"], by=by)


def _evacuate(compute: Compute, server_id: str, args: Args, by: By) -> None:
    evacuation.evacuate(compute, server_id, args["host"], by=by)


def _rebuild(compute: Compute, server_id: str, args: Args, by: By) -> None:
    with reading(compute.engine) as conn:
        image_id = find_image(conn, by["project_id"], args["image_id"], args["image_name"])
    boot_data, public_key = args.get("boot_data", {}), args.get("public_key", "")  # absent in older releases
    wanted = Rebuilt(
        image_id, args["name"], args["metadata"], args["description"], boot_data=boot_data, public_key=public_key
    )
    rebuild.rebuild(compute, server_id, wanted, by=by)


def _rescue(compute: Compute, server_id: str, args: Args, by: By) -> None:
    image_id: str | None = args["image_id"]
    if image_id is not None:
        with reading(compute.engine) as conn:
            image_id = find_image(conn, by["project_id"], image_id, args["image_name"])
    rebuild.rescue(compute, server_id, image_id, by=by)


def _shelve(compute: Compute, server_id: str, args: Args, by: By) -> None:
    actions.shelve(compute, server_id, by=by)


def _unshelve(compute: Compute, server_id: str, args: Args, by: By) -> None:
    unshelve.unshelve(compute, server_id, args["zone"], by=by)


def _attach_interface(compute: Compute, server_id: str, args: Args, by: By) -> dict[str, object]:
    return asdict(port_of(interfaces.add(compute, Requester(server_id, None, by), args["network_id"], args["address"])))


def _detach_interface(compute: Compute, server_id: str, args: Args, by: By) -> None:
    interfaces.unplug(compute, Requester(server_id, None, by), args["port_id"])


def _get_interfaces(compute: Compute, server_id: str, args: Args, by: By) -> list[dict[str, object]]:
    return [asdict(port_of(vif)) for vif in interfaces.interfaces(compute, server_id)]


def _remove_fixed_ip(compute: Compute, server_id: str, args: Args, by: By) -> None:
    interfaces.remove(compute, Requester(server_id, None, by), args["address"])


def _associate_floating_ip(compute: Compute, server_id: str, args: Args, by: By) -> None:
    project_id = actions.get(compute, server_id).project_id
    with compute.engine.begin() as conn:
        fixed = floating_ips.fixed(conn, project_id, server_id=server_id, address=args["fixed_address"])
        there = floating_ips.by_address(conn, args["address"], project_id)
        floating_ips.associate(conn, there, fixed, compute.now(conn), compute.network_notifier)


def _disassociate_floating_ip(compute: Compute, server_id: str, args: Args, by: By) -> None:
    project_id = actions.get(compute, server_id).project_id
    with compute.engine.begin() as conn:
        there = floating_ips.by_address(conn, args["address"], project_id)
        if there.server_id != server_id:
            raise BadRequest(f"Floating IP {args['address']} is not associated with instance {server_id}.")
        floating_ips.disassociate(conn, there, compute.now(conn), compute.network_notifier)


def _snapshot(compute: Compute, server_id: str, args: Args, by: By) -> str:
    project_id = actions.get(compute, server_id).project_id
    return actions.create_image(compute, server_id, args["name"], args["metadata"], project_id=project_id, by=by)


def _console_output(compute: Compute, server_id: str, args: Args, by: By) -> str:
    server = actions.get(compute, server_id)
    try:
        text = compute.driver.console(guest_conversion.guest(compute, server), args["lines"]) if server.node else ""
    except VirtError as error:
        reason = fault_redaction.readable(server, str(error))
        raise CellError(f"The console log of instance {server.id} cannot be read: {reason}") from None
    # Serial consoles print NUL at power-on, which messages cannot contain.
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}")


COMMANDS: Mapping[str, Method] = {name: _task(task) for name, task in TASKS.items()} | {
    "update": _update,
    "update_instance_metadata": _update_metadata,
    "lock": _lock,
    "unlock": _unlock,
    "reset_state": _reset_state,
    "resize": _resize,
    "confirm_resize": _confirm_resize,
    "migrate": _migrate,
    "evacuate": _evacuate,
    "live_migrate": _live_migrate,
    "rebuild": _rebuild,
    "rescue": _rescue,
    "shelve": _shelve,
    "unshelve": _unshelve,
}
"""Cast methods: each call has a number, by which it runs once and in order."""

CALLS: Mapping[str, Method] = {
    "snapshot": _snapshot,
    "get_console_output": _console_output,
    "get_interfaces": _get_interfaces,
    "attach_interface": _attach_interface,
    "detach_interface": _detach_interface,
    "remove_fixed_ip": _remove_fixed_ip,
    "associate_floating_ip": _associate_floating_ip,
    "disassociate_floating_ip": _disassociate_floating_ip,
}
"""Called methods, whose value the top cell waits for."""

QUERIES = frozenset({"get_console_output", "get_interfaces"})
"""Called methods that only read."""


def find_flavor(conn: Connection, flavor_id: str, name: str) -> Flavor:
    """Return the flavor of this cell with that name, preferably with the same id. Raise BadRequest if missing."""
    result = flavors.get(conn, flavor_id)
    if result is None or result.name != name:
        result = flavors.find(conn, name)
    if result is None:
        raise BadRequest(f"This cell has no flavor {name!r}; create it there.")
    return result


def find_image(conn: Connection, project_id: str, image_id: str, name: str) -> str:
    """Return the id of the image of this cell with that id or name. Raise BadRequest if missing."""
    if images.existing(conn, [image_id]):
        return image_id
    result = images.listed(conn, ImageQuery(project_id=project_id, names=[name], statuses=[ACTIVE]))
    if not result:
        raise BadRequest(f"This cell has no image {name!r}; create it there.")
    return result[0].id
