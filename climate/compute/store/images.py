"""Images: a registry of names, and of snapshots."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, text

from climate.compute.image import Image

_COLUMNS = """id::text, name, project_id, status, visibility, disk_format, container_format, size, sha512, properties,
              server_id::text, created_at, updated_at"""

_INSERT = text(f"""
    INSERT INTO compute_images (id, name, project_id, status, visibility, disk_format, container_format, size, sha512,
                                properties, server_id)
    VALUES (CAST(:id AS uuid), :name, :project_id, :status, :visibility, :disk_format, :container_format, :size,
            :sha512, CAST(:properties AS jsonb), CAST(:server_id AS uuid))
    ON CONFLICT DO NOTHING RETURNING {_COLUMNS}
""")

_GET = text(f"SELECT {_COLUMNS} FROM compute_images WHERE id::text = :id")

_LIST = text(f"""
    SELECT {_COLUMNS} FROM compute_images i
    WHERE (CAST(:project_id AS text) IS NULL OR project_id = :project_id OR visibility = 'public')
      AND (CAST(:name AS text) IS NULL OR name = :name)
      AND (CAST(:status AS text) IS NULL OR status = :status)
      AND (CAST(:ids AS text[]) IS NULL OR id::text = ANY(CAST(:ids AS text[])))
      AND (CAST(:marker AS text) IS NULL OR (created_at, id) <
              (SELECT m.created_at, m.id FROM compute_images m WHERE m.id::text = :marker))
    ORDER BY created_at DESC, id DESC LIMIT :limit
""")

_SNAPSHOT_OF = text(f"""
    SELECT {_COLUMNS} FROM compute_images
    WHERE server_id = CAST(:server_id AS uuid) AND name = :name AND properties ->> 'occasion' = :occasion
      AND status <> 'killed'
""")

_SETTLE = text("""
    UPDATE compute_images SET status = :status, size = :size, sha512 = :sha512, updated_at = :now
    WHERE id = CAST(:id AS uuid)
""")

_EDIT = text("""
    UPDATE compute_images SET name = :name, visibility = :visibility, properties = CAST(:properties AS jsonb),
                              updated_at = :now
    WHERE id = CAST(:id AS uuid)
""")

_DELETE = text("DELETE FROM compute_images WHERE id::text = :id RETURNING id")


def insert(conn: Connection, image: Image) -> Image | None:
    """Write an image down; None when this snapshot exists already."""
    given = {
        "id": image.id,
        "name": image.name,
        "project_id": image.project_id,
        "status": image.status,
        "visibility": image.visibility,
        "disk_format": image.disk_format,
        "container_format": image.container_format,
        "size": image.size,
        "sha512": image.sha512,
        "properties": json.dumps(dict(image.properties)),
        "server_id": image.server_id,
    }
    row = conn.execute(_INSERT, given).mappings().one_or_none()
    return Image(**row) if row else None


def get(conn: Connection, image_id: str) -> Image | None:
    """The image, or None."""
    row = conn.execute(_GET, {"id": image_id}).mappings().one_or_none()
    return Image(**row) if row else None


def snapshot_of(conn: Connection, server_id: str, name: str, occasion: str) -> Image | None:
    """The image of that name made from that server on that occasion, or None."""
    row = (
        conn.execute(_SNAPSHOT_OF, {"server_id": server_id, "name": name, "occasion": occasion})
        .mappings()
        .one_or_none()
    )
    return Image(**row) if row else None


def listed(
    conn: Connection,
    project_id: str | None,
    wanted: Mapping[str, str | None],
    ids: Sequence[str] | None = None,
    limit: int = 1000,
) -> list[Image]:
    """Images a project sees (None: all), newest first; `wanted` may hold name, status, marker."""
    given: dict[str, Any] = {key: wanted.get(key) for key in ("name", "status", "marker")}
    given |= {"project_id": project_id, "ids": list(ids) if ids is not None else None, "limit": limit}
    return [Image(**row) for row in conn.execute(_LIST, given).mappings()]


def settle(conn: Connection, image_id: str, status: str, now: datetime, content: tuple[int, str] | None = None) -> None:
    """Record what became of the content: its (bytes, SHA-512), or None."""
    size, sha512 = content or (None, None)
    conn.execute(_SETTLE, {"id": image_id, "status": status, "size": size, "sha512": sha512, "now": now})


def edit(conn: Connection, image: Image, now: datetime) -> None:
    """Write the name, visibility and properties of an image down."""
    properties = json.dumps(dict(image.properties))
    given = {"id": image.id, "name": image.name, "visibility": image.visibility, "properties": properties, "now": now}
    conn.execute(_EDIT, given)


def delete(conn: Connection, image_id: str) -> bool:
    """Drop an image; False when there is none."""
    return conn.execute(_DELETE, {"id": image_id}).first() is not None
