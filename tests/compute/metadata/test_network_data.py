"""Network data of a server, for its guest."""

from climate.compute.metadata import network_data
from tests.compute.metadata.conftest import Cloud


def test_a_network_without_dhcp_has_static_addresses_and_one_default_route(cloud: Cloud) -> None:
    place = cloud(manager="flat")
    place.served("one", "10.1.0.0/24")
    place.served("two", "10.2.0.0/24")
    (server,) = place.boot()
    vifs = place.vifs(server.id)
    found = network_data.described(vifs, place.compute.network)
    first, second = found["networks"]  # type: ignore[misc]
    route = {"network": "0.0.0.0", "netmask": "0.0.0.0", "gateway": str(vifs[0].network.gateway)}
    assert (first["id"], first["type"], first["ip_address"]) == ("network0", "ipv4", str(vifs[0].addresses[0]))
    assert (first["netmask"], first["routes"]) == ("255.255.255.0", [route])
    assert (second["id"], second["ip_address"], second["routes"]) == ("network1", str(vifs[1].addresses[0]), [])
    assert found["services"] == [{"type": "dns", "address": str(server)} for server in vifs[0].network.dns]


def test_a_prefix_of_ipv6_is_a_network_of_its_own(cloud: Cloud) -> None:
    place = cloud(manager="flat_dhcp", use_ipv6=True)
    place.served("one", "10.1.0.0/24")
    (server,) = place.boot()
    networks = network_data.described(place.vifs(server.id), place.compute.network)["networks"]
    assert [one["type"] for one in networks] == ["ipv4_dhcp", "ipv6_slaac"]  # type: ignore[attr-defined]
