"""Lists: complete by default, as Blazar's clients expect, or paged on request."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from marshmallow import fields, validate

from api.paging import next_links, page
from api.request_context import here
from api.reservation.view_decorator import Strict

T = TypeVar("T")

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
    answer: dict[str, object] = {key: shown}
    more = len(rows) > part.limit
    if more or part.asked:
        last = str(shown[-1].get("id") or shown[-1].get("resource_id")) if more else ""
        answer[f"{key}_links"] = next_links(here(), last, page()) if more else []
    return answer
