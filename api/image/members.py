"""Members of images: the projects that an image is shared with."""

from flask import Blueprint

from api.body import read_object
from api.compute import common_body_keys as keys
from api.compute import validation
from api.request_context import compute
from api.schema.body import Body
from climate.compute.images import members
from climate.compute.models.image_member import MEMBER_STATUSES, Member

View = dict[str, object]

blueprint = Blueprint("image-members", __name__, url_prefix="/image/v2/images/<image_id>/members")


class NewMember(Body):
    """A project to share an image with."""

    UNKNOWN = "Unknown key {first}: a new member has {known}"

    member = keys.name(required=True)


class Answer(Body):
    """The answer of a project that an image is shared with."""

    UNKNOWN = "Unknown key {first}: the answer of a member has {known}"

    status = keys.word(
        {status: status for status in MEMBER_STATUSES},
        "{field} must be one of pending, accepted, rejected, got {value!r}",
        required=True,
    )


NEW, ANSWER = NewMember(), Answer()


@blueprint.get("")
def listing(image_id: str) -> View:
    """List the members of an image; a member sees itself only."""
    validation.may_read()
    shown = members.listed(compute(), image_id, validation.own_project())
    return {"members": [_view(member) for member in shown], "schema": "/v2/schemas/members"}


@blueprint.post("")
def share(image_id: str) -> View:
    """Share an image with a project."""
    validation.may_write()
    project_id = NEW.read(read_object())["member"]
    return _view(members.add(compute(), image_id, project_id, validation.own_project()))


@blueprint.get("/<member_id>")
def show(image_id: str, member_id: str) -> View:
    """Show one member of an image."""
    validation.may_read()
    return _view(members.get(compute(), image_id, member_id, validation.own_project()))


@blueprint.put("/<member_id>")
def answer(image_id: str, member_id: str) -> View:
    """Accept or reject an image that is shared with the caller's project."""
    validation.may_write()
    status = ANSWER.read(read_object())["status"]
    return _view(members.answer(compute(), image_id, member_id, status, validation.own_project()))


@blueprint.delete("/<member_id>")
def remove(image_id: str, member_id: str) -> tuple[str, int]:
    """End the sharing of an image with a project."""
    validation.may_write()
    members.remove(compute(), image_id, member_id, validation.own_project())
    return "", 204


def _view(member: Member) -> View:
    return {
        "image_id": member.image_id,
        "member_id": member.project_id,
        "status": member.status,
        "created_at": f"{member.created_at:%Y-%m-%dT%H:%M:%SZ}",
        "updated_at": f"{member.updated_at:%Y-%m-%dT%H:%M:%SZ}",
        "schema": "/v2/schemas/member",
    }
