"""Tags of servers, whole and one by one."""

from collections.abc import Sequence

from flask import Response

from api.body import read_object
from api.compute import validation
from api.compute.blueprint import compute_blueprint
from api.compute.microversion import since
from api.compute.servers.servers import find, who
from api.compute.servers.tag_bodies import MOST, TAGS
from api.compute.servers.tag_bodies import tag as read_tag
from api.compute.servers.view import links
from api.request_context import compute
from climate.compute import server_operations
from climate.domain.errors import InvalidInput, NotFound

Body = dict[str, list[str]]

blueprint = compute_blueprint("server-tags")


@blueprint.get("/servers/<server_id>/tags")
def listing(server_id: str) -> Body:
    """The tags of a server."""
    _since_tags()
    return {"tags": list(find(server_id).tags)}


@blueprint.put("/servers/<server_id>/tags")
def replace(server_id: str) -> Body:
    """Replace all tags of a server."""
    _may_write()
    given = TAGS.read(read_object())["tags"]
    return {"tags": list(server_operations.set_tags(compute(), who(server_id), lambda there: given))}


@blueprint.delete("/servers/<server_id>/tags")
def clear(server_id: str) -> tuple[str, int]:
    """Delete all tags of a server."""
    _may_write()
    server_operations.set_tags(compute(), who(server_id), lambda there: ())
    return "", 204


@blueprint.get("/servers/<server_id>/tags/<tag>")
def check(server_id: str, tag: str) -> tuple[str, int]:
    """Check that a server has a tag."""
    _since_tags()
    _check_has(server_id, find(server_id).tags, tag)
    return "", 204


@blueprint.put("/servers/<server_id>/tags/<tag>")
def add(server_id: str, tag: str) -> Response:
    """Add a tag to a server."""
    _may_write()
    wanted, before = read_tag(tag), set[str]()

    def with_it(there: Sequence[str]) -> Sequence[str]:
        before.update(there)
        return _within_limit(sorted({*there, wanted}))

    server_operations.set_tags(compute(), who(server_id), with_it)
    if wanted in before:
        return Response(status=204)
    return Response(status=201, headers={"Location": links(f"servers/{server_id}/tags/{wanted}")[0]["href"]})


@blueprint.delete("/servers/<server_id>/tags/<tag>")
def remove(server_id: str, tag: str) -> tuple[str, int]:
    """Delete one tag of a server."""
    _may_write()

    def without_it(there: Sequence[str]) -> Sequence[str]:
        _check_has(server_id, there, tag)
        return [other for other in there if other != tag]

    server_operations.set_tags(compute(), who(server_id), without_it)
    return "", 204


def _since_tags() -> None:
    if not since(26):
        raise NotFound("Servers have tags since microversion 2.26.")


def _may_write() -> None:
    validation.may_write()
    _since_tags()


def _within_limit(tags: list[str]) -> list[str]:
    if len(tags) > MOST:
        raise InvalidInput(f"The number of tags exceeded the per-server limit {MOST}")
    return tags


def _check_has(server_id: str, tags: Sequence[str], tag: str) -> None:
    if tag not in tags:
        raise NotFound(f"Server {server_id} has no tag '{tag[:60]}'")
