"""The cloud of the compute tests, with a network that has floating addresses and a pool of these."""

import pytest

from climate.compute.network.network_options import NetworkOptions
from tests.api.compute.api_clients import Person, World
from tests.api.compute.conftest import admin, member, reader, stranger, there
from tests.api.network.requests import N
from tests.compute import network_factory

__all__ = ["admin", "member", "reader", "stranger", "there"]


@pytest.fixture
def served(there: World) -> str:
    """The id of a network whose addresses can have floating ones."""
    with there.here.compute.engine.begin() as conn:
        return network_factory.network(conn, "dhcp", "10.20.0.0/28", "flat_dhcp", NetworkOptions(flat_bridge="br200"))


@pytest.fixture
def pool(there: World, admin: Person) -> str:
    """The id of a pool of five addresses."""
    body = {"name": "public", "router:external": True, "provider:physical_network": "eth0"}
    made = admin("POST", f"{N}/networks", {"network": body})
    assert made.status_code == 201, made.text
    network_id = str(made.json["network"]["id"])
    stretch = {"start": "203.0.113.10", "end": "203.0.113.14"}
    subnet = {"network_id": network_id, "cidr": "203.0.113.0/24", "ip_version": 4, "allocation_pools": [stretch]}
    made = admin("POST", f"{N}/subnets", {"subnet": subnet})
    assert made.status_code == 201, made.text
    return network_id
