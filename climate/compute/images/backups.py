"""Backups of servers: images of which a server keeps so many of each type, and the oldest are deleted."""

from collections.abc import Mapping
from contextlib import suppress

from climate.compute.context import Compute
from climate.compute.errors import ComputeError
from climate.compute.images import image_catalog
from climate.compute.models.image import ACTIVE
from climate.compute.store.projects import images as rows
from climate.compute.store.projects.images import ImageQuery
from climate.database.connections import reading
from climate.whole_numbers import whole_number

BACKUP = "backup"
TYPE, ROTATION = "backup_type", "backup_rotation"
"""Properties of a backup: its type, and how many backups of the type its server keeps."""


def properties(metadata: Mapping[str, str], backup_type: str, rotation: int) -> dict[str, str]:
    """Return the properties of a backup."""
    return {**metadata, "image_type": BACKUP, TYPE: backup_type, ROTATION: str(rotation)}


def rotate(compute: Compute, image_id: str) -> None:
    """Delete the oldest backups of the server and type of a backup that is complete, beyond its rotation.

    Protected images stay. Nothing happens for an image that is no backup, or has no content.
    """
    with reading(compute.engine) as conn:
        made = rows.get(conn, image_id)
        if made is None or made.status != ACTIVE or made.properties.get("image_type") != BACKUP:
            return
        rotation = str(made.properties.get(ROTATION, ""))
        same = {key: str(made.properties.get(key, "")) for key in ("image_type", TYPE, "instance_uuid")}
        of_project = ImageQuery(made.project_id, (), owners=[str(made.project_id)], statuses=[ACTIVE], properties=same)
        kept = rows.listed(conn, of_project)
    if (number := whole_number(rotation)) is not None:
        for old in kept[number:]:
            with suppress(ComputeError):
                image_catalog.delete(compute, old.id)
