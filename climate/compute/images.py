"""Images: snapshots of servers, and contents that were uploaded."""

import hashlib
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from uuid import uuid4

from sqlalchemy import Connection

from climate.compute.context import Compute
from climate.compute.image import KILLED, QUEUED, Image
from climate.compute.server import Server
from climate.compute.store import images
from climate.compute.virt import Guest

_BLOCK = 1 << 20


def begin(conn: Connection, server: Server, name: str, occasion: str | None = None) -> Image:
    """The row of a snapshot whose content is still to come; a server has one of a name for each `occasion`."""
    once = {} if occasion is None else {"occasion": occasion}
    image = Image(
        id=str(uuid4()),
        name=name,
        project_id=server.project_id,
        status=QUEUED,
        visibility="private",
        disk_format="raw",
        container_format="bare",
        size=None,
        sha512=None,
        properties={"image_type": "snapshot", "instance_uuid": server.id, "user_id": server.user_id, **once},
        server_id=None if occasion is None else server.id,
    )
    images.insert(conn, image)
    return image


def give_up(conn: Connection, image_id: str, now: datetime) -> None:
    """Record that the content of a snapshot will never come."""
    images.settle(conn, image_id, KILLED, now)


def content_of(compute: Compute, guest: Guest, image_id: str) -> tuple[int, str]:
    """Put the content of a snapshot where it belongs; its (bytes, SHA-512).  VirtError when that fails."""
    target = place(compute, image_id)
    compute.driver.snapshot(guest, target)
    return measure(target)


def place(compute: Compute, image_id: str) -> Path:
    """The file of an image's content; its folder is there afterwards."""
    compute.images.mkdir(mode=0o700, parents=True, exist_ok=True)
    return compute.images / image_id


def store(compute: Compute, image_id: str, blocks: Iterable[bytes]) -> tuple[int, str]:
    """Keep an uploaded content, in one step; its (bytes, SHA-512)."""
    target = place(compute, image_id)
    draft = target.with_name(f"{image_id}.{uuid4().hex}.new")  # its own: somebody else may be at the same image
    try:
        with draft.open("xb") as file:
            for block in blocks:
                file.write(block)
        measured = measure(draft)
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)
    return measured


def measure(path: Path) -> tuple[int, str]:
    """(bytes, SHA-512) of a file."""
    digest, size = hashlib.sha512(), 0
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
            size += len(block)
    return size, digest.hexdigest()
