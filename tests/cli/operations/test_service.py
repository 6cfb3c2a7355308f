"""Services and nodes, from the command line."""

import pytest

from tests.cli.conftest import Cli
from tests.cli.fake_server import Wire

SERVICES = "/compute/v2.1/os-services"
NODE = {
    "id": "n1",
    "hypervisor_hostname": "gpu-1",
    "state": "up",
    "status": "enabled",
    "service": {"host": "c1"},
    "running_vms": 2,
    "vcpus": 8,
    "climate:maintenance": "new fan",
}


@pytest.fixture(autouse=True)
def _two_services(wire: Wire) -> None:
    wire.services = {f"s{number}": {"id": f"s{number}", "host": f"c{number}", "status": "enabled"} for number in (1, 2)}
    wire.nodes = [NODE]


def test_a_service_is_found_by_its_host_and_changed(cli: Cli, wire: Wire) -> None:
    assert cli("service", "list", "-f", "value", "-c", "host").out == "c1\nc2\n"
    assert cli("service", "disable", "c2", "--reason", "disks", "-f", "json").data["status"] == "disabled"
    assert wire.sent("PUT", f"{SERVICES}/s2").body == {"status": "disabled", "disabled_reason": "disks"}
    for verb, body in (
        ("enable", {"status": "enabled"}),
        ("down", {"forced_down": True}),
        ("up", {"forced_down": False}),
    ):
        assert cli("service", verb, "s1").code == 0
        assert wire.sent("PUT", f"{SERVICES}/s1").body == body
    assert cli("service", "delete", "c1").code == 0
    assert set(wire.services) == {"s2"}
    unknown = cli("service", "enable", "c9")
    assert (unknown.code, "climate service list" in unknown.err) == (3, True)


def test_nodes_are_listed_with_their_maintenance(cli: Cli) -> None:
    row = cli("node", "list", "-f", "json").data[0]
    assert (row["name"], row["service"], row["servers"], row["maintenance"]) == ("gpu-1", "c1", 2, "new fan")


def test_a_node_goes_into_maintenance_and_back(cli: Cli, wire: Wire) -> None:
    path = "/compute/v2.1/os-hosts/gpu-1"
    assert cli("node", "maintenance", "gpu-1", "--reason", "new fan").code == 0
    asked = wire.sent("PUT", path)
    assert asked.body == {"maintenance_mode": "enable", "reason": "new fan"}
    assert asked.headers["Openstack-Api-Version"] == "compute 2.42"
    cli("node", "maintenance", "gpu-1", "--end")
    assert wire.sent("PUT", path).body == {"maintenance_mode": "disable"}
    for options in ((), ("--reason", "x", "--end")):
        ran = cli("node", "maintenance", "gpu-1", *options)
        assert (ran.code, "exactly one of --reason, --end" in ran.err) == (2, True)
