"""The OpenAPI document of compute: every route, each with its statuses and bodies; and nothing that is no route."""

import re
from typing import Any

import pytest
from flask import Flask

from api.compute.openapi.routes import OPERATIONS
from api.compute.servers.actions import action_bodies
from api.compute.servers.actions.actions import ACTIONS
from tests.api.compute.api_clients import World

PREFIX = "/compute/v2.1"


def routes(app: Flask) -> set[tuple[str, str]]:
    """Method and path of everything below /compute/v2.1."""
    return {
        (method, rule.rule.removeprefix(PREFIX))
        for rule in app.url_map.iter_rules()
        if rule.rule.startswith(f"{PREFIX}/")
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}
    }


@pytest.fixture
def described(there: World) -> Any:
    answer = there.app.test_client().get("/compute/openapi.json")
    assert answer.status_code == 200
    return answer.json


def test_every_route_is_described_and_nothing_else(there: World) -> None:
    assert set(OPERATIONS) == routes(there.app)


def test_the_document_says_of_each_route_what_it_is_for_and_what_may_come_back(described: Any) -> None:
    told = set()
    for path, item in described["paths"].items():
        for method, operation in item.items():
            told.add((method.upper(), re.sub(r"{(\w+)}", r"<\1>", path.removeprefix(PREFIX))))
            assert operation["summary"], (method, path)
            assert {"400", "401", "403", "406", "503"} <= set(operation["responses"]), (method, path)
            named = {parameter["name"] for parameter in operation["parameters"] if parameter["in"] == "path"}
            assert named == set(re.findall(r"{(\w+)}", path))
    assert told == set(OPERATIONS)
    assert described["openapi"].startswith("3.1")


def test_document_has_each_action_that_is_served() -> None:
    forms = action_bodies.shape()["anyOf"]
    assert {key for form in forms for key in form["properties"]} == set(ACTIONS)
