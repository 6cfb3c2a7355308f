"""Ids in paths and markers: a malformed id gets the same answer as an unknown one."""

import re
from uuid import UUID

from api.paging import unknown_marker
from climate.domain.errors import NotFound
from climate.whole_numbers import whole_number

SHAPE = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", re.ASCII)


def path_id(text: str, unknown: str) -> UUID:
    """Return the id in a path; NotFound with this message if it is malformed."""
    if SHAPE.fullmatch(text):
        return UUID(text)
    raise NotFound(unknown)


def marker_id(text: str | None) -> UUID | None:
    """Return the id after which a page starts."""
    if text is None:
        return None
    if SHAPE.fullmatch(text):
        return UUID(text)
    raise unknown_marker(text)


def marker_number(text: str | None) -> int | None:
    """Return the number after which a page starts."""
    if text is None:
        return None
    number = whole_number(text)
    if number is None:
        raise unknown_marker(text)
    return number
