"""Query string of a list of images."""

from collections.abc import Mapping
from typing import Any

from flask import request

from api.compute import validation
from api.image.image_body import VISIBILITIES
from api.paging import page
from api.request_context import caller
from climate.compute.models.image import COMMUNITY, PUBLIC
from climate.compute.models.image_member import ACCEPTED, MEMBER_STATUSES
from climate.compute.store.projects.images import SORTS, ImageQuery
from climate.domain.errors import InvalidInput

IGNORED = frozenset({"limit", "marker", "sort", "sort_key", "sort_dir", "member_status", "visibility", "fields"})

LISTS = {
    "id": "ids",
    "name": "names",
    "status": "statuses",
    "disk_format": "disk_formats",
    "container_format": "container_formats",
    "owner": "owners",
}
"""Keys with one value, or several by commas after `in:`."""

NUMBERS, FLAGS = ("size", "size_min", "size_max"), ("protected",)


def read_query() -> ImageQuery:
    """Return the query; a key that is not an image attribute is compared with the property of that name.

    Raises InvalidInput.
    """
    given = request.args
    sort, direction = _order()
    own: dict[str, Any] = {field: _words(given[key]) for key, field in LISTS.items() if key in given}
    own |= {key: validation.count(given[key], key, 0, 2**62) for key in NUMBERS if key in given}
    own |= {key: validation.flag(given[key], key) for key in FLAGS if key in given}
    known = IGNORED | LISTS.keys() | {*NUMBERS, *FLAGS, "tag", "os_hidden"}
    return ImageQuery(
        project_id=validation.own_project(),
        hidden=validation.query_flag("os_hidden"),
        tags=given.getlist("tag"),
        properties={key: value for key, value in given.items() if key not in known},
        sort=sort,
        direction=direction,
        limit=page().limit + 1,
        member_status=_member_status(given.get("member_status", ACCEPTED)),
        **own,
        **_visibility(given.get("visibility")),
    )


def _member_status(word: str) -> str | None:
    if word not in ("all", *MEMBER_STATUSES):
        raise InvalidInput(f"member_status must be one of all, {', '.join(MEMBER_STATUSES)}")
    return None if word == "all" else word


def _visibility(word: str | None) -> Mapping[str, Any]:
    """Return the visibility; community images of other projects are listed only on request."""
    if word not in (None, "all", *VISIBILITIES):
        raise InvalidInput(f"visibility must be one of all, {', '.join(VISIBILITIES)}")
    result: dict[str, object] = {"open": (PUBLIC, COMMUNITY) if word in ("all", COMMUNITY) else (PUBLIC,)}
    if word not in (None, "all"):
        result["visibilities"] = [word]
    elif word is None and caller().is_admin:
        result["open"] = (PUBLIC, COMMUNITY)
    return result


def _words(text: str) -> list[str]:
    return text.removeprefix("in:").split(",") if text.startswith("in:") else [text]


def _order() -> tuple[str, str]:
    """Return the order of `sort=key:direction`, or of sort_key and sort_dir; the default is newest first."""
    key, _, direction = request.args.get("sort", "").partition(":")
    key = key or request.args.get("sort_key", "created_at")
    direction = direction or request.args.get("sort_dir", "desc")
    if key not in SORTS or direction not in ("asc", "desc"):
        raise InvalidInput(f"images are sorted by one of {', '.join(SORTS)}, asc or desc")
    return key, direction
