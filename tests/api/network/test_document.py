"""The OpenAPI document of network: every route, and nothing that is no route."""

from api.network.openapi import OPERATIONS, PREFIX
from tests.api.compute.api_clients import World


def test_every_route_is_described_and_nothing_else(there: World) -> None:
    routes = {
        (method, rule.rule.removeprefix(PREFIX))
        for rule in there.app.url_map.iter_rules()
        if rule.rule.startswith(f"{PREFIX}/")
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}
    }
    assert set(OPERATIONS) == routes


def test_the_document_is_served_without_a_token(there: World) -> None:
    answer = there.app.test_client().get("/network/openapi.json")
    assert answer.status_code == 200
    assert answer.json is not None
    for path, item in answer.json["paths"].items():
        for method, operation in item.items():
            assert operation["summary"], (method, path)
            assert {"400", "401", "403", "503"} <= set(operation["responses"]), (method, path)
