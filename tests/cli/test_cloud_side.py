"""Hosts, servers, and the commands for scripts."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Cli, write_clouds
from tests.cli.fake_server import Wire

SERVERS = "/compute/v2.1/servers"
BOOT = ("boot", "s1", "--flavor", "small", "--image", "cirros")


def test_a_host_has_a_life(cli: Cli, wire: Wire) -> None:
    cli("host", "create", "gpu-1", "--extra", "gpu_count=2")
    assert wire.sent("POST", "/reservation/v1/os-hosts").body == {"name": "gpu-1", "gpu_count": "2"}
    assert cli("host", "list", "-f", "value", "-c", "hypervisor_hostname").out == "gpu-1\n"
    cli("host", "set", "gpu-1", "--extra", "rack=a=b")
    assert wire.sent("PUT", "/reservation/v1/os-hosts/1").body == {"rack": "a=b"}
    cli("host", "unset", "1", "--extra", "rack")
    assert wire.sent("PUT", "/reservation/v1/os-hosts/1").body == {"rack": None}
    assert cli("host", "delete", "gpu-1", "--dry-run").code == 0
    assert wire.sent("DELETE", "/reservation/v1/os-hosts/1").query == {"dry_run": "true"}


def test_properties_and_allocations_are_flat_rows(cli: Cli) -> None:
    assert cli("host", "property", "list", "-f", "value").out == "gpu\n"
    assert cli("host", "property", "show", "gpu", "-f", "json").data["values"] == ["1", "2"]
    held = cli("host", "allocations", "-f", "json").data
    assert (held[0]["host_id"], held[0]["start_date"]) == ("1", "2030-01-01T12:00:00Z")


def test_a_member_sees_the_values_of_public_properties(cli: Cli, wire: Wire) -> None:
    assert cli("lease", "list").code == 0
    wire.answers = [(403, {"error_code": 403, "error_message": "Only admins may list private properties"}, {})]
    assert cli("host", "property", "show", "gpu", "-f", "json").data["values"] == ["1", "2"]
    assert "all" not in wire.sent("GET", "/reservation/v1/os-hosts/properties").query


def test_boot_finds_things_by_name_and_waits(cli: Cli, wire: Wire) -> None:
    ran = cli(*BOOT, "--network", "net", "--key-name", "laptop", "--wait", "-f", "json")
    assert ran.data["status"] == "ACTIVE"
    assert ran.data["addresses"] == "net=10.0.0.5"
    sent = wire.sent("POST", SERVERS)
    assert sent.body["server"]["flavorRef"] == "1"
    assert sent.body["server"]["key_name"] == "laptop"
    assert sent.body["server"]["imageRef"] == "i1"
    assert sent.body["server"]["networks"] == [{"uuid": "n1"}]
    assert sent.headers["Openstack-Api-Version"] == "compute 2.79"


def test_all_of_several_servers_are_waited_for_and_shown(cli: Cli, wire: Wire) -> None:
    cli(*BOOT)
    ran = cli(*BOOT, "--count", "3", "--wait", "-f", "json")
    assert [row["status"] for row in ran.data] == ["ACTIVE"] * 3
    assert {row["id"] for row in ran.data} == set(list(wire.servers)[1:])
    assert len(cli(*BOOT, "--count", "2", "-f", "value", "-c", "id").out.splitlines()) == 2


def test_boot_into_several_networks(cli: Cli, wire: Wire) -> None:
    assert cli(*BOOT, "--network", "outside", "--network", "net").code == 0
    assert wire.sent("POST", SERVERS).body["server"]["networks"] == [{"uuid": "n2"}, {"uuid": "n1"}]
    assert cli(*BOOT).code == 0
    assert wire.sent("POST", SERVERS).body["server"]["networks"] == "auto"


def test_boot_in_an_availability_zone(cli: Cli, wire: Wire) -> None:
    assert cli(*BOOT, "--availability-zone", "nova:compute-1:gpu-1").code == 0
    assert wire.sent("POST", SERVERS).body["server"]["availability_zone"] == "nova:compute-1:gpu-1"
    assert cli(*BOOT).code == 0
    assert "availability_zone" not in wire.sent("POST", SERVERS).body["server"]


def test_boot_on_a_lease_names_its_reservation(cli: Cli, wire: Wire) -> None:
    lease = wire.add_lease("one")
    cli(*BOOT, "--lease", "one", "--hint", "group=g1")
    hints = wire.sent("POST", SERVERS).body["OS-SCH-HNT:scheduler_hints"]
    assert hints == {"reservation": lease["reservations"][0]["id"], "group": "g1"}


def test_boot_on_a_lease_of_several_reservations_asks_which(cli: Cli, wire: Wire) -> None:
    ids = ["r1", "r2"]
    wire.add_lease("one", reservations=[{"id": held, "resource_type": "physical:host"} for held in ids])
    ran = cli(*BOOT, "--lease", "one")
    assert ran.code == 2
    assert all(held in ran.err for held in ids)


def test_a_reserved_boot_carries_its_lease_as_json_text(cli: Cli, wire: Wire) -> None:
    ran = cli(*BOOT, "--reserved", "--start", "+1h", "--for", "2h", "--wait", "-f", "json")
    assert ran.data["status"] == "RESERVED"
    hints = wire.sent("POST", SERVERS).body["OS-SCH-HNT:scheduler_hints"]
    assert hints["reserved"] == "True"
    assert json.loads(hints["lease_params"]) == {
        "name": "lease-s1", "start": "2030-01-01T13:00:00Z", "end": "2030-01-01T15:00:00Z"
    }  # fmt: skip


@pytest.mark.parametrize(
    "options",
    [
        ("--reserved",),
        ("--lease-params", "{}"),
        ("--reserved", "--lease-params", "[]"),
        ("--reserved", "--start", "+1h"),
        ("--reservation", "r1", "--lease", "one"),
        ("--hint", "nothing"),
    ],
)
def test_a_boot_that_contradicts_itself_is_a_usage_error(cli: Cli, options: tuple[str, ...]) -> None:
    assert cli(*BOOT, *options).code == 2


def test_a_server_is_deleted_by_name(cli: Cli) -> None:
    cli(*BOOT, "--wait")
    assert cli("server", "delete", "s1", "--wait").code == 0
    assert cli("server", "show", "nothing").code == 3


def test_token_prints_nothing_but_the_token(cli: Cli, wire: Wire) -> None:
    assert cli("token").out.strip() in wire.tokens


def test_api_sends_what_it_is_given_and_never_to_a_stranger(cli: Cli) -> None:
    ran = cli("api", "post", "/v1/things", "--data", '{"a": 1}')
    assert ran.data == {"path": "/v1/things", "method": "POST", "body": {"a": 1}}
    for path in ("http://example.org/", "//example.org/", "v1/things"):
        assert cli("api", "GET", path).code == 2


def test_events_that_failed_are_listed(cli: Cli) -> None:
    assert cli("event", "list", "-f", "value", "-c", "id").out == "e1\n"


def test_another_cloud_is_chosen_by_option_or_variable(
    cli: Cli, wire: Wire, environ: dict[str, str], tmp_path: Path
) -> None:
    write_clouds(tmp_path / "nobody" / ".config" / "openstack", wire.url, name="other")
    assert cli("--os-cloud", "other", "lease", "list").code == 0
    assert cli("--os-cloud", "none", "lease", "list").code == 2
    environ["OS_CLOUD"] = "other"
    assert cli("lease", "list").code == 0
