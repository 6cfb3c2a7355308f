"""Forged requests are refused: without the form's secret, with another's, and from another site."""

from collections.abc import Callable

import pytest
from flask import Flask

from api.web.blueprint import blueprint
from tests.api.web.page_clients import Browser

Visit = Callable[[str], Browser]


def unsafe(app: Flask) -> list[str]:
    rules = [rule for rule in app.url_map.iter_rules() if rule.endpoint.startswith(f"{blueprint.name}.")]
    return [rule.rule for rule in rules if "POST" in (rule.methods or ())]


def test_every_form_needs_its_secret(visit: Visit, app: Flask) -> None:
    browser = visit("demo")
    paths = unsafe(app)
    assert "/ui/sign-out" in paths
    for path in paths:
        filled = path.replace("<", "").replace(">", "").replace("uuid:", "")
        for data in ({}, {"csrf_token": "wrong"}):
            assert browser.post(filled, data).status_code == 403, path


def test_secret_of_another_session_is_refused(visit: Visit) -> None:
    mine, others = visit("demo"), visit("demo")
    secret = others.form("/ui/", "/ui/sign-out").fields
    assert mine.post("/ui/sign-out", secret).status_code == 403


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://localhost.evil.example", "http://localhost:99"]
)
def test_other_sites_are_refused(visit: Visit, origin: str) -> None:
    browser = visit("demo")
    secret = browser.form("/ui/", "/ui/sign-out").fields
    answer = browser.post("/ui/sign-out", secret, Origin=origin)
    assert answer.status_code == 403
    assert "another site" in answer.get_data(as_text=True)
    browser.get("/ui/")


def test_request_without_an_origin_is_refused(visit: Visit) -> None:
    browser = visit("demo")
    secret = browser.form("/ui/", "/ui/sign-out").fields
    assert browser.client.post("/ui/sign-out", data=secret).status_code == 403


def test_header_of_htmx_counts_as_the_form_does(visit: Visit) -> None:
    browser = visit("demo")
    secret = browser.form("/ui/", "/ui/sign-out").fields["csrf_token"]
    assert browser.post("/ui/sign-out", {}, X_CSRF_Token=secret).status_code == 303
