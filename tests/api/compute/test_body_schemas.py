"""Schemas of bodies: one declaration is read by the view and shown in the OpenAPI document."""

from typing import Any

import pytest

from api.compute.cells import cell_bodies
from api.compute.networks import network_bodies
from api.compute.nodes import aggregate_bodies
from api.compute.openapi.routes import OPERATIONS
from api.compute.projects import flavor_bodies, keypair_bodies, project_bodies
from api.compute.zones import zone_bodies
from api.schema.body import Below, Body
from climate.domain.errors import InvalidInput

FLAVOR = {"name": "small", "vcpus": 1, "ram": "512", "disk": 1}
LINK = {"type": "child", "rpc_host": "broker", "rpc_port": 6379}
AGGREGATE = "/os-aggregates/<aggregate_id>"
FLAVOR_BODY, KEYPAIR, CELL = flavor_bodies.NEW.content, keypair_bodies.NEW.content, cell_bodies.CELL.content
ZONE, CHANGED_ZONE = zone_bodies.ZONE.content, zone_bodies.CHANGED.content

CREATED = [
    ("/flavors", flavor_bodies.NEW),
    ("/os-keypairs", keypair_bodies.NEW),
    ("/os-cells", cell_bodies.CELL),
    ("/os-aggregates", aggregate_bodies.NEW),
    ("/zones", zone_bodies.ZONE),
    ("/os-networks", network_bodies.NETWORK),
    ("/os-floating-ips-bulk", network_bodies.BULK),
    ("/os-cloudpipe", project_bodies.CLOUDPIPE),
]


@pytest.mark.parametrize(("path", "body"), CREATED)
def test_document_shows_the_schema_that_is_read(path: str, body: Below) -> None:
    takes = OPERATIONS["POST", path].takes
    assert takes == body.shape()
    assert takes["properties"][body.key]["properties"].keys() == body.content.keys().keys()


@pytest.mark.parametrize(("path", "body"), CREATED)
def test_required_keys_have_no_default(path: str, body: Below) -> None:
    required = {name: key for name, key in body.content.keys().items() if key.is_required}
    assert required
    assert {name for name, key in required.items() if key.default} == set()


def test_read_body_has_attributes_and_defaults() -> None:
    found = flavor_bodies.NEW.content.read(FLAVOR)
    assert (found["ram_mb"], found["ephemeral_gb"], found["is_public"], found["description"]) == (512, 0, True, None)
    assert len(found["id"]) == 36


def test_absent_keys_of_a_change_are_absent_from_what_is_read() -> None:
    assert cell_bodies.CELL.content.read(LINK) == {"is_parent": False, "host": "broker", "port": 6379}
    assert aggregate_bodies.CHANGED.content.read({"name": "a"}) == {"name": "a", "availability_zone": None}
    assert zone_bodies.CHANGED.content.read({"weight_scale": 2}) == {"weight_scale": 2.0}


@pytest.mark.parametrize(
    ("body", "given", "refusal"),
    [
        (FLAVOR_BODY, {}, "name must be a text of 1 to 255 characters that are not only blanks"),
        (FLAVOR_BODY, FLAVOR | {"ram": 0, "disk": -1}, "ram must be a whole number from 1 to 67108864"),
        (FLAVOR_BODY, FLAVOR | {"rxtx_factor": 2}, "rxtx_factor must be 1.0, because network"),
        (
            FLAVOR_BODY,
            FLAVOR | {"OS-FLV-EXT-DATA:ephemeral": "x"},
            "ephemeral must be a whole number from 0",
        ),
        (
            FLAVOR_BODY,
            FLAVOR | {"os-flavor-access:is_public": "x"},
            "is_public must be true or false, not 'x'",
        ),
        (KEYPAIR, {"name": "a", "type": "x509"}, "type must be ssh"),
        (KEYPAIR, {"name": "a/b"}, "Keypair names hold letters, digits, blanks and . _ @ - only"),
        (KEYPAIR, {"name": "a", "public_key": 5}, "public_key must be a text"),
        (CELL, {"type": []}, "cell: type must be parent or child, got '[]'"),
        (CELL, {"rpc_port": 0}, "rpc_port must be a whole number from 1 to 65535"),
        (
            CELL,
            {"rpc_virtual_host": "x"},
            "cell: rpc_virtual_host must be the number of a database",
        ),
        (
            CELL,
            {"colour": 1},
            "cell: there is no key 'colour'; there are name, password, rpc_host,",
        ),
        (cell_bodies.SYNC, {"colour": 1}, "there is no key 'colour'; there are deleted, project_id, updated_since"),
        (cell_bodies.SYNC, {"updated_since": 5}, "updated_since must be a time like 2030-01-31T16:00:00Z, got '5'"),
        (aggregate_bodies.NEW.content, {"colour": 1}, "aggregate has no colour; it may have name, availability_zone"),
        (
            ZONE,
            {"b": 1, "a": 1},
            "zone: only api_url, username, password, weight_offset, weight_scale can",
        ),
        (
            CHANGED_ZONE,
            {"weight_scale": True},
            "weight_scale must be a number between -1000000000 and 1000000000",
        ),
    ],
)
def test_first_wrong_value_is_refused_with_its_key(body: Body, given: dict[str, Any], refusal: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        body.read(given)
    assert str(refused.value).startswith(refusal)
