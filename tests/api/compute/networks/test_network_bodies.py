"""Bodies of networks and floating IPs."""

from ipaddress import IPv4Address
from typing import Any

import pytest

from api.compute.networks import network_bodies as bodies
from climate.domain.errors import InvalidInput

NETWORK: dict[str, Any] = {"label": "n", "cidr": "10.0.0.0/24"}


def test_networks_are_counted_from_nulls_too() -> None:
    wanted, manager = bodies.networks({"network": NETWORK | {"num_networks": None, "dns2": "1.1.1.1", "vlan": 5}})
    assert (wanted.count, wanted.dns, wanted.vlan_start, manager) == (1, (IPv4Address("1.1.1.1"),), 5, None)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"colour": 1}, "network: 'colour' cannot be set; there are bridge, bridge_interface, cidr"),
        ({"vlan": 1, "vlan_start": 1}, "network: vlan and vlan_start mean the same; give one of them"),
        ({"gateway_v6": "fd00::1"}, "network: gateway_v6 needs cidr_v6"),
        ({"network_size": 0}, "network_size must be a whole number from 1 to 65536"),
        ({"label": None}, "label must be a text"),
    ],
)
def test_refused_networks(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        bodies.networks({"network": NETWORK | changes})
    assert str(refused.value).startswith(says)


def test_actions_on_a_network() -> None:
    assert bodies.ACTIONS.read({"associate": {"project_id": "p"}}) == ("associate", {"project_id": "p"})
    assert bodies.ACTIONS.read({"disassociate": None}) == ("disassociate", {})
    with pytest.raises(InvalidInput, match=r'^The body must be \{"associate"'):
        bodies.ACTIONS.read({"associate": {"project_id": "p"}, "disassociate": None})


def test_added_network_may_be_null_but_must_be_given() -> None:
    assert bodies.ADDED.read({"id": None, "project_id": ""}) == {"id": None, "project_id": None}
    with pytest.raises(InvalidInput, match=r'^The body must be \{"id"'):
        bodies.ADDED.read({"project_id": "p"})


def test_range_of_floating_ips_is_read_and_shown_as_given() -> None:
    (first, last), shown = bodies.DROPPED.read({"ip_range": "192.0.2.1-192.0.2.9"})["ip_range"]
    assert (str(first), str(last), shown) == ("192.0.2.1", "192.0.2.9", "192.0.2.1-192.0.2.9")
    with pytest.raises(InvalidInput, match=r"^floating_ips_bulk_create: 'host' cannot be set; there are cidr, gateway"):
        bodies.BULK.read({"floating_ips_bulk_create": {"ip_range": "192.0.2.1", "host": "h"}})
