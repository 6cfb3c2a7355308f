"""Sharing of images: the owner names projects, and each of them accepts the image or rejects it."""

from sqlalchemy import Connection

from climate.compute.context import Compute
from climate.compute.errors import Conflict, Forbidden, NoImageRoom, NotFound
from climate.compute.images import image_catalog
from climate.compute.models.image import SHARED, Image
from climate.compute.models.image_member import Member
from climate.compute.store.projects import image_members as rows
from climate.compute.store.projects import images
from climate.database.connections import reading

MOST = 128
"""Maximum of members of an image."""


def listed(compute: Compute, image_id: str, project_id: str | None) -> list[Member]:
    """Return the members of an image that a project sees: all for the owner and for None, itself for a member.

    Raises NotFound, and Forbidden for an image that is not shared.
    """
    with reading(compute.engine) as conn:
        image = _visible(conn, image_id, project_id)
        everybody = rows.listed(conn, image.id)
    is_owner = project_id in (None, image.project_id)
    return [member for member in everybody if is_owner or member.project_id == project_id]


def get(compute: Compute, image_id: str, member_id: str, project_id: str | None) -> Member:
    """Return a member of an image; NotFound, also for another member than the project that asks."""
    for member in listed(compute, image_id, project_id):
        if member.project_id == member_id:
            return member
    raise _none(image_id, member_id)


def add(compute: Compute, image_id: str, member_id: str, project_id: str | None) -> Member:
    """Share an image with a project.

    Raises NotFound, and Forbidden if the caller's project does not own the image. Raises Conflict if it is shared with
    it already, and NoImageRoom for one project too many.
    """
    with compute.engine.begin() as conn:
        image = _visible(conn, image_id, project_id, lock=True)
        _check_owner(image, project_id)
        if len(rows.listed(conn, image_id)) >= MOST:
            raise NoImageRoom(f"Image {image_id} has {MOST} members, which is the maximum. Remove one first.")
        member = rows.add(conn, image_id, member_id)
    if member is None:
        raise Conflict(f"Image {image_id} is shared with project {member_id[:80]} already.")
    return member


def answer(compute: Compute, image_id: str, member_id: str, status: str, project_id: str | None) -> Member:
    """Record that a member accepts an image, rejects it, or has not decided.

    Raises NotFound, and Forbidden for another project than the member, also for the owner. None: an administrator.
    """
    with compute.engine.begin() as conn:
        image = _visible(conn, image_id, project_id, lock=True)
        if project_id not in (None, member_id):
            _check_owner(image, project_id)
            raise Forbidden(f"Only project {member_id[:80]} sets its status as a member of image {image_id}.")
        member = rows.answer(conn, image_id, member_id, status, compute.now(conn))
    if member is None:
        raise _none(image_id, member_id)
    return member


def remove(compute: Compute, image_id: str, member_id: str, project_id: str | None) -> None:
    """End the sharing of an image with a project; NotFound, and Forbidden for others than the owner."""
    with compute.engine.begin() as conn:
        _check_owner(_visible(conn, image_id, project_id, lock=True), project_id)
        if not rows.drop(conn, image_id, member_id):
            raise _none(image_id, member_id)


def _visible(conn: Connection, image_id: str, project_id: str | None, *, lock: bool = False) -> Image:
    image = images.get(conn, image_id, lock=lock)
    if image is None or not image_catalog.is_shown(conn, image, project_id):
        raise image_catalog.unknown(image_id)
    if image.visibility != SHARED:
        raise Forbidden(f"Only shared images have members, and image {image.id} is {image.visibility}.")
    return image


def _check_owner(image: Image, project_id: str | None) -> None:
    if project_id not in (None, image.project_id):
        raise Forbidden(f"You are not permitted to change the members of image {image.id}.")


def _none(image_id: str, member_id: str) -> NotFound:
    return NotFound(f"Image {image_id[:80]} has no member {member_id[:80]}")
