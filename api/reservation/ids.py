"""Ids in paths and markers: what cannot be one is answered like one that is nobody's."""

import re
from uuid import UUID

from api.paging import unknown_marker
from climate.domain.errors import NotFound

SHAPE = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", re.ASCII)

LONGEST_NUMBER = 18
"""Digits of a number that a list is ordered by: more do not fit into the database."""


def path_id(text: str, unknown: str) -> UUID:
    """The id in a path; NotFound with these words where it can be nobody's."""
    if SHAPE.fullmatch(text):
        return UUID(text)
    raise NotFound(unknown)


def marker_id(text: str | None) -> UUID | None:
    """The id that a page begins after."""
    if text is None:
        return None
    if SHAPE.fullmatch(text):
        return UUID(text)
    raise unknown_marker(text)


def marker_number(text: str | None) -> int | None:
    """Return the number that a page begins after."""
    if text is None:
        return None
    if not (text.isascii() and text.isdigit()) or len(text) > LONGEST_NUMBER:
        raise unknown_marker(text)
    return int(text)
