"""Tags of projects."""

from flask import Blueprint

from api.body import read_object
from api.identity import read_access
from api.identity.views import links
from api.request_context import caller, identity
from climate.domain.errors import NotFound
from climate.domain.policy import require
from climate.identity import projects_and_users, read_operations

blueprint = Blueprint("identity-project-tags", __name__, url_prefix="/identity/v3/projects/<project_id>/tags")


@blueprint.get("")
def listing(project_id: str) -> dict[str, object]:
    """List the tags of a project."""
    return _tags(project_id, _of(project_id))


@blueprint.put("")
def replace(project_id: str) -> dict[str, object]:
    """Replace all tags of a project."""
    require(caller(), "identity:admin")
    tags = projects_and_users.check_tags("tags", read_object().get("tags"))
    return _tags(project_id, projects_and_users.change_project(identity(), caller(), project_id, {"tags": tags}).tags)


@blueprint.delete("")
def remove_all(project_id: str) -> tuple[str, int]:
    """Remove all tags from a project."""
    require(caller(), "identity:admin")
    projects_and_users.change_project(identity(), caller(), project_id, {"tags": ()})
    return "", 204


@blueprint.get("/<tag>")
def check(project_id: str, tag: str) -> tuple[str, int]:
    """Check whether a project has a tag; clients use HEAD."""
    if tag not in _of(project_id):
        raise NotFound(f"Could not find project tag: {tag[:80]}.")
    return "", 204


@blueprint.put("/<tag>")
def add(project_id: str, tag: str) -> tuple[str, int]:
    """Add a tag to a project."""
    require(caller(), "identity:admin")
    projects_and_users.change_tag(identity(), caller(), project_id, tag, present=True)
    return "", 201


@blueprint.delete("/<tag>")
def remove(project_id: str, tag: str) -> tuple[str, int]:
    """Remove a tag from a project."""
    require(caller(), "identity:admin")
    projects_and_users.change_tag(identity(), caller(), project_id, tag, present=False)
    return "", 204


def _of(project_id: str) -> tuple[str, ...]:
    return read_operations.project(identity(), project_id, read_access.own_user_id()).tags


def _tags(project_id: str, tags: tuple[str, ...]) -> dict[str, object]:
    return {"tags": list(tags), "links": links(f"projects/{project_id}/tags")}
