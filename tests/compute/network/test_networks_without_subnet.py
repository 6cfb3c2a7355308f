"""Networks that are named first: what becomes of them with their range, and what a pool hands out."""

from ipaddress import IPv4Address, IPv4Network

import pytest
from sqlalchemy import text

from climate.compute.errors import Conflict
from climate.compute.network import floating_pool_ranges, networks, networks_without_subnet
from climate.compute.network.creation_request import CreationRequest
from climate.compute.network.models import FLAT_DHCP, VLAN
from climate.compute.network.network_options import NetworkOptions
from climate.compute.network.networks_without_subnet import NetworkFields, Range
from tests.compute.cloud_factory import Place


def stretch(first: int, last: int) -> tuple[IPv4Address, IPv4Address]:
    return IPv4Address(first), IPv4Address(last)


def test_each_of_them_has_a_bridge_of_its_own(here: Place) -> None:
    with here.compute.engine.begin() as conn:
        for place in range(3):
            outline = networks_without_subnet.draw(conn, NetworkFields(f"n{place}", FLAT_DHCP))
            given = Range(IPv4Network(f"10.9.{place}.0/24"), IPv4Address(f"10.9.{place}.1"))
            networks_without_subnet.complete(conn, NetworkOptions(flat_bridge="br9"), outline, given)
        rows = conn.execute(text("SELECT bridge FROM compute_networks WHERE manager = 'flat_dhcp' ORDER BY label"))
        assert rows.scalars().all() == ["br9", "br10", "br11"]


def test_a_vlan_is_promised_once(here: Place) -> None:
    with here.compute.engine.begin() as conn:
        networks_without_subnet.draw(conn, NetworkFields("a", VLAN, vlan=9))
        with pytest.raises(Conflict, match="VLAN 9"):
            networks_without_subnet.draw(conn, NetworkFields("b", VLAN, vlan=9))
        with pytest.raises(Conflict, match="already"):
            networks_without_subnet.draw(conn, NetworkFields("a", None))


def test_a_vlan_that_is_promised_is_given_to_no_other_network(here: Place) -> None:
    options = NetworkOptions(vlan_interface="eth1", vlan_start=200)
    with here.compute.engine.begin() as conn:
        outline = networks_without_subnet.draw(conn, NetworkFields("a", VLAN, vlan=200))
        other = networks.create(conn, options, CreationRequest("b", IPv4Network("10.8.0.0/24")), VLAN)[0]
        assert other.vlan == 201
        with pytest.raises(Conflict, match="VLAN 200 belongs to network a"):
            networks.create(conn, options, CreationRequest("c", IPv4Network("10.7.0.0/24"), vlan_start=200), VLAN)
        networks_without_subnet.complete(conn, options, outline, Range(IPv4Network("10.9.0.0/24")))
        assert {one.label: one.vlan for one in networks.rows.listed(conn)}.items() >= {"a": 200, "b": 201}.items()


@pytest.mark.parametrize(
    ("whole", "kept", "left"),
    [
        ((10, 19), [], [(10, 19)]),
        ((10, 19), [(10, 19)], []),
        ((10, 19), [(0, 99)], []),
        ((10, 19), [(12, 13)], [(10, 11), (14, 19)]),
        ((10, 19), [(15, 30), (0, 11)], [(12, 14)]),
        ((10, 19), [(11, 18), (12, 13)], [(10, 10), (19, 19)]),
        ((10, 19), [(0, 9), (20, 30)], [(10, 19)]),
    ],
)
def test_a_stretch_without_others(
    whole: tuple[int, int], kept: list[tuple[int, int]], left: list[tuple[int, int]]
) -> None:
    found = floating_pool_ranges.without(stretch(*whole), [stretch(*one) for one in kept])
    assert list(found) == [stretch(*one) for one in left]
