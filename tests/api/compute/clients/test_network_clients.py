"""Networks, pools and floating addresses by the openstack client, and by the climate command."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from climate.cli import run
from climate.compute.network.network_options import NetworkOptions
from tests.api.compute.clients.conftest import Person
from tests.compute import network_factory
from tests.compute.served_cloud import Served

pytestmark = pytest.mark.slow

Climate = Callable[..., Any]


@pytest.fixture(scope="module")
def dhcp(cloud: Served) -> Iterator[str]:
    """The name of a network whose addresses can have floating ones; no network is left by the tests of this module."""
    engine = cloud.here.compute.engine
    with engine.begin() as conn:
        network_factory.network(conn, "dhcp", "10.20.0.0/27", "flat_dhcp", NetworkOptions(flat_bridge="br200"))
    yield "dhcp"
    with engine.begin() as conn:
        for what in ("floating_addresses", "floating_pools", "networks WHERE label <> 'private'"):
            conn.execute(text(f"DELETE FROM compute_{what}"))


@pytest.fixture
def climate(home: Path, capsys: pytest.CaptureFixture[str]) -> Climate:
    """The climate command: what it says as JSON, or its exit code when that is not 0."""

    def call(words: str, *, cloud: str = "climate", form: bool = True) -> Any:
        capsys.readouterr()
        arguments = ["--os-cloud", cloud, *words.split(), *(["-f", "json"] if form else [])]
        code = run(arguments, {"CLIMATE_HOME": str(home), "HOME": str(home / "nobody")})
        said = capsys.readouterr().out
        return code or (json.loads(said) if form else None)

    return call


def test_networks(boss: Person, demo: Person) -> None:
    made = boss.read("network create n9 --provider-network-type vlan --provider-segment 909 --project demo")
    assert (made["status"], made["provider:segmentation_id"]) == ("DOWN", 909)
    assert "n9" not in demo.names("network list")
    subnet = boss.read("subnet create s9 --network n9 --subnet-range 10.90.0.0/28 --dns-nameserver 9.9.9.9")
    assert (subnet["gateway_ip"], subnet["allocation_pools"]) == (
        "10.90.0.1",
        [{"start": "10.90.0.3", "end": "10.90.0.14"}],
    )
    assert "n9" in demo.names("network list")
    assert demo.read("network show n9")["subnets"] == [subnet["id"]]
    assert "409" in boss.refused("subnet create s10 --network n9 --subnet-range 10.91.0.0/28")
    assert "403" in demo.refused("network create n10")
    boss("network create n10")
    boss("network delete n10")
    assert "private" in boss.names("ip availability list", "Network Name")
    assert boss.read("ip availability show private")["network_name"] == "private"
    assert boss.read("network agent list") is not None
    assert "external-net" in demo.names("extension list --network", "Alias")


def test_pools_and_floating_addresses(boss: Person, demo: Person, dhcp: str) -> None:
    boss("network create outside --external --provider-network-type flat --provider-physical-network eth0")
    boss(
        "subnet create outside --network outside --subnet-range 203.0.113.0/24 --no-dhcp "
        "--allocation-pool start=203.0.113.10,end=203.0.113.12"
    )
    assert demo.names("network list --external") == ["outside"]
    boss("subnet set outside --allocation-pool start=203.0.113.20,end=203.0.113.20")
    demo(f"server create --flavor m1.tiny --image demo --network {dhcp} f9")
    demo.sees("f9", "ACTIVE")
    made = demo.read("floating ip create outside --floating-ip-address 203.0.113.11 --description web")
    assert (made["floating_ip_address"], made["description"], made["tags"]) == ("203.0.113.11", "web", [])
    demo("server add floating ip f9 203.0.113.11")
    assert demo.read("server show f9")["addresses"]["dhcp"][1] == "203.0.113.11"
    demo("server remove floating ip f9 203.0.113.11")
    port = demo.read("port list --server f9")[0]["ID"]
    assert demo.read(f"port show {port}")["id"] == port
    demo(f"floating ip set --port {port} 203.0.113.11")
    assert demo.read("floating ip show 203.0.113.11")["port_id"] == port
    assert demo.names("floating ip list --long", "Status") == ["ACTIVE"]
    demo("floating ip unset --port 203.0.113.11")
    boss("quota set --floating-ips 1 demo")
    assert "quota" in demo.refused("floating ip create outside").lower()
    assert "409" in boss.refused("network delete outside")
    boss("quota delete --network demo")
    demo("floating ip delete 203.0.113.11")
    boss("network delete outside")
    demo("server delete f9 --wait")


def test_ports(boss: Person, demo: Person, dhcp: str) -> None:
    made = demo.read(f"port create p9 --network {dhcp} --fixed-ip ip-address=10.20.0.20 --description web")
    assert (made["name"], made["status"], made["fixed_ips"][0]["ip_address"]) == ("p9", "DOWN", "10.20.0.20")
    demo("port set p9 --name p10 --disable --no-security-group")
    shown = demo.read("port show p10")
    assert (shown["admin_state_up"], shown["security_group_ids"]) == (False, [])
    demo("port set p10 --enable --security-group default")
    demo("server create --flavor m1.tiny --image demo --port p10 s9")
    demo.sees("s9", "ACTIVE")
    assert demo.read("server show s9")["addresses"] == {"dhcp": ["10.20.0.20"]}
    assert "409" in demo.refused("server create --flavor m1.tiny --image demo --port p10 s10")
    demo("server remove port s9 p10")
    demo.sees("s9", "ACTIVE")
    assert demo.read("port show p10")["device_id"] == ""
    demo("server add port s9 p10")
    demo.sees("s9", "ACTIVE")
    demo("server delete s9 --wait")
    assert demo.names("port list") == ["p10"]
    boss("quota set --ports 1 demo")
    assert "quota" in demo.refused(f"port create p11 --network {dhcp}").lower()
    boss("quota delete --network demo")
    demo("port delete p10")
    assert demo.names("port list") == []


def test_fixed_addresses(demo: Person, dhcp: str) -> None:
    demo("server create --flavor m1.tiny --image demo --nic net-id=private,v4-fixed-ip=10.10.0.50 a9")
    demo.sees("a9", "ACTIVE")
    demo(f"server add fixed ip a9 {dhcp} --fixed-ip-address 10.20.0.9")
    demo.sees("a9", "ACTIVE")
    assert demo.read("server show a9")["addresses"] == {"private": ["10.10.0.50"], "dhcp": ["10.20.0.9"]}
    demo("server remove fixed ip a9 10.20.0.9")
    demo.sees("a9", "ACTIVE")
    assert "dhcp" not in demo.read("server show a9")["addresses"]
    assert "400" in demo.refused("server remove fixed ip a9 10.20.0.9")
    demo("server delete a9 --wait")


def test_the_command_about_networks(climate: Climate, cloud: Served) -> None:
    made = climate("network create v 10.80.0.0/24 --manager vlan --count 2 --size 32 --vlan 880 --dns 9.9.9.9")
    assert [(one["label"], one["cidr"], one["vlan"]) for one in made] == [
        ("v_0", "10.80.0.0/27", 880),
        ("v_1", "10.80.0.32/27", 881),
    ]
    assert {"v_0", "v_1"} <= {one["label"] for one in climate("network list")}
    assert "v_0" not in {one["label"] for one in climate("network list", cloud="climate-demo")}
    climate("network associate some-project v_1", form=False)
    assert climate("network show v_1")["project_id"] == "some-project"
    assert climate("network delete v_1", form=False) == 5
    climate("network disassociate v_1", form=False)
    climate("network delete v_0 v_1", form=False)
    assert climate("network show v_0") == 3
    assert climate("network create v 10.10.0.0/26") == 5
    assert climate("network create w 10.80.0.0/24", cloud="climate-demo") != 0
    assert isinstance(climate("network hosts"), list)


def test_the_command_about_floating_addresses(climate: Climate, demo: Person, dhcp: str) -> None:
    mine = "climate-demo"
    climate("floating pool create p9 198.51.100.0/24 --addresses 198.51.100.7-198.51.100.8 --interface eth9")
    climate("floating pool add p9 198.51.100.9")
    (pool,) = (one for one in climate("floating pool list") if one["name"] == "p9")
    assert (pool["addresses"], pool["total_ips"], pool["used_ips"]) == ("198.51.100.7-198.51.100.9", 3, 0)
    assert climate("floating pool list", cloud=mine)[0]["name"] == "p9"
    assert climate("floating pool add nobody 198.51.100.9") == 3
    demo(f"server create --flavor m1.tiny --image demo --network {dhcp} c9")
    demo.sees("c9", "ACTIVE")
    made = climate("floating create p9 --address 198.51.100.8 --server c9 --description web", cloud=mine)
    assert (made["floating_ip_address"], made["status"]) == ("198.51.100.8", "ACTIVE")
    assert climate("floating disassociate 198.51.100.8", cloud=mine)["status"] == "DOWN"
    assert climate("floating associate 198.51.100.8 c9", cloud=mine)["fixed_ip_address"] == made["fixed_ip_address"]
    assert climate("floating associate 198.51.100.8 c9 --fixed 10.20.0.30", cloud=mine) == 3
    assert climate("floating show 198.51.100.8", cloud=mine)["id"] == made["id"]
    assert [one["id"] for one in climate("floating list", cloud=mine)] == [made["id"]]
    climate("floating delete 198.51.100.8", cloud=mine, form=False)
    assert climate("floating list", cloud=mine) == []
    assert climate("floating create", cloud=mine)["floating_ip_address"] == "198.51.100.7"
    climate("floating delete 198.51.100.7", cloud=mine, form=False)
    demo("server delete c9 --wait")
