"""A user who asks too often is told to wait; the others are not."""

from dataclasses import replace

import pytest

from api.rate_limit import Allowance
from climate.domain.errors import TooManyRequests
from tests.identity.identity_factory import Asker, Place, app_of


class Seconds:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_burst_is_served_and_then_so_many_a_second() -> None:
    clock = Seconds()
    allowance = Allowance(2, clock=clock)
    for _ in range(6):
        allowance.spend("u")
    with pytest.raises(TooManyRequests, match="2 per second are allowed"):
        allowance.spend("u")
    allowance.spend("another")
    clock.now = 0.5
    allowance.spend("u")
    with pytest.raises(TooManyRequests):
        allowance.spend("u")
    clock.now = 100
    for _ in range(6):
        allowance.spend("u")
    with pytest.raises(TooManyRequests):
        allowance.spend("u")


def test_without_a_limit_nothing_is_counted() -> None:
    allowance = Allowance(0)
    for _ in range(1000):
        allowance.spend("u")


def test_over_http_who_asks_too_often_hears_when_to_come_back(here: Place) -> None:
    app = app_of(replace(here, settings=replace(here.settings, requests_per_second=0.001)))
    asker = Asker(app)
    assert asker.sign_in("demo", here.password("demo"), "demo").status_code == 201
    assert asker.ask("GET", "/identity/v3/auth/projects").status_code == 200
    refused = asker.ask("GET", "/identity/v3/auth/projects")
    assert (refused.status_code, refused.headers["Retry-After"]) == (429, "1")
    assert asker.ask("GET", "/healthz").status_code == 200


def test_members_exchange_and_give_back_fewer_tokens_than_they_make_requests(here: Place) -> None:
    app = app_of(replace(here, settings=replace(here.settings, requests_per_second=20.0)))
    asker = Asker(app)
    asker.sign_in("demo", here.password("demo"), "demo")
    body = {"auth": {"identity": {"methods": ["token"], "token": {"id": asker.token}}}}
    seen = [asker.ask("POST", "/identity/v3/auth/tokens", json=body) for _ in range(4)]
    assert [answer.status_code for answer in seen] == [201, 201, 201, 429]
    given_back = asker.ask("DELETE", "/identity/v3/auth/tokens", headers={"X-Subject-Token": asker.token})
    assert (given_back.status_code, "Too many tokens" in given_back.get_data(as_text=True)) == (429, True)
    assert asker.ask("GET", "/identity/v3/auth/projects").status_code == 200


def test_administrators_may_ask_as_often_as_they_like(here: Place) -> None:
    app = app_of(replace(here, settings=replace(here.settings, requests_per_second=0.001)))
    asker = Asker(app)
    asker.sign_in("admin", here.password("admin"), "admin")
    assert {asker.ask("GET", "/identity/v3/users").status_code for _ in range(5)} == {200}
