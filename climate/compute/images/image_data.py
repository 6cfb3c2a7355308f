"""Images: snapshots of servers, and uploaded contents."""

import errno
import hashlib
import os
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from pathlib import Path
from uuid import uuid4

import structlog
from sqlalchemy import Connection

from climate.compute.context import Compute
from climate.compute.errors import BadRequest, Conflict, NoImageRoom, VirtError
from climate.compute.images import quota
from climate.compute.models.image import ACTIVE, DEACTIVATED, KILLED, QUEUED, SAVING, STAGED, Content, Image
from climate.compute.models.server import Server
from climate.compute.scheduler.filters.images import KINDS, canonical
from climate.compute.servers.tasks.task_heartbeat import Check
from climate.compute.store.nodes import nodes as node_rows
from climate.compute.store.projects import images
from climate.compute.virt import Guest
from climate.database.connections import reading

_BLOCK = 1 << 20
_QCOW2 = b"QFI\xfb"

log = structlog.get_logger(__name__)

_OWN = frozenset({"occasion", "backup_type", "backup_rotation"})
"""Properties of one snapshot alone, which are not passed on to snapshots of its servers."""


def check_words(conn: Connection, image: Image) -> None:
    """Check that the architecture, hypervisor and mode that an image requires are known, or offered by a node.

    Raises BadRequest for an unknown word.
    """
    for what, names, known in KINDS:
        for name in names:
            word = canonical(what, str(image.properties.get(name) or ""))
            if word and word not in known and word not in node_rows.offered(conn):
                raise BadRequest(
                    f"{name} asks for the {what} {word[:40]!r}, which is none of {', '.join(sorted(known))}."
                )


def begin(
    conn: Connection,
    server: Server,
    name: str,
    occasion: str | None = None,
    metadata: Mapping[str, str] | None = None,
) -> Image:
    """Create the row of a snapshot whose content follows; a server has one of a name for each `occasion`.

    Its status is `saving` from the beginning, so that nobody uploads another content to it. It has the properties and
    minimum sizes of the image of the server, the properties in `metadata`, and records its origin.
    """
    once = {} if occasion is None else {"occasion": occasion}
    base = images.get(conn, server.image_id) if server.image_id else None
    inherited = {key: value for key, value in (base.properties if base else {}).items() if key not in _OWN}
    kind = {"image_type": "snapshot"}
    origin = {
        "instance_uuid": server.id,
        "user_id": server.user_id,
        "base_image_ref": server.image_id or "",
    }
    image = Image(
        id=str(uuid4()),
        name=name,
        project_id=server.project_id,
        status=SAVING,
        visibility="private",
        disk_format="raw",
        container_format="bare",
        size=None,
        sha512=None,
        properties={**inherited, **kind, **(metadata or {}), **origin, **once},
        server_id=None if occasion is None else server.id,
        min_disk_gb=base.min_disk_gb if base else 0,
        min_ram_mb=base.min_ram_mb if base else 0,
    )
    images.insert(conn, image)
    return image


def of_shelved(conn: Connection, compute: Compute, server: Server, name: str, occasion: str | None) -> Image:
    """Create an image with the content of the one that a server is shelved in, which is deleted with the server.

    Both names have one file. It becomes as young as the new name, which no row names before the commit: otherwise
    `orphan_files.sweep` deletes the link to an old content. Conflict if the image is gone.
    """
    kept = shelved(conn, compute, server)
    made = begin(conn, server, name, occasion)
    images.settle(
        conn, made.id, ACTIVE, compute.now(conn), Content(kept.size or 0, kept.sha512 or "", kept.disk_format)
    )
    content = content_file(compute, kept.id)
    os.utime(content)
    content_file(compute, made.id).hardlink_to(content)
    return made


def shelved(conn: Connection, compute: Compute, server: Server) -> Image:
    """Return the image that a server is shelved in, locked. Conflict if it is gone."""
    kept = images.get(conn, server.shelved_image or "", lock=True)
    if kept is None or not content_file(compute, kept.id).exists():
        raise Conflict(f"The image that instance {server.id} is shelved in is gone.")
    return kept


def check_unused(conn: Connection, image_id: str) -> None:
    """Check that no server is shelved in an image, whose row is locked; else raise Conflict."""
    server_id = images.shelved_in(conn, image_id)
    if server_id is not None:
        raise Conflict(f"Image {image_id} cannot be deleted: instance {server_id} is shelved in it.")


