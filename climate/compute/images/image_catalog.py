"""Catalog of images: read, registered, changed and deleted; `climate.compute.images.image_data` has their contents."""

from collections.abc import Callable
from dataclasses import replace

from sqlalchemy import Connection

from climate.compute.context import Compute
from climate.compute.errors import BadRequest, Conflict, Forbidden, NotFound
from climate.compute.images import image_data, quota
from climate.compute.models.image import ACTIVE, DEACTIVATED, Image
from climate.compute.store.projects import image_members
from climate.compute.store.projects import images as rows
from climate.compute.store.projects.images import ImageQuery, Used
from climate.compute.zones.builds import request_spec
from climate.database.connections import reading


def listed(compute: Compute, query: ImageQuery, project_id: str | None) -> list[Image]:
    """Return the images that match a query.

    Raises NotFound if its marker is no image visible to the project. None: any project's.
    """
    with reading(compute.engine) as conn:
        if query.marker is not None and not is_shown(conn, rows.get(conn, query.marker), project_id):
            raise unknown(query.marker)
        return rows.listed(conn, query)


def get(compute: Compute, image_id: str, project_id: str | None) -> Image:
    """Return an image by its id; NotFound, also if it is not visible to the project. None: any project's."""
    with reading(compute.engine) as conn:
        result = rows.get(conn, image_id)
        is_seen = is_shown(conn, result, project_id)
    if result is None or not is_seen:
        raise unknown(image_id)
    return result


def check_bootable(compute: Compute, image_id: str, project_id: str | None) -> None:
    """Check that an image is visible to a project and has its content; else BadRequest. None: any project's."""
    with reading(compute.engine) as conn:
        result = rows.get(conn, image_id)
        is_seen = is_shown(conn, result, project_id)
    if result is None or not is_seen:
        raise BadRequest(f"Image {image_id} could not be found.")
    if result.status != ACTIVE:
        raise BadRequest(f"Image {image_id} is not active.")


def id_of(compute: Compute, name: str, project_id: str) -> str:
    """Return the id of the image of a name; BadRequest unless exactly one is visible to the project."""
    with reading(compute.engine) as conn:
        return request_spec.image_named(conn, name, project_id)


def used(compute: Compute, project_id: str) -> Used:
    """Return the usage of images by a project."""
    with reading(compute.engine) as conn:
        return quota.used(conn, project_id)


def register(compute: Compute, image: Image) -> Image:
    """Register an image, whose content is uploaded later.

    Raises BadRequest for properties that name an unknown architecture or hypervisor, NoImageRoom for one too many,
    Conflict for an id that was ever used.
    """
    with compute.engine.begin() as conn:
        image_data.check_words(conn, image)
        quota.check_count(conn, compute.image_limits, image.project_id)
        made = rows.insert(conn, image)
    if made is None:
        raise Conflict(f"Image ID {image.id} already exists!")
    return made


def change(compute: Compute, image_id: str, changed: Callable[[Image], Image]) -> None:
    """Store the result of `changed` for an image whose row is locked.

    Raises NotFound, BadRequest as `register` does, and the errors of `changed`.
    """
    with compute.engine.begin() as conn:
        image = changed(_locked(conn, image_id))
        image_data.check_words(conn, image)
        rows.edit(conn, image, compute.now(conn))


def change_tags(compute: Compute, image_id: str, changed: Callable[[Image], Image]) -> None:
    """Store the result of `changed` for the tags of an image; NotFound, and the errors of `changed`."""
    with compute.engine.begin() as conn:
        rows.edit(conn, changed(_locked(conn, image_id)), compute.now(conn))


def deactivate(compute: Compute, image_id: str) -> None:
    """Stop giving out the content of an image, and creating servers from it; Forbidden unless it is active."""
    _switch(compute, image_id, ACTIVE, DEACTIVATED)


def reactivate(compute: Compute, image_id: str) -> None:
    """Give out the content of a deactivated image again; Forbidden for an image in another status."""
    _switch(compute, image_id, DEACTIVATED, ACTIVE)


def _switch(compute: Compute, image_id: str, before: str, after: str) -> None:
    with compute.engine.begin() as conn:
        status = _locked(conn, image_id).status
        if status not in (before, after):
            raise Forbidden(f"Image {image_id} is {status}; only an image that is {before} becomes {after}.")
        rows.move(conn, image_id, before, after, compute.now(conn))


def delete_tag(compute: Compute, image_id: str, tag: str) -> None:
    """Delete a tag of an image; NotFound when there is no such image or tag."""
    with compute.engine.begin() as conn:
        image = _locked(conn, image_id)
        if tag not in image.tags:
            raise NotFound(f"Image {image_id} has no tag {tag[:80]}")
        left = tuple(each for each in image.tags if each != tag)
        rows.edit(conn, replace(image, tags=left), compute.now(conn))


def delete(compute: Compute, image_id: str) -> None:
    """Delete an image and its content.

    Raises NotFound, Forbidden if it is protected, Conflict if a server is shelved in it.
    """
    with compute.engine.begin() as conn:
        if _locked(conn, image_id).protected:
            raise Forbidden(f"Image {image_id} is protected and cannot be deleted.")
        image_data.check_unused(conn, image_id)
        image_data.drop(conn, image_id)
    image_data.forget(compute, image_id)


def is_shown(conn: Connection, image: Image | None, project_id: str | None) -> bool:
    """Return whether a project, or None for all of them, sees an image that may be missing."""
    return image is not None and (project_id is None or image_members.is_seen(conn, image, project_id))


def _locked(conn: Connection, image_id: str) -> Image:
    result = rows.get(conn, image_id, lock=True)
    if result is None:
        raise unknown(image_id)
    return result


def unknown(image_id: str) -> NotFound:
    """Return the refusal of an image that does not exist, or that a project does not see."""
    return NotFound(f"No image found with ID {image_id[:80]}")
