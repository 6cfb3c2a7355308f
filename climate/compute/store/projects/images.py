"""Images: registered ones and snapshots."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from operator import eq, ge, le
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    RowMapping,
    Text,
    and_,
    bindparam,
    cast,
    exists,
    func,
    or_,
    select,
    text,
    tuple_,
    update,
)
from sqlalchemy import delete as delete_from

from climate.compute.models.image import ACTIVE, SHARED, STAGED, Content, Image
from climate.compute.models.image_member import ACCEPTED
from climate.compute.store.columns import in_array, sql_of
from climate.compute.store.tables.servers import image_members, images, servers

_COLUMNS = sql_of(images.c, "compute_images")

# The id is recorded for good first, so that an id never gets another content.
_INSERT = text(f"""
    WITH fresh AS (
        INSERT INTO compute_image_ids (id) VALUES (CAST(:id AS uuid)) ON CONFLICT DO NOTHING RETURNING id)
    INSERT INTO compute_images (id, name, project_id, status, visibility, disk_format, container_format, size, sha512,
                                properties, server_id, min_disk_gb, min_ram_mb, protected, hidden, tags)
    SELECT id, :name, :project_id, :status, :visibility, :disk_format, :container_format, CAST(:size AS bigint),
           :sha512, CAST(:properties AS jsonb), CAST(:server_id AS uuid), CAST(:min_disk_gb AS integer),
           CAST(:min_ram_mb AS integer), CAST(:protected AS boolean), CAST(:hidden AS boolean),
           CAST(:tags AS text[])
    FROM fresh
    ON CONFLICT DO NOTHING RETURNING {_COLUMNS}
""")

_GET = select(images).where(images.c.id == bindparam("id"))
_GET_LOCKED = _GET.with_for_update(key_share=True)

_NAMED = (
    select(images)
    .where(images.c.name == bindparam("name"), images.c.status == ACTIVE, ~images.c.hidden)
    .order_by(images.c.id)
    .limit(1000)
)

# A RESERVED server that moves to another node is created from the content again.
_NEEDED = text("""
    SELECT id::text FROM compute_images WHERE id::text = ANY(CAST(:ids AS text[]))
    UNION
    SELECT image_id::text FROM compute_servers
    WHERE status = 'RESERVED' AND image_id::text = ANY(CAST(:ids AS text[]))
    UNION
    SELECT 'migration-' || m.uuid FROM compute_migrations m JOIN compute_servers s ON s.migration_id = m.id
    WHERE 'migration-' || m.uuid = ANY(CAST(:ids AS text[]))
""")

_PIN = select(images.c.id).where(images.c.id == bindparam("image")).with_for_update(read=True, key_share=True)

SORTS: Mapping[str, ColumnElement[object]] = {
    "created_at": images.c.created_at,
    "updated_at": images.c.updated_at,
    "name": images.c.name,
    "status": images.c.status,
    "size": func.coalesce(images.c.size, -1),
    "disk_format": func.coalesce(images.c.disk_format, ""),
    "container_format": func.coalesce(images.c.container_format, ""),
    "id": images.c.id,
}
"""Sort keys of images, and what they order by."""

_SNAPSHOT_OF = text(f"""
    SELECT {_COLUMNS} FROM compute_images
    WHERE server_id = CAST(:server_id AS uuid) AND name = :name AND properties ->> 'occasion' = :occasion
      AND status <> 'killed'
