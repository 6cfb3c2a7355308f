"""Ports by operations: what a change of one does to the interface of its server."""

from collections.abc import Iterator
from dataclasses import replace
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any, cast

import pytest

from climate.compute.errors import Conflict, NotFound
from climate.compute.models.security_group import EGRESS, default_id
from climate.compute.models.server import Server
from climate.compute.network.driver import Plug
from climate.compute.network.operations import ports, security_groups
from climate.compute.network.operations.ports import ChangedPort
from climate.compute.network.ports import FixedIp, NewPort
from climate.compute.network.render.port_filter import INGRESS, TCP, FilterRule
from climate.compute.servers import create
from climate.compute.servers.interfaces import interfaces
from climate.compute.servers.interfaces.interfaces import Requester
from climate.compute.store.networks import networks
from climate.compute.store.networks.ports import Port
from tests.compute.cloud_factory import request
from tests.compute.recorded_networks import Wired, wired_place

BY = {"project_id": "demo", "user_id": "dora", "request_id": "req-1"}
WHO = ("demo", BY)
OUT = (FilterRule(EGRESS, 4), FilterRule(EGRESS, 6))


@pytest.fixture
def wired(scratch: str, tmp_path: Path) -> Iterator[Wired]:
    with wired_place(scratch, tmp_path) as made:
        yield made


def made(wired: Wired, *groups: str) -> Port:
    with wired.compute.engine.connect() as conn:
        network_id = networks.listed(conn)[0].id
    return ports.create(wired.compute, [NewPort("demo", network_id, security_groups=groups)], "demo")[0]


def booted(wired: Wired, port: Port) -> Server:
    (server,) = create.boot(wired.compute, request(project_id="demo", networks=(), ports=((0, port.port_id),)))
    wired.settle()
    return server


def plugged(wired: Wired, port: Port) -> list[Plug]:
    return [plug for _, plug in wired.plugs() if plug.vif_id == port.port_id]


def test_rules_of_a_port_reach_the_interface_of_its_server(wired: Wired) -> None:
    web = security_groups.create(wired.compute, "demo", "web", "")
    port = made(wired, web.id)
    booted(wired, port)
    assert plugged(wired, port)[0].rules == OUT
    assert plugged(wired, port)[0].addresses == (IPv4Address(port.addresses[0]),)
    ports.change(wired.compute, port.port_id, WHO, ChangedPort(security_groups=[default_id("demo")]))
    wired.settle()
    assert plugged(wired, port)[0].rules is None
    ports.change(wired.compute, port.port_id, WHO, ChangedPort(properties={"admin_up": False}))
    wired.settle()
    assert plugged(wired, port)[0].rules == ()
    with pytest.raises(NotFound, match="does not exist"):
        ports.change(wired.compute, port.port_id, WHO, ChangedPort(security_groups=[default_id("other")]))


def test_a_port_with_a_group_is_the_far_side_of_rules(wired: Wired) -> None:
    web = security_groups.create(wired.compute, "demo", "web", "")
    clients = security_groups.create(wired.compute, "demo", "clients", "")
    rule = replace(web.rules[0], direction=INGRESS, version=4, protocol="tcp", remote_group_id=clients.id)
    security_groups.add_rule(wired.compute, rule, ("demo", "demo"))
    port = made(wired, web.id)
    booted(wired, port)
    client = made(wired, default_id("demo"))
    booted(wired, client)
    ports.change(wired.compute, client.port_id, WHO, ChangedPort(security_groups=[clients.id]))
    wired.settle()
    (near,) = [one for one in cast(Any, plugged(wired, port)[0].rules) if one.direction == INGRESS]
    assert (near.protocol, [str(one) for one in near.remotes]) == (TCP, [f"{client.addresses[0]}/32"])


def test_addresses_of_a_bound_port_are_plugged_in_anew(wired: Wired) -> None:
    port = made(wired)
    server = booted(wired, port)
    wanted = ChangedPort([FixedIp(port.subnet_id), FixedIp(port.subnet_id)], properties={"name": "two"})
    after = ports.change(wired.compute, port.port_id, WHO, wanted)
    assert (after.name, len(after.addresses), after.server_id) == ("two", 2, server.id)
    wired.settle()
    assert plugged(wired, port)[0].addresses == tuple(map(IPv4Address, after.addresses))


def test_a_detached_port_is_unplugged_and_a_deleted_one_gone(wired: Wired) -> None:
    port = made(wired)
    server = booted(wired, port)
    interfaces.unplug(wired.compute, Requester(server.id, "demo", BY), port.port_id)
    wired.settle()
    assert plugged(wired, port) == []
    other = booted(wired, port)
    assert len(plugged(wired, port)) == 1
    ports.delete(wired.compute, port.port_id, WHO)
    wired.settle()
    assert plugged(wired, port) == []
    assert interfaces.interfaces(wired.compute, other.id) == []
    with pytest.raises(NotFound):
        ports.get(wired.compute, port.port_id, "demo")


def test_ports_are_refused_while_network_hosts_allocate(wired: Wired) -> None:
    port = made(wired)
    queued = replace(wired.compute, network_queue=cast(Any, object()))
    with pytest.raises(Conflict, match="CLIMATE_NETWORK_ALLOCATION"):
        ports.create(queued, [NewPort("demo", port.network_id)], "demo")
    with pytest.raises(Conflict, match="CLIMATE_NETWORK_ALLOCATION"):
        ports.change(queued, port.port_id, WHO, ChangedPort(fixed_ips=[]))
