"""climate floatingip, and leases of floating IPs: what is sent, what is shown."""

from typing import Any

import pytest

from tests.cli.conftest import Cli
from tests.cli.fake_server import FLOATING_IP, Wire

PATH, LEASES = "/reservation/v1/floatingips", "/reservation/v1/leases"


def test_an_address_is_registered(cli: Cli, wire: Wire) -> None:
    ran = cli("floatingip", "create", "public", "203.0.113.9", "-f", "value", "-c", "floating_ip_address")
    assert (ran.code, ran.out) == (0, "203.0.113.9\n")
    sent = wire.sent("POST", PATH)
    assert sent.body == {"floating_network_id": "public", "floating_ip_address": "203.0.113.9"}
    assert cli("floatingip", "create", "public", "203.0.113.9", "--dry-run").code == 0
    assert wire.sent("POST", PATH).query == {"dry_run": "true"}


def test_addresses_are_shown_and_removed_by_address_or_id(cli: Cli, wire: Wire) -> None:
    assert cli("floatingip", "list", "-f", "value", "-c", "id").out == f"{FLOATING_IP}\n"
    assert cli("floatingip", "show", "203.0.113.7", "-f", "value", "-c", "id").out == f"{FLOATING_IP}\n"
    assert cli("floatingip", "show", FLOATING_IP).code == 0
    assert wire.asked[-1].path == f"{PATH}/{FLOATING_IP}"
    assert cli("floatingip", "show", "203.0.113.8").code == 3
    assert cli("floatingip", "delete", "203.0.113.7", FLOATING_IP).code == 0
    assert [asked.path for asked in wire.asked if asked.method == "DELETE"] == [f"{PATH}/{FLOATING_IP}"] * 2


@pytest.mark.parametrize("which", [(), ("203.0.113.7",)])
def test_who_holds_them(cli: Cli, which: tuple[str, ...]) -> None:
    columns = ("-f", "value", "-c", "floating_ip_address", "-c", "lease_id")
    assert cli("floatingip", "allocations", *which, *columns).out == "203.0.113.7 l1\n"


WANTED = {"resource_type": "virtual:floatingip", "network_id": "n1", "amount": 2, "required_floatingips": []}
PEERS = "resource_type=virtual:floatingip,network_id=n1"
REQUIRED = {**WANTED, "amount": 1, "required_floatingips": ["203.0.113.7"]}


@pytest.mark.parametrize(
    ("options", "body"),
    [
        (("--floating-ips", "2", "--network", "n1"), WANTED),
        (("--network", "net", "--floating-ip", "203.0.113.7"), REQUIRED),
        (("--floating-ips", "2", "--network", "n1", "--grace", "10m"), {**WANTED, "grace_period": 600}),
        (
            ("--reservation", f"{PEERS},amount=1,required_floatingips=[\"203.0.113.7\"]"),
            REQUIRED,
        ),
        (
            ("--reservation", '{"resource_type": "virtual:floatingip", "network_id": "n1", "amount": 2}'),
            {"resource_type": "virtual:floatingip", "network_id": "n1", "amount": 2},
        ),
        (
            ("--reservation", 'resource_type=physical:host,min=1,max=1,resource_properties=["=", "$gpu", "a,b"]'),
            {"resource_type": "physical:host", "min": 1, "max": 1, "resource_properties": '["=", "$gpu", "a,b"]'},
        ),
    ],
)  # fmt: skip
def test_leases_of_addresses(cli: Cli, wire: Wire, options: tuple[str, ...], body: dict[str, Any]) -> None:
    ran = cli("lease", "create", "one", "--for", "1h", *options)
    assert ran.code == 0, ran.err
    assert wire.sent("POST", LEASES).body["reservations"] == [body]


def test_a_lease_of_hosts_and_addresses(cli: Cli, wire: Wire) -> None:
    cli("lease", "create", "one", "--for", "1h", "--hosts", "1", "--floating-ips", "2", "--network", "n1")
    sent = wire.sent("POST", LEASES).body["reservations"]
    assert [one["resource_type"] for one in sent] == ["physical:host", "virtual:floatingip"]


@pytest.mark.parametrize(
    "options",
    [
        ("--floating-ips", "2"),
        ("--floating-ip", "203.0.113.7"),
        ("--floating-ips", "0", "--network", "n1"),
        ("--reservation", "virtual:floatingip"),
        ("--reservation", "=1"),
    ],
)
def test_what_makes_no_sense_is_not_sent(cli: Cli, wire: Wire, options: tuple[str, ...]) -> None:
    assert cli("lease", "create", "one", "--for", "1h", *options).code == 2
    assert [asked for asked in wire.asked if asked.path == LEASES] == []


def test_a_network_that_is_not_there_is_named(cli: Cli) -> None:
    ran = cli("lease", "create", "one", "--for", "1h", "--floating-ips", "2", "--network", "nowhere")
    assert (ran.code, ran.err.splitlines()[0]) == (3, "error: no network 'nowhere'")


def test_more_addresses_for_a_lease(cli: Cli, wire: Wire) -> None:
    lease = wire.add_lease("one")
    assert cli("lease", "set", "one", "--floating-ips", "3").code == 0
    sent = wire.sent("PUT", f"{LEASES}/{lease['id']}").body
    assert sent["reservations"] == [{"id": lease["reservations"][0]["id"], "amount": 3}]
    assert cli("lease", "set", "one", "--floating-ips", "3", "--hosts", "2").code == 2
