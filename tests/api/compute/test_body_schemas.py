"""Schemas of bodies: one declaration is read by the view and shown in the OpenAPI document."""

from typing import Any

import pytest

from api.compute.openapi import aggregate_bodies, cell_bodies, flavor_bodies, keypair_bodies, zone_bodies
from api.compute.openapi.body import Body
from api.compute.openapi.operations import OPERATIONS
from climate.domain.errors import InvalidInput

FLAVOR = {"name": "small", "vcpus": 1, "ram": "512", "disk": 1}
LINK = {"type": "child", "rpc_host": "broker", "rpc_port": 6379}
AGGREGATE = "/os-aggregates/<aggregate_id>"

CREATED = [
    ("/flavors", "flavor", flavor_bodies.NEW),
    ("/os-keypairs", "keypair", keypair_bodies.NEW),
    ("/os-cells", "cell", cell_bodies.CELL),
    ("/os-aggregates", "aggregate", aggregate_bodies.NEW),
    ("/zones", "zone", zone_bodies.ZONE),
]


@pytest.mark.parametrize(("path", "part", "body"), CREATED)
def test_document_shows_the_schema_that_is_read(path: str, part: str, body: Body) -> None:
    takes = OPERATIONS["POST", path].takes
    assert takes is not None
    assert takes["properties"][part] == body.shape()
    assert body.shape()["properties"].keys() == body.keys().keys()


@pytest.mark.parametrize(("path", "part", "body"), CREATED)
def test_required_keys_have_no_default(path: str, part: str, body: Body) -> None:
    required = {name: key for name, key in body.keys().items() if key.is_required}
    assert required
    assert {name for name, key in required.items() if key.default} == set()


def test_read_body_has_attributes_and_defaults() -> None:
    found = flavor_bodies.NEW.read(FLAVOR)
    assert (found["ram_mb"], found["ephemeral_gb"], found["is_public"], found["description"]) == (512, 0, True, None)
    assert len(found["id"]) == 36


def test_absent_keys_of_a_change_are_absent_from_what_is_read() -> None:
    assert cell_bodies.CELL.read(LINK) == {"is_parent": False, "host": "broker", "port": 6379}
    assert aggregate_bodies.CHANGED.read({"name": "a"}) == {"name": "a", "availability_zone": None}
    assert zone_bodies.ZONE.read({"weight_scale": 2}) == {"weight_scale": 2.0}


@pytest.mark.parametrize(
    ("body", "given", "refusal"),
    [
        (flavor_bodies.NEW, {}, "name must be a text of 1 to 255 characters that are not only blanks"),
        (flavor_bodies.NEW, FLAVOR | {"ram": 0, "disk": -1}, "ram must be a whole number from 1 to 67108864"),
        (flavor_bodies.NEW, FLAVOR | {"rxtx_factor": 2}, "rxtx_factor must be 1.0, because network"),
        (flavor_bodies.NEW, FLAVOR | {"OS-FLV-EXT-DATA:ephemeral": "x"}, "ephemeral must be a whole number from 0"),
        (flavor_bodies.NEW, FLAVOR | {"os-flavor-access:is_public": "x"}, "is_public must be true or false, not 'x'"),
        (keypair_bodies.NEW, {"name": "a", "type": "x509"}, "type must be ssh"),
        (keypair_bodies.NEW, {"name": "a/b"}, "Keypair names hold letters, digits, blanks and . _ @ - only"),
        (keypair_bodies.NEW, {"name": "a", "public_key": 5}, "public_key must be a text"),
        (cell_bodies.CELL, {"type": []}, "cell: type must be parent or child, got '[]'"),
        (cell_bodies.CELL, {"rpc_port": 0}, "rpc_port must be a whole number from 1 to 65535"),
        (cell_bodies.CELL, {"rpc_virtual_host": "x"}, "cell: rpc_virtual_host must be the number of a database"),
        (
            cell_bodies.CELL,
            {"colour": 1},
            "cell: there is no key 'colour'; there are name, password, rpc_host,",
        ),
        (cell_bodies.SYNC, {"colour": 1}, "there is no key 'colour'; there are deleted, project_id, updated_since"),
        (cell_bodies.SYNC, {"updated_since": 5}, "updated_since must be a time like 2030-01-31T16:00:00Z, got '5'"),
        (aggregate_bodies.NEW, {"colour": 1}, "aggregate has no colour; it may have name, availability_zone"),
        (zone_bodies.ZONE, {"b": 1, "a": 1}, "zone: only api_url, username, password, weight_offset, weight_scale can"),
        (zone_bodies.ZONE, {"weight_scale": True}, "weight_scale must be a number between -1000000000 and 1000000000"),
    ],
)
def test_first_wrong_value_is_refused_with_its_key(body: Body, given: dict[str, Any], refusal: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        body.read(given)
    assert str(refused.value).startswith(refusal)
