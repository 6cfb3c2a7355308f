"""Actions on a server of the cloud: unshelve, suspend, snapshot, move, delete; each under a token."""

from collections.abc import Mapping

from climate.cloud import ACTIVE, IMAGEABLE, PAUSED, RESERVED, RESIZED, SUSPENDED, NotYet, Refused
from climate.cloud.openstack import fence_store, lease_servers, servers
from climate.cloud.openstack.http import Body, Clash, Remote, unless_gone
from climate.cloud.openstack.pools import aggregates
from climate.cloud.openstack.servers import SLEEPS, TASK

MOVABLE = (ACTIVE, PAUSED)
REBUILDING = ("rebuilding", "rebuild_block_device_mapping", "rebuild_spawning")
WAKING = ("unshelving", "spawning")
MADE_OF, OCCASION = "climate_server", "climate_occasion"
"""Properties of an image: its server, and the event that created it."""


def wake(remote: Remote, server_id: str, token: int) -> None:
    """Unshelve a server; called again, remove the mark by which shelved servers without a lease are deleted.

    Nova changes no metadata of a shelved server.
    """
    server = _actionable(remote, server_id, token)
    if server["status"] == ACTIVE and SLEEPS in server["metadata"]:
        _unmark(remote, server_id)
    if server["status"] == ACTIVE or server.get(TASK) in WAKING:
        return
    _check_idle(server)
    if servers.view(server).status != RESERVED:
        raise Refused(f"server {server_id} is {server['status']}")
    _act(remote, server_id, "unshelve", None)


def _unmark(remote: Remote, server_id: str) -> None:
    try:
        _delete_if_present(remote, f"/servers/{server_id}/metadata/{SLEEPS}")
    except Clash as clash:  # it is busy
        raise NotYet(str(clash)) from clash


def suspend(remote: Remote, server_id: str, token: int) -> None:
    server = _actionable(remote, server_id, token)
    if server["status"] == SUSPENDED or server.get(TASK) == "suspending":
        return
    _check_idle(server)
    _confirm_resize(remote, server)
    if server["status"] != ACTIVE:
        raise Refused(f"server {server_id} is {server['status']}")
    _act(remote, server_id, "suspend", None)


def snapshot(remote: Remote, server_id: str, image: str, token: int, occasion: str) -> None:
    """Create an image, unless it exists; replace a failed one.

    The server is read before the image: if the image is missing although the server was idle before, its creation has
    failed.
    """
    server = _actionable(remote, server_id, token)
    marks = {MADE_OF: server_id, OCCASION: occasion}
    if _image_exists(remote, image, marks):
        return
    _check_idle(server)
    if servers.view(server).status not in IMAGEABLE:
        raise Refused(f"server {server_id} is {server['status']}")
    _confirm_resize(remote, server)
    _act(remote, server_id, "createImage", {"name": image, "metadata": marks})
    raise NotYet(f"server {server_id} is still being saved as an image")


def move(remote: Remote, server_id: str, host: str, token: int, *, alone: bool = False) -> None:
    """Live-migrate a running server.

    A server that is shut off stays: a cold migration would have to be confirmed later, and nothing here tracks it.
    """
    server = servers.find(remote, server_id)
    if server is None or server.get(servers.NODE) != host or server.get(TASK) in ("deleting", "migrating"):
        return
    fence_store.fence_server(remote, aggregates.read_state(remote), server_id, token)
    _check_idle(server)
    if server["status"] not in MOVABLE:
        raise Refused(f"server {server_id} is {server['status']}: only running servers can be moved")
    if alone and any(each.get(TASK) == "migrating" for each in servers.on(remote, [host])):
        raise NotYet(f"another server is still migrating from {host}")
    _act(remote, server_id, "os-migrateLive", {"host": None, "block_migration": "auto"})


def evacuate(remote: Remote, server_id: str, host: str, token: int) -> None:
    """Evacuate a server of a host that is down: to a host of its lease, or to any if it has none."""
    server = servers.find(remote, server_id)
    if server is None or server.get(servers.NODE) != host or server.get(TASK) in ("deleting", *REBUILDING):
        return
    seen = aggregates.read_state(remote)
    fence_store.fence_server(remote, seen, server_id, token)
    _check_idle(server)
    to = lease_servers.destination(remote, seen, host)
    _act(remote, server_id, "evacuate", {"host": to} if to else {})


def delete(remote: Remote, server_id: str, token: int) -> None:
    """Delete a server; if it does not exist, delete its token instead."""
    server = servers.find(remote, server_id)
    seen = aggregates.read_state(remote)
    if server is None:
        fence_store.forget(remote, seen, server_id)
        return
    fence_store.fence_server(remote, seen, server_id, token)
    if server.get(TASK) != "deleting":
        _delete_if_present(remote, f"/servers/{server_id}")


def _actionable(remote: Remote, server_id: str, token: int) -> Body:
    """Return a server that accepts actions under this token."""
    server = servers.find(remote, server_id)
    if server is None or server.get(TASK) == "deleting":
        raise Refused(f"there is no server {server_id}")
    fence_store.fence_server(remote, aggregates.read_state(remote), server_id, token)
    return server


def _confirm_resize(remote: Remote, server: Body) -> None:
    """Confirm a pending resize and raise NotYet: the cloud can neither snapshot nor suspend a resized server."""
    if server["status"] == RESIZED:
        _act(remote, server["id"], "confirmResize", None)
        raise NotYet(f"server {server['id']} keeps its new size")


def _check_idle(server: Body) -> None:
    if server.get(TASK) is not None:
        raise NotYet(f"server {server['id']} is {server[TASK]}")


def _image_exists(remote: Remote, name: str, marks: Mapping[str, str]) -> bool:
    """Return whether the image with these properties exists."""
    query = {"name": name}
    while True:
        page = remote.get("/images", service="image", **query)
        result = page["images"]
        if any(each["status"] == "active" and _bears(each, marks) for each in result):
            return True
        if not result or not page.get("next"):
            return False
        query["marker"] = str(result[-1]["id"])


def _bears(image: Body, marks: Mapping[str, str]) -> bool:
    return all(image.get(key, "") == value for key, value in marks.items())


def _act(remote: Remote, server_id: str, action: str, details: object) -> None:
    try:
        remote.post(f"/servers/{server_id}/action", {action: details})
    except Clash as clash:  # the state was suitable a moment ago
        raise NotYet(str(clash)) from clash


def _delete_if_present(remote: Remote, path: str) -> None:
    unless_gone(lambda: remote.delete(path))
