"""Networks that projects create: their VLANs, their subnets, and many requests at once."""

from functools import partial
from ipaddress import IPv4Address, IPv4Network

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from climate.compute.errors import BadRequest, ComputeError, Conflict, QuotaExceeded
from climate.compute.network import project_networks
from climate.compute.network.models import Network
from climate.compute.network.network_options import NetworkOptions
from climate.compute.network.project_networks import Subnet
from climate.compute.store.networks import networks as rows
from climate.compute.store.networks import networks_without_subnet as outline_rows
from climate.compute.store.networks.networks_without_subnet import Outline
from tests.compute.network.conftest import Cloud
from tests.compute.network.recorded_network import Books
from tests.compute.network.test_crowd import at_once, refusals

CIDR = IPv4Network("10.60.0.0/28")
WHOLE = Subnet(CIDR, CIDR[1])


def created(there: Books, project_id: str = "demo") -> Outline:
    with there.compute.engine.begin() as conn:
        return project_networks.create(conn, there.compute.network, "own", project_id)


def completed(there: Books, outline: Outline, subnet: Subnet = WHOLE) -> Network:
    with there.compute.engine.begin() as conn:
        locked = outline_rows.get(conn, outline.id)
        assert locked is not None
        project_networks.complete(conn, there.compute.network, locked, subnet)
        return rows.by_ids(conn, [outline.id])[outline.id]


def test_vlans_are_of_the_range_and_of_one_network_each(cloud: Cloud) -> None:
    there = cloud(manager="flat_dhcp", project_vlans=range(2000, 2010))
    there.make("admin", "10.0.0.0/28", "vlan", vlan_start=2001)
    answers = at_once(*[partial(created, there, f"p{number % 4}") for number in range(12)])
    assert refusals(answers) == [Conflict] * 3
    vlans = {one.vlan for one in answers if isinstance(one, Outline)}
    assert vlans == set(range(2000, 2010)) - {2001}


def test_networks_of_one_project_are_counted_one_at_a_time(cloud: Cloud) -> None:
    there = cloud(manager="flat_dhcp", project_vlans=range(2000, 2100))
    answers = at_once(*[partial(created, there) for _ in range(14)])
    assert refusals(answers) == [QuotaExceeded] * 4


def test_one_of_many_networks_gets_a_range(cloud: Cloud) -> None:
    there = cloud(manager="flat_dhcp", project_vlans=range(2000, 2100))
    outlines = [created(there) for _ in range(4)]
    answers = at_once(*[partial(completed, there, outline) for outline in outlines])
    assert refusals(answers) == [BadRequest] * 3
    assert there.wrong() == []


def test_a_host_serves_the_network_as_its_subnet_says(cloud: Cloud) -> None:
    there = cloud(manager="flat_dhcp", project_vlans=range(2000, 2100))
    route = (IPv4Network("10.9.0.0/24"), IPv4Address("10.60.0.4"))
    network = completed(there, created(there), Subnet(CIDR, None, routes=[route]))
    (server,) = there.boot(networks=(network.id,))
    assert there.fixed(server.id) == ["10.60.0.2"]
    there.settle()
    served = there.wire().serving[network.id]
    assert (served.link.vlan, served.link.bridge, str(served.link.gateway)) == (2000, "br2000", "10.60.0.1/28")
    assert served.dhcp is not None
    assert (served.dhcp.routes, [one.routes for one in served.dhcp.entries]) == ((route,), [False])
    with there.compute.engine.begin() as conn:
        project_networks.change(conn, there.compute.network, there.network(network.id), WHOLE)
    there.settle()
    changed = there.wire().serving[network.id].dhcp
    assert changed is not None
    assert (changed.routes, [one.routes for one in changed.entries]) == ((), [True])
    there.delete(server.id)
    with there.compute.engine.begin() as conn:
        project_networks.delete(conn, there.network(network.id))
    there.settle()
    assert network.id not in there.wire().serving


OPTIONS = NetworkOptions(project_vlans=range(2000, 2100))
OUTLINE = Outline("n", "own", "vlan", None, 2000, "demo", None, True)  # type: ignore[arg-type]
PLACES = st.integers(-2, 17)


@settings(max_examples=200)
@given(gateway=st.none() | PLACES, ranges=st.lists(st.tuples(PLACES, PLACES).map(sorted), max_size=3))
def test_a_pool_assigns_what_its_ranges_say_and_never_the_gateway(gateway: int | None, ranges: list[list[int]]) -> None:
    def at(place: int) -> IPv4Address:
        return CIDR[0] + place

    wanted = Subnet(CIDR, None if gateway is None else at(gateway), ranges=[(at(one), at(two)) for one, two in ranges])
    try:
        project_networks._check(OPTIONS, wanted)
        draft = project_networks._draft(OPTIONS, OUTLINE, wanted)
    except ComputeError:
        inside = all(one >= 0 and two <= 15 for one, two in ranges)
        usable = gateway is None or 1 <= gateway <= 14
        apart = gateway is None or not any(one <= gateway <= two for one, two in ranges)
        some = any(set(range(one, two + 1)) - {0, 15, gateway or 1} for one, two in ranges) or not ranges
        assert not (inside and usable and apart and some)
        return
    assigned = set(CIDR) - set(draft.reserved)
    assert assigned
    assert not assigned & {CIDR[0], CIDR[-1], draft.gateway}
    assert not ranges or assigned <= {at(place) for one, two in ranges for place in range(one, two + 1)}


def test_another_gateway_is_refused_while_an_address_is_in_use(cloud: Cloud) -> None:
    there = cloud(manager="flat_dhcp", project_vlans=range(2000, 2100))
    network = completed(there, created(there))
    there.boot(networks=(network.id,))
    for work in (
        lambda conn, one: project_networks.change(conn, there.compute.network, one, Subnet(CIDR, CIDR[5])),
        lambda conn, one: project_networks.drop_subnet(conn, one),
        lambda conn, one: project_networks.delete(conn, one),
    ):
        with pytest.raises(Conflict), there.compute.engine.begin() as conn:
            work(conn, there.network(network.id))
    assert there.wrong() == []
