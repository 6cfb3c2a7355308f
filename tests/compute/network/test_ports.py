"""Ports that projects create: their addresses, and many requests at once."""

from functools import partial

import pytest

from climate.compute.errors import BadRequest, ComputeError, Conflict, NoMoreAddresses, NotFound, QuotaExceeded
from climate.compute.network import ports
from climate.compute.network.driver import DhcpAction
from climate.compute.network.ports import FixedIp, NewPort
from climate.compute.store.networks import ports as rows
from climate.compute.store.networks.ports import Port
from climate.compute.store.projects import quotas
from tests.compute.network.conftest import Cloud
from tests.compute.network.recorded_network import Books
from tests.compute.network.test_crowd import at_once, refusals

MANAGERS = ("flat", "flat_dhcp", "vlan")


def created(there: Books, network_id: str, *asked: str, project_id: str = "demo") -> Port:
    fixed_ips = [FixedIp(address=one) for one in asked] if asked else None
    with there.compute.engine.begin() as conn:
        wanted = NewPort(project_id, network_id, fixed_ips)
        port_id = ports.create(conn, wanted, None, there.compute.now(conn))
    return found(there, port_id)


def found(there: Books, port_id: str) -> Port:
    with there.compute.engine.connect() as conn:
        return rows.listed(conn, {"port_id": port_id})[0]


def deleted(there: Books, port: Port) -> None:
    with there.compute.engine.begin() as conn:
        locked = rows.lock(conn, port.port_id)
        assert locked is not None
        ports.delete(conn, locked, there.compute.now(conn))


def readdressed(there: Books, port: Port, *asked: FixedIp) -> list[str]:
    with there.compute.engine.begin() as conn:
        locked = rows.lock(conn, port.port_id)
        assert locked is not None
        ports.readdress(conn, locked, asked, there.compute.now(conn))
    return list(found(there, port.port_id).addresses)


def dhcp(there: Books) -> set[str]:
    """MACs to which DHCP assigns an address."""
    return {entry.mac for one in there.wire().serving.values() if one.dhcp for entry in one.dhcp.entries}


@pytest.mark.parametrize("manager", MANAGERS)
def test_sixteen_ports_on_a_small_pool(cloud: Cloud, manager: str) -> None:
    there = cloud(manager=manager)
    (network,) = there.served("private", "10.0.0.0/28")
    room = 12 if manager == "vlan" else 13
    projects = [f"p{number}" for number in range(16)]
    answers = at_once(*[partial(created, there, network.id, project_id=project_id) for project_id in projects])
    assert refusals(answers) == [NoMoreAddresses] * (16 - room)
    addresses = [one.addresses[0] for one in answers if isinstance(one, Port)]
    assert len(set(addresses)) == room
    assert there.wrong() == []


def test_one_of_many_servers_gets_a_port(cloud: Cloud) -> None:
    there = cloud(manager="flat_dhcp")
    (network,) = there.served("private", "10.0.0.0/28")
    port = created(there, network.id)

    def boot() -> object:
        return there.place.boot(networks=(), ports=((0, port.port_id),))

    answers = at_once(*[boot] * 6)
    assert refusals(answers) == [Conflict] * 5
    there.place.settle()
    server_id = found(there, port.port_id).server_id
    assert server_id is not None
    assert there.fixed(server_id) == list(port.addresses)
    assert there.wrong() == []


def test_ports_of_one_project_are_counted_one_at_a_time(cloud: Cloud) -> None:
    there = cloud(manager="flat_dhcp")
    (network,) = there.served("private", "10.0.0.0/28")
    with there.compute.engine.begin() as conn:
        quotas.lock_limits(conn, "demo")
        quotas.set_limits(conn, "demo", {"ports": 3})
    answers = at_once(*[lambda: created(there, network.id)] * 6)
    assert refusals(answers) == [QuotaExceeded] * 3
    with there.compute.engine.connect() as conn:
        assert rows.count(conn, "demo") == 3


def test_dhcp_knows_a_port_while_a_server_has_it(cloud: Cloud) -> None:
    there = cloud(manager="flat_dhcp")
    (network,) = there.served("private", "10.0.0.0/28")
    port = created(there, network.id)
    there.settle()
    assert dhcp(there) == set()
    (server,) = there.boot(networks=(), ports=((0, port.port_id),))
    there.settle()
    assert dhcp(there) == {port.mac}
    there.delete(server.id)
    there.settle()
    assert dhcp(there) == set()
    assert found(there, port.port_id).addresses == port.addresses
    assert there.wrong() == []


def test_an_address_that_a_client_leased_waits_for_it_after_its_port(cloud: Cloud) -> None:
    there = cloud(manager="flat_dhcp")
    (network,) = there.served("private", "10.0.0.0/28")
    leased, other = created(there, network.id), created(there, network.id)
    there.tell(DhcpAction.LEASED, network.id, leased.addresses[0], leased.mac)
    there.tend()
    deleted(there, leased)
    deleted(there, other)
    assert there.row(leased.addresses[0]) == (True, False, True)
    assert there.row(other.addresses[0]) == (False, False, False)


def test_addresses_of_a_port_are_kept_where_they_can_be(cloud: Cloud) -> None:
    there = cloud(manager="flat_dhcp")
    (network,) = there.served("private", "10.0.0.0/28")
    port = created(there, network.id, "10.0.0.5", "10.0.0.6")
    whole = FixedIp(network.subnet_id)
    assert readdressed(there, port, whole, whole) == ["10.0.0.5", "10.0.0.6"]
    assert readdressed(there, port, FixedIp(address="10.0.0.6"), whole) == ["10.0.0.5", "10.0.0.6"]
    assert readdressed(there, port, FixedIp(address="10.0.0.9"), whole) == ["10.0.0.5", "10.0.0.9"]
    assert readdressed(there, port, whole) == ["10.0.0.5"]
    there.pool()
    there.floating(fixed_address="10.0.0.5")
    with pytest.raises(Conflict, match="floating"):
        readdressed(there, port, FixedIp(address="10.0.0.9"))
    assert readdressed(there, port, whole, whole)[0] == "10.0.0.2"
    assert there.wrong() == []


def port(**values: object) -> Port:
    known = dict.fromkeys(Port.__slots__, "")
    return Port(**{**known, "server_id": None, "kept": True, "leaving": False, "addresses": ["10.0.0.2"], **values})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("values", "error"),
    [
        ({"kept": False}, NotFound),
        ({"server_id": "s"}, Conflict),
        ({"device_id": "router"}, Conflict),
        ({"leaving": True}, Conflict),
        ({"addresses": []}, BadRequest),
    ],
)
def test_ports_that_no_server_can_have(values: dict[str, object], error: type[ComputeError]) -> None:
    assert ports.usable(port(), "p") == port()
    with pytest.raises(error):
        ports.usable(port(**values), "p")
    with pytest.raises(NotFound):
        ports.usable(None, "p")
