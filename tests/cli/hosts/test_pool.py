"""Pools and where hosts go, from the command line."""

from typing import Any

import pytest

from tests.cli.conftest import Cli
from tests.cli.fake_server import Wire

V1 = "/reservation/v1"


def test_pools_are_listed_and_shown(cli: Cli) -> None:
    assert cli("pool", "list", "-f", "value", "-c", "name", "-c", "hosts").out == "reservation 8\n"
    assert cli("pool", "show", "reservation", "-f", "json").data["hosts"] == 8


def test_the_hosts_of_a_pool_tell_their_next_lease_and_their_servers(cli: Cli, wire: Wire) -> None:
    ran = cli("pool", "hosts", "recycling", "-f", "csv", "-c", "name", "-c", "servers", "-c", "next_start")
    assert ran.out == "name,servers,next_start\nh7,web(ACTIVE),2030-01-02T12:00:00Z\nh8,,\n"
    assert "servers" not in wire.sent("GET", f"{V1}/pools/recycling/hosts").query
    assert cli("pool", "hosts", "lent", "--servers", "-f", "json").data[0]["servers"][0]["id"] == "s1"
    assert wire.sent("GET", f"{V1}/pools/lent/hosts").query["servers"] == "true"


def test_hosts_that_nobody_registered_are_reported_with_the_others(cli: Cli) -> None:
    ran = cli("pool", "hosts", "multi-tenant", "-f", "csv", "-c", "id", "-c", "name", "-c", "server_count")
    assert ran.out == "id,name,server_count\n7,h7,\n8,h8,\n,n1,2\n"
    assert cli("pool", "hosts", "multi-tenant", "-f", "json").data[2]["reason"] == "not registered"


def test_a_busy_host_is_registered_to_be_drained(cli: Cli, wire: Wire) -> None:
    assert cli("host", "create", "n1", "--drain", "--dry-run").code == 0
    assert wire.sent("POST", f"{V1}/os-hosts").query == {"dry_run": "true", "drain": "true"}


def test_the_backlog_is_one_line_a_promise(cli: Cli, wire: Wire) -> None:
    ran = cli("pool", "backlog", "--from", "now", "--to", "+2d", "-f", "value", "-c", "name", "-c", "lease_id")
    assert ran.out == "h7 l1\nh7 l1\n"
    query = wire.sent("GET", f"{V1}/pools/reservation/backlog").query
    assert (query["from"][:10], query["to"][:10]) == ("2030-01-01", "2030-01-03")


def test_the_backlog_of_all_pools_names_them(cli: Cli) -> None:
    pools = cli("pool", "list", "-f", "value", "-c", "name").out.split()
    ran = cli("pool", "backlog", "--all", "-f", "value", "-c", "pool", "-c", "name")
    assert ran.out == "".join(f"{name} h7\n" * 2 for name in pools)


@pytest.mark.parametrize(
    ("arguments", "body"),
    [
        (("--target", "6"), {"target": 6}),
        (("--on-end", "recycle", "--grace", "30m"), {"on_end": "recycle", "grace_period": 1800}),
        (("--horizon", "2d", "--spare", "3", "--dwell", "90m"), {"horizon": 172800, "spare": 3, "dwell": 5400}),
        (("--margin", "50", "--slack", "0", "--no-drain"), {"margin": 50, "slack": 0, "drain": False}),
        (("--recycle-deadline", "move", "--unset", "target"), {"recycle_deadline": "move", "target": None}),
    ],
)
def test_terms_are_set(cli: Cli, wire: Wire, arguments: tuple[str, ...], body: dict[str, Any]) -> None:
    ran = cli("pool", "set", *arguments, "--dry-run", "-f", "json")
    assert (ran.code, ran.data["terms"]) == (0, body)
    assert wire.sent("PUT", f"{V1}/pools/reservation").query == {"dry_run": "true"}


def test_the_plan_is_reported_in_words_with_what_is_done(cli: Cli) -> None:
    ran = cli("pool", "plan", "-f", "value", "-c", "name", "-c", "step")
    assert ran.out == "h7 take\nh8 not to release\n"
    assert ran.err == (
        "Until 2030-01-03T12:00:00Z at most 8 hosts are promised at once at 2030-01-02T10:00:00Z. "
        "With 2 spare 10 are wanted, at least 4, and more than 12 are too many; "
        "the pool has 6, and 1 are draining. 1 are lacking.\n"
    )
    assert cli("pool", "plan", "-f", "json").data["wanted"] == 10


def test_nothing_to_set_is_a_mistake(cli: Cli) -> None:
    assert cli("pool", "set").code == 2


def test_hosts_are_moved_by_both_commands(cli: Cli, wire: Wire) -> None:
    for command in (("pool", "move", "failed", "7", "8"), ("host", "move", "7", "8", "--to", "failed")):
        ran = cli(
            *command, "--force", "--reason", "smoke", "--from", "lent", "-f", "value", "-c", "name", "-c", "leases"
        )
        assert (ran.code, ran.out) == (0, "h7 l1\nh8 l1\n")
        sent = wire.sent("POST", f"{V1}/pools/failed/moves")
        assert sent.body == {"hosts": ["7", "8"], "reason": "smoke", "force": True, "from": "lent"}
    cli("host", "move", "7", "--to", "reservation", "--dry-run")
    tried = wire.sent("POST", f"{V1}/pools/reservation/moves")
    assert (tried.query, tried.body) == ({"dry_run": "true"}, {"hosts": ["7"], "reason": "", "force": False})


def test_a_host_is_closed_opened_and_tells_its_story(cli: Cli, wire: Wire) -> None:
    cli("host", "create", "gpu-1")
    for verb, reservable in (("close", False), ("open", True)):
        ran = cli("host", verb, "gpu-1", "--reason", "fan", "-f", "json")
        assert (ran.code, ran.data["reservable"]) == (0, reservable)
        assert wire.sent("PUT", f"{V1}/os-hosts/1/reservable").body == {"reservable": reservable, "reason": "fan"}
    ran = cli("host", "history", "gpu-1", "-f", "value", "-c", "kind", "-c", "pool")
    assert ran.out == "HostEnrolled reservation\n"
