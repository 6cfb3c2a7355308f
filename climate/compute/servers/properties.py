"""Changes of a server that need no driver: name, description, metadata, tags, locks, state reset."""

from collections.abc import Callable, Mapping, Sequence

from climate.compute.context import Compute
from climate.compute.errors import Conflict, Forbidden
from climate.compute.images import image_data
from climate.compute.migrations import migration_steps
from climate.compute.migrations.live_migration import SENT
from climate.compute.models.server import LIVE_MIGRATE, RESERVED, REVERT, SHELVE, VERIFY_RESIZE, VM_STATES, Server
from climate.compute.servers import actions
from climate.compute.servers.actions import By
from climate.compute.servers.resize import size
from climate.compute.store import node_locks
from climate.compute.store.servers import properties as rows
from climate.compute.store.servers import resize_and_shelve, tasks

OWNER, ADMIN = "owner", "admin"
"""Who has locked a server: a user of its project, or an administrator of another."""

Changed = Callable[[Mapping[str, str]], Mapping[str, str]]
"""Function from old to new metadata."""

ChangedTags = Callable[[Sequence[str]], Sequence[str]]
"""Function from old to new tags."""


def describe(
    compute: Compute, server_id: str, words: Mapping[str, str | None], *, project_id: str | None = None
) -> Server:
    """Update name, description, access addresses or disk_config of a server; return the server. Raises NotFound."""
    with compute.engine.begin() as conn:
        server = actions.locked(conn, server_id, project_id)
        if words:
            rows.change(conn, server.id, words, compute.now(conn))
        if disk_config := words.get("disk_config"):
            rows.set_disk_config(conn, server.id, disk_config)
    return actions.get(compute, server_id, project_id)


def set_metadata(
    compute: Compute, server_id: str, changed: Changed, *, project_id: str | None = None
) -> Mapping[str, str]:
    """Update the metadata of a server; return it. Raises NotFound; Conflict if it is locked."""
    with compute.engine.begin() as conn:
        server = actions.locked(conn, server_id, project_id)
        actions.check_lock(server, project_id)
        metadata = changed(server.metadata)
        rows.change(conn, server.id, {"metadata": metadata}, compute.now(conn))
    return metadata


def set_tags(compute: Compute, server_id: str, changed: ChangedTags, *, project_id: str | None = None) -> Sequence[str]:
    """Update the tags of a server; return them. Raises NotFound."""
    with compute.engine.begin() as conn:
        server = actions.locked(conn, server_id, project_id)
        tags = changed(server.tags)
        if tuple(tags) != server.tags:
            rows.change(conn, server.id, {"tags": list(tags)}, compute.now(conn))
    return tags


def lock(compute: Compute, server_id: str, reason: str | None, *, project_id: str | None, by: By) -> None:
    """Lock a server: only administrators may change it. Raises NotFound."""
    with compute.engine.begin() as conn:
        server = actions.locked(conn, server_id, project_id)
        own = server.project_id == by["project_id"]
        if server.locked_by is not None and own:
            return
        now = compute.now(conn)
        rows.change(conn, server.id, {"locked_by": OWNER if own else ADMIN, "locked_reason": reason}, now)
        tasks.note(conn, server.id, "lock", by, now, done=True)


def unlock(compute: Compute, server_id: str, *, project_id: str | None, by: By) -> None:
    """Unlock a server. Raises NotFound; Forbidden if an administrator locked it."""
    with compute.engine.begin() as conn:
        server = actions.locked(conn, server_id, project_id)
        if server.locked_by == ADMIN and project_id is not None:
            raise Forbidden(f"Instance {server.id} was locked by an administrator, and only one unlocks it.")
        now = compute.now(conn)
        rows.change(conn, server.id, {"locked_by": None, "locked_reason": None}, now)
        tasks.note(conn, server.id, "unlock", by, now, done=True)


def reset(compute: Compute, server_id: str, status: str, *, by: By) -> None:
    """Set a server to ACTIVE or ERROR, whatever task is in progress, without asking its driver.

    An unconfirmed resize is confirmed, so that no more capacity is held than the server has. Raises NotFound, and
    Conflict for a server that is on no node or waits for its lease.
    """
    left, ring = None, None
    with compute.engine.begin() as conn:
        server = actions.locked(conn, server_id, None)
        if server.node_id is None or server.status == RESERVED:
            state = VM_STATES[server.status]
            raise Conflict(f"Cannot 'os-resetState' instance {server.id} while it is in vm_state {state}")
        if server.task == LIVE_MIGRATE and SENT in server.task_details:
            raise Conflict(
                f"Cannot 'os-resetState' instance {server.id}: it has arrived at host {server.service_host}, "
                "whose compute service has to be up to take it over"
            )
        now = compute.now(conn)
        if server.task_image is not None and server.task == SHELVE:
            left = server.task_image
            image_data.drop(conn, left)
        elif server.task_image is not None:
            image_data.record_failure(conn, server.task_image, now)
        node_locks.lock_of_migration(conn, server.migration_id)
        if server.status == VERIFY_RESIZE and server.task != REVERT:
            ring = migration_steps.confirmed(conn, server, now)
        else:
            migration_steps.gave_up(conn, server, now)
        resize_and_shelve.settle(conn, server.id, size(server.flavor))
        resize_and_shelve.resized(conn, server.id, server.flavor)
        rows.reset_state(conn, server.id, status, now)
        tasks.note(conn, server.id, "os-resetState", by, now, done=True)
    if left is not None:
        image_data.forget(compute, left)
    if ring is not None:
        compute.cast(ring, server_id)