def record_failure(conn: Connection, image_id: str, now: datetime) -> None:
    """Record that the content of a snapshot will never arrive."""
    images.settle(conn, image_id, KILLED, now)


def save(compute: Compute, guest: Guest, image_id: str, check: Check) -> None:
    """Save the image of a snapshot; nothing happens if it is saved already, failed, or deleted.

    Raises VirtError if that fails, and the error of `check` if the task was claimed by another worker.
    """
    if _status(compute, image_id) != SAVING:
        return
    draft = _draft(content_file(compute, image_id))
    try:
        _check_disk(compute, draft.parent)
        compute.driver.snapshot(guest, draft)
        measured = measure(draft)._replace(disk_format=_format(draft))
        check()
        _publish(compute, image_id, draft, measured)
    finally:
        draft.unlink(missing_ok=True)


def copy_disk(compute: Compute, guest: Guest, name: str, check: Check) -> None:
    """Copy a guest's disk into the folder of images under a name of its own; it replaces an earlier copy.

    Raises VirtError if that fails, and the error of `check` if the task was claimed by another worker.
    """
    target = content_file(compute, name)
    draft = _draft(target)
    try:
        _check_disk(compute, draft.parent)
        compute.driver.snapshot(guest, draft)
        check()
        _place(draft, target)
    finally:
        draft.unlink(missing_ok=True)


def _check_disk(compute: Compute, folder: Path) -> None:
    try:
        quota.check_disk(compute.image_limits, folder)
    except NoImageRoom as error:
        raise VirtError(str(error)) from None


def is_made(compute: Compute, image_id: str) -> bool:
    """Return whether the content of an image exists."""
    return _status(compute, image_id) in (ACTIVE, DEACTIVATED)


def drop(conn: Connection, image_id: str) -> None:
    """Delete an image from the registry; call `forget` for its content after the commit."""
    images.delete(conn, image_id)


def forget(compute: Compute, image_id: str) -> None:
    """Delete the content of an image that was deleted from the registry.

    It stays while a RESERVED server needs it; then `orphan_files.sweep` deletes it.
    """
    with reading(compute.engine) as conn:
        needed = images.needed(conn, [image_id])
    discard(_stage(compute, image_id))
    if not needed:
        discard(path_of(compute, image_id))


def discard(path: Path) -> bool:
    """Delete a file; False and an entry in the log if that fails, then `orphan_files.sweep` tries again."""
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        log.error("image file not deleted", file=path.name, reason=error.strerror)
        return False
    return True


def path_of(compute: Compute, image_id: str) -> Path:
    """Return the file of an image's content, without a look at the disk."""
    return compute.images / image_id


def content_file(compute: Compute, image_id: str) -> Path:
    """Return the file of an image's content; creates its folder."""
    compute.images.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path_of(compute, image_id)


def upload(compute: Compute, image_id: str, blocks: Iterable[bytes], size: int = 0) -> None:
    """Store the content of a queued image, once; `size`: announced number of bytes, 0 if unknown.

    The image is `saving` before the first block is read, so that one upload runs at a time. It is `queued` again if the
    upload breaks off. Raises Conflict for an image that is not queued, or was deleted meanwhile. Raises NoImageRoom if
    it is too large for the project or the disk, and BadRequest if bytes are missing.
    """
    _receive(compute, image_id, blocks, size, _publish)


def stage(compute: Compute, image_id: str, blocks: Iterable[bytes], size: int = 0) -> None:
    """Keep the content of a queued image until it is imported, for a day; raises what `upload` raises."""
    _receive(compute, image_id, blocks, size, _store_for_import)


def import_staged(compute: Compute, image_id: str) -> None:
    """Make the staged content of an image its content.

    Raises Conflict for an image without staged content, NoImageRoom if it is too large for the project.
    """
    with reading(compute.engine) as conn:
        image = images.get(conn, image_id)
    if image is None or image.status != STAGED:
        status = image.status if image else "deleted"
        raise Conflict(f"Image {image_id} is {status}: stage its content before the import.")
    try:
        is_published = _publish_staged(compute, image)
    except FileNotFoundError:  # another request has imported or deleted it since
        is_published = False
    if not is_published:
        raise Conflict(f"Image {image_id} was deleted or imported meanwhile.")


