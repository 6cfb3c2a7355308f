"""Bodies of the Network API."""

from typing import Any

import pytest

from api.network import bodies
from api.schema.body import Below
from climate.domain.errors import InvalidInput

NETWORK = "6f9d2c7e-0000-4000-8000-00000000abcd"
SUBNET: dict[str, Any] = {"network_id": NETWORK, "cidr": "10.0.0.0/24"}


def test_keys_without_effect_are_left_out() -> None:
    found = bodies.NETWORK.read({"network": {"name": "n", "admin_state_up": True}, "beside": 1})
    assert (found["name"], found["is_external"], "admin_state_up" in found) == ("n", False, False)


def test_gateway_that_is_null_is_not_an_absent_one() -> None:
    assert "gateway_ip" not in bodies.SUBNET.read({"subnet": SUBNET})
    assert bodies.SUBNET.read({"subnet": SUBNET | {"gateway_ip": None}})["gateway_ip"] is None


def test_port_that_is_null_is_not_an_absent_one() -> None:
    assert "port_id" not in bodies.CHANGED_FLOATING.read({"floatingip": {"description": None}})
    assert bodies.CHANGED_FLOATING.read({"floatingip": {"port_id": None}})["port_id"] is None


@pytest.mark.parametrize(
    ("body", "given", "says"),
    [
        (bodies.NETWORK, {"name": "n", "mtu": 1}, "network: 'mtu' cannot be set; there are name, project_id, provider"),
        (
            bodies.NETWORK,
            {"name": "n", bodies.TYPE: "vxlan"},
            "provider:network_type must be flat or vlan, not 'vxlan'",
        ),
        (bodies.SUBNET, SUBNET | {"cidr": "10.0.0.0/31"}, "cidr 10.0.0.0/31 has no room for a gateway and a server"),
        (bodies.SUBNET, SUBNET | {"ip_version": 6}, "ip_version must be 4; CLIMATE_USE_IPV6 adds"),
        (bodies.SUBNET, SUBNET | {"allocation_pools": [{"start": "x"}]}, "allocation_pools must be like [{"),
        (
            bodies.CHANGED_SUBNET,
            {"allocation_pools": [{"start": "10.0.0.2", "end": "10.0.0.1"}]},
            "allocation_pools: 10.0.0.2 comes after 10.0.0.1",
        ),
        (bodies.FLOATING, {"floating_network_id": "x"}, "floating_network_id must be a UUID"),
        (bodies.QUOTA, {"floatingip": -2}, "quota: floatingip must be a whole number from 0"),
        (
            bodies.QUOTA,
            {"subnet": 1},
            "quota: 'subnet' cannot be set; there are check_limit, floatingip, force, network, port",
        ),
    ],
)
def test_refused_keys(body: Below, given: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        body.read({body.key: given})
    assert str(refused.value).startswith(says)


def test_tags_are_sorted_and_each_once() -> None:
    assert bodies.TAGS.read({"tags": ["b", "a", "b"]}) == {"tags": ["a", "b"]}
    with pytest.raises(InvalidInput, match=r'^The body must be \{"tags"'):
        bodies.TAGS.read({})
