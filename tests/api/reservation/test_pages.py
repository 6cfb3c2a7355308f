"""Pages of lists, with and without rows that cannot be read."""

from urllib.parse import urlsplit
from uuid import UUID

from flask import Flask, g

from api.reservation import pages
from api.reservation.pages import RequestedPage
from climate.domain.errors import UnreadableLease
from tests.conftest import MEMBER

ONE, TWO, THREE = (UUID(int=number) for number in (1, 2, 3))
BROKEN = UnreadableLease(TWO, MEMBER.project_id)


def _queries(answer: dict[str, object]) -> list[str]:
    links = answer.get("rows_links")
    assert isinstance(links, list)
    return [urlsplit(link["href"]).query for link in links]


def test_link_leads_on_from_the_last_row(app: Flask) -> None:
    with app.test_request_context("/reservation/v1/leases?limit=2&name=a"):
        answer = pages.listing("rows", [1, 2, 3], RequestedPage(2, None, True), lambda row: {"id": row})
    assert answer["rows"] == [{"id": 1}, {"id": 2}]
    assert _queries(answer) == ["name=a&limit=2&marker=2"]


def test_whole_list_has_no_links_unless_a_page_was_asked_for(app: Flask) -> None:
    with app.test_request_context("/reservation/v1/leases"):
        assert pages.listing("rows", [1], RequestedPage(2, None, False), lambda row: {"id": row}) == {
            "rows": [{"id": 1}]
        }
        asked = pages.listing("rows", [1], RequestedPage(2, None, True), lambda row: {"id": row})
    assert asked == {"rows": [{"id": 1}], "rows_links": []}


def test_link_leads_on_from_a_last_row_that_cannot_be_read(app: Flask) -> None:
    rows: list[tuple[UUID, str | UnreadableLease]] = [(ONE, "one"), (TWO, BROKEN), (THREE, "three")]
    with app.test_request_context("/reservation/v1/leases?limit=2"):
        g.caller = MEMBER
        answer = pages.readable_listing("rows", rows, RequestedPage(2, None, True), lambda number, row: {"name": row})
    assert answer["rows"] == [{"name": "one"}]
    assert _queries(answer) == [f"limit=2&marker={TWO}"]