def _publish_staged(compute: Compute, image: Image) -> bool:
    draft = _stage(compute, image.id)
    measured = measure(draft)

    def fits(conn: Connection) -> None:
        quota.check_size(conn, compute.image_limits, image.project_id, measured.size)

    return _publish(compute, image.id, draft, measured, fits)


def _receive(
    compute: Compute,
    image_id: str,
    blocks: Iterable[bytes],
    size: int,
    store: Callable[[Compute, str, Path, Content, Callable[[Connection], None]], bool],
) -> None:
    """Write the content of a queued image to a draft, and pass it to `store`, which says whether it took it."""
    project_id = _take_up(compute, image_id, size)
    draft = _draft(content_file(compute, image_id))
    try:
        quota.check_disk(compute.image_limits, draft.parent, size)
        with draft.open("xb") as file:
            for block in quota.checked(compute.image_limits, draft.parent, blocks):
                file.write(block)
        measured = measure(draft)
        # The web server ends the body normally if the client disconnects, so compare the size.
        if size and measured.size != size:
            raise BadRequest(f"Only {measured.size} of {size} bytes of image {image_id} have come.")

        def fits(conn: Connection) -> None:
            quota.check_size(conn, compute.image_limits, project_id, measured.size)

        if not store(compute, image_id, draft, measured, fits):
            raise Conflict(f"Image {image_id} was deleted while its content was uploaded.")
    except BaseException as error:
        with compute.engine.begin() as conn:
            images.move(conn, image_id, SAVING, QUEUED, compute.now(conn))
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise NoImageRoom(quota.FULL) from None
        raise
    finally:
        draft.unlink(missing_ok=True)


def _take_up(compute: Compute, image_id: str, size: int) -> str | None:
    """Begin an upload; return the project that owns the image."""
    with compute.engine.begin() as conn:
        image = images.get(conn, image_id)
        if image is not None:
            quota.check_size(conn, compute.image_limits, image.project_id, size, lock=False)
        if image is not None and images.move(conn, image_id, QUEUED, SAVING, compute.now(conn)):
            return image.project_id
        image = images.get(conn, image_id)
    status = image.status if image else "deleted"
    raise Conflict(f"Image status transition from {status} to saving is not allowed")


def _publish(
    compute: Compute,
    image_id: str,
    draft: Path,
    content: Content,
    check: Callable[[Connection], None] = lambda conn: None,
) -> bool:
    """Publish a draft as the content of an image without one; False if it has one, failed, or is deleted.

    The row is locked while the file is renamed: the content of an ACTIVE image never changes.
    """
    with compute.engine.begin() as conn:
        check(conn)
        settled = images.settle(conn, image_id, ACTIVE, compute.now(conn), content)
        if settled:
            _place(draft, content_file(compute, image_id))
    return settled


def _store_for_import(
    compute: Compute, image_id: str, draft: Path, content: Content, check: Callable[[Connection], None]
) -> bool:
    """Keep a draft for the import of its image; False if the image is deleted."""
    with compute.engine.begin() as conn:
        check(conn)
        is_kept = images.move(conn, image_id, SAVING, STAGED, compute.now(conn))
        if is_kept:
            _place(draft, _stage(compute, image_id))
    return is_kept


def _place(draft: Path, target: Path) -> None:
    """Give a draft its final name, as young as that: `orphan_files.sweep` judges files by their age."""
    os.utime(draft)  # touch would create a missing one
    draft.replace(target)


def _stage(compute: Compute, image_id: str) -> Path:
    """Return the file of a staged content."""
    target = path_of(compute, image_id)
    return target.with_name(f"{target.name}.staged")


def _status(compute: Compute, image_id: str) -> str | None:
    with reading(compute.engine) as conn:
        image = images.get(conn, image_id)
    return image.status if image else None


def _draft(target: Path) -> Path:
    """Return a unique name beside the target, because uploads may run concurrently."""
    return target.with_name(f"{target.name}.{uuid4().hex}.new")


def _format(path: Path) -> str:
    """Return the disk format of a snapshot, read from the file and not from the driver."""
    with path.open("rb") as file:
        return "qcow2" if file.read(len(_QCOW2)) == _QCOW2 else "raw"


def measure(path: Path) -> Content:
    """Return the size and the SHA-512 of a file."""
    digest, size = hashlib.sha512(), 0
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
            size += len(block)
    return Content(size, digest.hexdigest())
