"""What every page passes first: session, form, policy; and how errors look."""

import re
from collections.abc import Callable

from flask import Flask

from api.web.blueprint import ANYBODY, SIGNED_IN, blueprint
from climate.context import Climate
from climate.domain.policy import RULES
from climate.store.journal import change_feed
from tests.api.reservation.api_clients import Person
from tests.api.web.page_clients import Browser, signed_in

Visit = Callable[[str], Browser]
OPEN = {
    "/ui/static/<digest>/<path:name>",
    "/ui/sign-in",
    "/ui/theme",
    "/ui/zone",
    "/ui/<path:rest>",
}
"""Pages for anybody: what has no data."""


def actions(app: Flask) -> dict[str, str]:
    """Map the rule of each page to its action."""
    rules = [rule for rule in app.url_map.iter_rules() if rule.endpoint.startswith(f"{blueprint.name}.")]
    return {rule.rule: getattr(app.view_functions[rule.endpoint], "action", "") for rule in rules}


def test_each_page_has_an_action_of_the_policy(app: Flask) -> None:
    assert {*actions(app).values()} <= {*RULES, ANYBODY, SIGNED_IN}


def test_pages_for_anybody_are_these(app: Flask) -> None:
    assert {rule for rule, action in actions(app).items() if action == ANYBODY} == OPEN


def test_all_other_pages_send_strangers_to_the_sign_in(app: Flask) -> None:
    rules = [rule for rule in app.url_map.iter_rules() if rule.endpoint.startswith(f"{blueprint.name}.")]
    closed = [rule.rule for rule in rules if rule.rule not in OPEN and "GET" in (rule.methods or ())]
    assert "/ui/" in closed
    browser = Browser(app)
    for rule in closed:
        filled = rule.replace("<", "").replace(">", "").replace("uuid:", "")
        assert (browser.get(filled, 303).location or "").startswith("/ui/sign-in?next=")


def test_htmx_is_told_to_go_to_the_sign_in(app: Flask) -> None:
    answer = Browser(app).get("/ui/", 204, headers={"HX-Request": "true"})
    assert answer.headers["HX-Redirect"] == "/ui/sign-in?next=/ui/"


def test_unknown_pages_say_so_in_words(visit: Visit, app: Flask) -> None:
    for browser in (visit("demo"), Browser(app)):
        text = browser.text("/ui/nowhere/<script>", 404)
        assert "There is no page /ui/nowhere/&lt;script&gt;." in text
    assert app.test_client().get("/nowhere", headers={"Accept": "text/html"}).content_type == "application/json"


def test_token_of_the_whole_system_is_no_session(app: Flask) -> None:
    signed_in(app, "nonsense").get("/ui/", 303)


def test_page_has_the_position_of_the_journal_at_which_it_was_read(climate: Climate, pages: Flask) -> None:
    member = signed_in(pages, "member")

    def position() -> int:
        found = re.search(r'content="/ui/events" data-after="(\d+)"', member.text("/ui/leases"))
        assert found
        return int(found[1])

    before = position()
    Person(pages, "member").lease()
    with climate.engine.connect() as conn:
        last = change_feed.last_taken(conn)
    assert before < position() == last
    assert "data-after" not in member.get("/ui/leases", headers={"HX-Request": "true"}).text
    with climate.engine.begin() as conn:
        conn.exec_driver_sql("LOCK TABLE journal IN ROW EXCLUSIVE MODE")
        assert "data-after" not in member.text("/ui/leases"), "somebody is appending"
