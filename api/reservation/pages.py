"""Lists: complete by default, as Blazar's clients expect, or paged on request."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar
from uuid import UUID

from marshmallow import fields, validate

from api import unreadable_leases
from api.paging import next_links, page
from api.request_context import here
from api.reservation.view_decorator import Strict
from climate.domain.errors import UnreadableLease

T = TypeVar("T")
Shown = TypeVar("Shown")

MOST_UNASKED = 10_000
"""Rows for a client without limit.  Blazar's clients do not page, and search names in the whole list."""


class Paged(Strict):
    """Query of lists."""

    limit = fields.Integer(validate=validate.Range(min=1), metadata={"description": "Rows of a page; 1000 at most."})
    marker = fields.String(metadata={"description": "Id of the last row of the previous page."})


@dataclass(frozen=True, slots=True)
class RequestedPage:
    """The requested part of a list: up to `limit` rows after `marker`."""

    limit: int
    marker: str | None
    asked: bool

    @property
    def fetch(self) -> int:
        """Return the number of rows to read: one more than shown, to know whether there are more."""
        return self.limit + 1


def requested() -> RequestedPage:
    """Return the part of the list that this request asks for."""
    asked = page()
    return RequestedPage(asked.limit if asked.asked else MOST_UNASKED, asked.marker, asked.asked)


def listing(
    key: str, rows: Sequence[T], part: RequestedPage, body_of: Callable[[T], dict[str, object]]
) -> dict[str, object]:
    """Return the answer with the rows, and the link to the next page if there are more."""
    shown = [body_of(row) for row in rows[: part.limit]]
    more = len(rows) > part.limit
    return _answer(key, shown, part, str(shown[-1].get("id") or shown[-1].get("resource_id")) if more else None)


def readable_listing(
    key: str,
    rows: Sequence[tuple[UUID, Shown | UnreadableLease]],
    part: RequestedPage,
    body_of: Callable[[UUID, Shown], dict[str, object]],
) -> dict[str, object]:
    """Return the answer with the readable rows, given by their ids; the header Warning names the others.

    A page may have fewer rows than its limit, or none: its link leads on from its last row, readable or not.
    """
    present = rows[: part.limit]
    unreadable_leases.warn(row for _, row in present)
    shown = [body_of(number, row) for number, row in present if not isinstance(row, UnreadableLease)]
    return _answer(key, shown, part, str(present[-1][0]) if len(rows) > part.limit else None)


def _answer(key: str, shown: Sequence[dict[str, object]], part: RequestedPage, last: str | None) -> dict[str, object]:
    """Return the answer of a list; `last` is the id of its last row if more follow."""
    answer: dict[str, object] = {key: shown}
    if last is not None or part.asked:
        answer[f"{key}_links"] = [] if last is None else next_links(here(), last, page())
    return answer