""")


@dataclass(frozen=True, slots=True)
class ImageQuery:
    """A query for images, with an order. None: any. Sizes in bytes."""

    project_id: str | None
    """The requesting project, which sees its own images and those that are `open` to everybody;

    None: all are visible.
    """
    open: Sequence[str] = ("public",)
    member_status: str | None = ACCEPTED
    """The status in which the project is a member of images that are shared with it."""
    hidden: bool = False
    ids: Sequence[str] | None = None
    names: Sequence[str] | None = None
    statuses: Sequence[str] | None = None
    visibilities: Sequence[str] | None = None
    disk_formats: Sequence[str] | None = None
    container_formats: Sequence[str] | None = None
    owners: Sequence[str] | None = None
    protected: bool | None = None
    size: int | None = None
    size_min: int | None = None
    size_max: int | None = None
    changed_since: datetime | None = None
    min_disk: int | None = None
    min_ram: int | None = None
    tags: Sequence[str] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    sort: str = "created_at"
    direction: str = "desc"
    marker: str | None = None
    limit: int = 1000


class Used(NamedTuple):
    """Usage of images by a project."""

    images: int
    size: int
    """Bytes of those with content."""
    saving: int
    """Number of uploads, imports and snapshots in progress."""


def used(conn: Connection, project_id: str) -> Used:
    """Return the usage of images by a project, without failed ones."""
    own = images.c
    saving = func.count().filter(own.status.in_(("saving", STAGED)))
    query = select(func.count(), cast(func.coalesce(func.sum(own.size), 0), BigInteger), saving)
    return Used(*conn.execute(query.where(own.project_id == project_id, own.status != "killed")).one())


def insert(conn: Connection, image: Image) -> Image | None:
    """Insert an image; None if this snapshot exists already, or the id was ever used."""
    return _image(conn.execute(_INSERT, _row(image)).mappings().one_or_none())


def get(conn: Connection, image_id: str, *, lock: bool = False) -> Image | None:
    """Return the image, or None, also for a text that is no UUID."""
    if not _is_uuid(image_id):
        return None
    return _image(conn.execute(_GET_LOCKED if lock else _GET, {"id": image_id}).mappings().one_or_none())


def named(conn: Connection, name: str) -> list[Image]:
    """Return active images of a name, of all projects, without hidden ones."""
    rows = conn.execute(_NAMED, {"name": name}).mappings()
    return [image for row in rows if (image := _image(row)) is not None]


def existing(conn: Connection, ids: Sequence[str]) -> set[str]:
    """Return those of these texts that are ids of images."""
    return set(conn.scalars(select(images.c.id).where(in_array(cast(images.c.id, Text), ids))))


def needed(conn: Connection, ids: Sequence[str]) -> set[str]:
    """Return the needed ones of these texts: ids of images, of deleted ones of RESERVED servers, or migration files.

    The disk of a migrating server is in such a file.
    """
    return set(conn.execute(_NEEDED, {"ids": list(ids)}).scalars())


def pin(conn: Connection, image_id: str) -> bool:
    """Prevent the deletion of an image until the transaction ends; False if it does not exist."""
    return conn.execute(_PIN, {"image": image_id}).first() is not None


def snapshot_of(conn: Connection, server_id: str, name: str, occasion: str) -> Image | None:
    """Return the image of that name made from that server on that occasion, or None."""
    given = {"server_id": server_id, "name": name, "occasion": occasion}
    return _image(conn.execute(_SNAPSHOT_OF, given).mappings().one_or_none())


def listed(conn: Connection, query: ImageQuery) -> list[Image]:
    """Return the images that match a query."""
    keys = (SORTS[query.sort], images.c.created_at, images.c.id)
    ordered = [key.desc() if query.direction == "desc" else key.asc() for key in keys]
    statement = select(images).where(*_conditions(query)).order_by(*ordered).limit(query.limit)
    if query.marker is not None:
        last = select(*keys).where(images.c.id == query.marker).correlate(None).scalar_subquery()
        own = tuple_(*keys)
        statement = statement.where(own < last if query.direction == "desc" else own > last)
    return [Image(**{**row, "tags": tuple(row["tags"])}) for row in conn.execute(statement).mappings()]


def _conditions(query: ImageQuery) -> Iterator[ColumnElement[bool]]:
    own = images.c
    yield own.hidden == query.hidden
    if query.project_id is not None:
        yield _is_visible(query)
    among: Mapping[ColumnElement[object], Sequence[str] | None] = {
        cast(own.id, Text): query.ids,
        own.name: query.names,
        own.status: query.statuses,
        own.visibility: query.visibilities,
        own.disk_format: query.disk_formats,
        own.container_format: query.container_formats,
        own.project_id: query.owners,
    }
    yield from (in_array(column, values) for column, values in among.items() if values is not None)
    compared: Iterable[tuple[ColumnElement[Any], Callable[[Any, Any], ColumnElement[bool]], object]] = (
        (own.protected, eq, query.protected),
        (own.size, eq, query.size),
        (own.size, ge, query.size_min),
        (own.size, le, query.size_max),
        (own.updated_at, ge, query.changed_since),
        (own.min_disk_gb, ge, query.min_disk),
        (own.min_ram_mb, ge, query.min_ram),
    )
    yield from (compare(column, value) for column, compare, value in compared if value is not None)
    yield own.tags.contains(list(query.tags))
    yield own.properties.contains(dict(query.properties))


def _is_visible(query: ImageQuery) -> ColumnElement[bool]:
    """Return the condition that a project sees an image: it owns it, is a member, or everybody sees it."""
    member = image_members.c
    membership = exists().where(member.image_id == images.c.id, member.project_id == query.project_id)
    if query.member_status is not None:
        membership = membership.where(member.status == query.member_status)
    is_open = in_array(images.c.visibility, query.open)
    return or_(images.c.project_id == query.project_id, is_open, and_(images.c.visibility == SHARED, membership))


def move(conn: Connection, image_id: str, before: str, after: str, now: datetime) -> bool:
    """Change the status of an image from one to another; False if it has a different one, or is deleted."""
    this = (images.c.id == image_id, images.c.status == before)
    statement = update(images).where(*this).values(status=after, updated_at=now)
    return conn.execute(statement.returning(images.c.id)).first() is not None


def saving(conn: Connection, before: datetime) -> set[str]:
    """Return the ids of images whose upload began before that moment, or whose staged content was not imported."""
    # A snapshot in progress is completed by the task of its server.
    has_task = exists().where(servers.c.task_image == images.c.id)
    query = select(images.c.id).where(images.c.status.in_(("saving", STAGED)), images.c.updated_at < before, ~has_task)
    return set(conn.scalars(query))


def settle(conn: Connection, image_id: str, status: str, now: datetime, content: Content | None = None) -> bool:
    """Record the final status and content (None: there is none) once;

    False if it is final already, or the image is deleted.

    The row stays locked until the transaction ends.
    """
    values: dict[str, object] = {"size": None, "sha512": None}
    if content is not None:
        values = {
            name: value for name, value in content._asdict().items() if name != "disk_format" or value is not None
        }
    this = (images.c.id == image_id, images.c.status.in_(("queued", "saving", STAGED)))
    statement = update(images).where(*this).values(**values, status=status, updated_at=now)
    return conn.execute(statement.returning(images.c.id)).first() is not None


def edit(conn: Connection, image: Image, now: datetime) -> None:
    """Update the mutable columns of an image."""
    names = (
        *("name", "visibility", "properties", "disk_format", "container_format", "min_disk_gb", "min_ram_mb"),
        *("protected", "hidden", "tags", "project_id"),
    )
    values = {name: getattr(image, name) for name in names}
    values |= {"properties": dict(image.properties), "tags": list(image.tags), "updated_at": now}
    conn.execute(update(images).where(images.c.id == image.id).values(values))


def delete(conn: Connection, image_id: str) -> bool:
    """Delete an image; False if it does not exist."""
    return conn.execute(delete_from(images).where(images.c.id == image_id).returning(images.c.id)).first() is not None


def shelved_in(conn: Connection, image_id: str) -> str | None:
    """Return the server that is shelved in this image, or being shelved; None: there is none."""
    # A server that is being shelved has it as `task_image` until its guest is deleted.
    is_shelving = and_(servers.c.task_image == image_id, servers.c.task == "shelving")
    query = select(servers.c.id).where(or_(servers.c.shelved_image == image_id, is_shelving)).limit(1)
    return conn.scalar(query)


def _is_uuid(text: str) -> bool:
    try:
        return str(UUID(text)) == text.lower()
    except ValueError:
        return False


def _row(image: Image) -> dict[str, object]:
    row = asdict(image) | {"properties": json.dumps(dict(image.properties)), "tags": list(image.tags)}
    return {key: value for key, value in row.items() if key not in ("created_at", "updated_at")}


def _image(row: RowMapping | None) -> Image | None:
    return Image(**{**row, "tags": tuple(row["tags"])}) if row else None
