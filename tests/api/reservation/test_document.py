"""The OpenAPI document: every route with its statuses, the plugins' parts, no secret."""

import json
from typing import Any

import pytest
from flask import Flask

from climate.context import Climate
from tests.api.reservation.api_clients import Person
from tests.api.reservation.test_leaks import routes


@pytest.fixture
def described(standing: tuple[Flask, Climate]) -> Any:
    answer = standing[0].test_client().get("/openapi.json")
    assert answer.status_code == 200
    return answer.json


def operations(described: Any) -> dict[tuple[str, str], Any]:
    return {
        (method.upper(), path.replace("{", "<").replace("}", ">")): operation
        for path, item in described["paths"].items()
        for method, operation in item.items()
        if method != "parameters"
    }


def test_every_route_is_described(standing: tuple[Flask, Climate], described: Any) -> None:
    assert described["openapi"].startswith("3.1")
    assert set(operations(described)) == routes(standing[0])
    assert all(operation["summary"] for operation in operations(described).values())


def test_every_status_is_named(described: Any) -> None:
    for (method, path), operation in operations(described).items():
        said = set(operation["responses"])
        assert "default" not in said
        assert {"400", "406"} <= said
        assert ({"401", "403", "429", "503"} <= said) is (operation.get("security") != [])
        assert ({"413", "415"} <= said) is ("requestBody" in operation)
        assert ("404" in said) or "<" not in path, (method, path)
    create = operations(described)["POST", "/reservation/v1/leases"]
    assert {"201", "409", "422"} <= set(create["responses"])
    change = operations(described)["PUT", "/reservation/v1/leases/<lease_id>"]
    assert {"200", "409", "412"} <= set(change["responses"])


def test_reservations_are_what_the_plugins_say(described: Any) -> None:
    schemas = described["components"]["schemas"]
    items = schemas["LeaseOrder"]["properties"]["reservations"]["items"]
    assert [choice["$ref"].rpartition("/")[2] for choice in items["oneOf"]] == [
        "FlavorInstanceRequest",
        "PhysicalHostRequest",
        "StoragePoolRequest",
        "VirtualFloatingipRequest",
        "VirtualInstanceRequest",
    ]
    assert items["discriminator"]["propertyName"] == "resource_type"
    assert schemas["PhysicalHostRequest"]["required"] == ["max", "min", "resource_type"]
    assert "required" not in schemas["PhysicalHostChange"]


def test_no_secret_is_shown(standing: tuple[Flask, Climate]) -> None:
    described = standing[0].test_client().get("/openapi.json").json
    secret = {"RedfishSettings": "password", "IpmiSettings": "password", "MemorySettings": "password"}
    for schema, name in secret.items():
        field = described["components"]["schemas"][schema]["properties"].pop(name)
        assert field["writeOnly"]
        assert not [word for word in ("example", "enum", "const") if word in field]
        assert not field.get("default")
    for schema in ("PowerOrder", "PowerOut", *secret):  # they speak of secrets, which have been looked at
        described["components"]["schemas"].pop(schema)
    told = json.dumps(described["components"]).lower()
    assert not [word for word in ("password", "secret", "gaaaaa") if word in told]


def test_the_examples_are_true(described: Any, member: Person, admin: Person) -> None:
    examples = {}
    for (method, route), operation in operations(described).items():
        content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
        examples[method, route.removeprefix("/reservation/v1")] = content.get("example")
    admin("DELETE", "/os-hosts/8")
    admin("POST", "/os-hosts", {"name": "h8", "gpu": "h100", "rack": "4"})
    made = member("POST", "/leases", examples["POST", "/leases"])
    assert made.status_code == 201, made.json
    path = f"/leases/{made.json['lease']['id']}"
    assert member("PUT", path, examples["PUT", "/leases/<lease_id>"]).status_code == 200
    assert member("DELETE", path).status_code == 204
    assert admin("POST", "/os-hosts", examples["POST", "/os-hosts"]).status_code == 404
    assert admin("PUT", "/os-hosts/9", examples["PUT", "/os-hosts/<host_id>"]).status_code == 200
    change = examples["PATCH", "/os-hosts/properties/<name>"]
    assert admin("PATCH", "/os-hosts/properties/gpu", change).status_code == 200
