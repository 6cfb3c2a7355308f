"""Pages of lists: `limit` and `marker` in the query, and the link to the next page."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import urlencode

from flask import request

from climate.domain.errors import InvalidInput

T = TypeVar("T")

MOST = 1000
"""Maximum of rows of a page."""


@dataclass(frozen=True, slots=True)
class Page:
    """The requested part of a list: at most `limit` rows after the row with the id `marker`."""

    limit: int
    marker: str | None
    asked: bool
    """Whether the client gave a limit."""


def page(*, may_be_empty: bool = False) -> Page:
    """Return the page in the query string; InvalidInput if `limit` is not a whole number above 0.

    `may_be_empty`: 0 is accepted too, and asks for no row.
    """
    text = request.args.get("limit")
    limit = 0 if may_be_empty and text == "0" else _limit(text)
    return Page(limit, request.args.get("marker") or None, text is not None)


def _limit(text: str | None) -> int:
    if text is None:
        return MOST
    if not (text.isascii() and text.isdigit()) or not text.strip("0"):
        raise InvalidInput(f"limit must be a whole number from 1 to {MOST}, not {text[:40]!r}")
    return MOST if len(text) > len(str(MOST)) else min(int(text), MOST)


def unknown_marker(marker: str) -> InvalidInput:
    """Return the error for a marker that is not in the list."""
    return InvalidInput(f"marker {marker[:80]!r} is not an entry of this list")


def cut(rows: Sequence[T], page: Page, id_of: Callable[[T], str]) -> tuple[list[T], bool]:
    """Return the page of a list in memory, and whether more follow; InvalidInput for an unknown marker."""
    start = 0
    if page.marker is not None:
        ids = [id_of(row) for row in rows]
        if page.marker not in ids:
            raise unknown_marker(page.marker)
        start = ids.index(page.marker) + 1
    return list(rows[start : start + page.limit]), len(rows) > start + page.limit


def next_links(url: str, last_id: str, page: Page) -> list[dict[str, object]]:
    """Return `[{"rel": "next", "href": …}]`: the same URL with the marker `last_id`."""
    query = [(key, value) for key, value in request.args.items(multi=True) if key not in ("marker", "limit")]
    query += [("limit", str(page.limit)), ("marker", last_id)]
    return [{"rel": "next", "href": f"{url}?{urlencode(query)}"}]
