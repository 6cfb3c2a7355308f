"""Filters and pages of Network API lists."""

from collections.abc import Iterable, Sequence

from flask import request

from api.paging import cut, page
from climate.domain.errors import NotFound

Body = dict[str, object]

PART = "ip_address_substr="
"""Beginning of a filter by a part of an address."""

PAGING = frozenset({"limit", "marker", "fields", "sort_key", "sort_dir", "page_reverse"})


def fitting(things: Iterable[Body], *, skipped: frozenset[str] = frozenset()) -> list[Body]:
    """Return the page of entries that match the query; an unknown key matches nothing.

    `skipped`: keys of the query that are not filters here.
    """
    wanted = {key: _lower(values) for key, values in request.args.lists() if key not in PAGING | skipped}
    matching = [thing for thing in things if all(key in thing and _fits(thing[key], wanted[key]) for key in wanted)]
    return [selected_fields(thing) for thing in cut(matching, page(), lambda thing: str(thing["id"]))[0]]


def selected_fields(thing: Body) -> Body:
    """Return the keys of an entry that the query names by `fields`; all if it names none that there is."""
    wanted = set(request.args.getlist("fields")) & thing.keys()
    return {key: value for key, value in thing.items() if key in wanted} if wanted else thing


def _fits(value: object, wanted: set[str]) -> bool:
    """Return whether a value matches; lists match by one entry, and objects by one key, as in
    ip_address=10.0.0.3 or ip_address_substr=10.0.
    """
    if not isinstance(value, list):
        return str(value).lower() in wanted
    objects = [entry for entry in value if isinstance(entry, dict)]
    pairs = [f"{key}={part}" for entry in objects for key, part in entry.items()]
    if _has_part_of_address(objects, wanted):
        return True
    return bool(_lower([*pairs, *(entry for entry in value if isinstance(entry, str))]) & wanted)


def _has_part_of_address(objects: Sequence[Body], wanted: set[str]) -> bool:
    parts = [text.removeprefix(PART) for text in wanted if text.startswith(PART)]
    return any(part in str(entry.get("ip_address")) for part in parts for entry in objects)


def _lower(values: Iterable[str]) -> set[str]:
    return {value.lower() for value in values}


def one(things: Iterable[Body], wanted: str, what: str) -> Body:
    """Return the entry with this id. Raise NotFound if there is none."""
    for thing in things:
        if thing["id"] == wanted:
            return thing
    raise NotFound(f"{what} {wanted[:80]} could not be found.")
