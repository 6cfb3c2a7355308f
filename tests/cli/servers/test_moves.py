"""Servers that go to other hosts: what the commands send, show, and end with."""

from typing import Any

import pytest

from tests.cli.conftest import Cli
from tests.cli.fake_server import Wire

SERVERS = "/compute/v2.1/servers"


@pytest.fixture
def server_id(cli: Cli, wire: Wire) -> str:
    cli("boot", "s1", "--flavor", "small", "--image", "cirros", "--wait")
    return next(iter(wire.servers))


def move(server_id: str, to: str | None, reason: str | None = None, action: str = "migrate") -> dict[str, Any]:
    server = {"id": server_id, "name": "s1", "project_id": "p"}
    return {"server": server, "source_node": "n1", "action": action, "dest_node": to, "reason": reason}


@pytest.mark.parametrize(
    ("words", "sent"),
    [
        (("migrate", "s1"), {"migrate": None}),
        (("migrate", "s1", "--host", "n2"), {"migrate": {"host": "n2"}}),
        (("evacuate", "s1", "--fenced"), {"evacuate": {}}),
        (("evacuate", "s1", "--host", "n2", "--fenced", "--wait"), {"evacuate": {"host": "n2"}}),
    ],
)
def test_what_commands_send(
    cli: Cli, wire: Wire, server_id: str, words: tuple[str, ...], sent: dict[str, object]
) -> None:
    assert cli("server", *words).code == 0
    assert wire.sent("POST", f"{SERVERS}/{server_id}/action").body == sent


def test_a_migration_is_confirmed_when_it_has_arrived(cli: Cli, wire: Wire, server_id: str) -> None:
    wire.after |= {"migrate": "VERIFY_RESIZE", "confirmResize": "ACTIVE"}
    assert cli("server", "migrate", "s1", "--confirm").code == 0
    assert wire.servers[server_id]["status"] == "ACTIVE"
    assert wire.sent("POST", f"{SERVERS}/{server_id}/action").body == {"confirmResize": None}


def test_a_migration_that_was_taken_back_is_a_failure(cli: Cli, wire: Wire, server_id: str) -> None:
    wire.after["migrate"] = "ACTIVE"
    assert cli("server", "migrate", "s1", "--wait").code == 1


def test_migrations_are_listed(cli: Cli, wire: Wire, server_id: str) -> None:
    wire.migrations.append({"id": 7, "instance_uuid": server_id, "status": "finished"})
    shown = cli("server", "migrations", "s1", "--status", "finished", "-f", "value", "-c", "id", "-c", "status")
    assert shown.out == "7 finished\n"
    assert wire.sent("GET", "/compute/v2.1/os-migrations").query == {"instance_uuid": server_id, "status": "finished"}


def test_a_preview_changes_nothing(cli: Cli, wire: Wire, server_id: str) -> None:
    wire.moves += [move(server_id, "n2"), move(server_id, None, "it is paused")]
    shown = cli("host", "evacuate", "n1", "--preview", "-f", "value", "-c", "to", "-c", "reason")
    assert (shown.code, shown.out) == (0, "n2 \n it is paused\n")
    assert [one for one in wire.asked if one.path.endswith("/action")] == []


def test_a_host_is_emptied_as_it_was_planned(cli: Cli, wire: Wire, server_id: str) -> None:
    wire.after |= {"migrate": "VERIFY_RESIZE", "confirmResize": "ACTIVE"}
    wire.moves.append(move(server_id, "n2"))
    assert cli("host", "evacuate", "n1").code == 0
    sent = [one.body for one in wire.asked if one.path.endswith("/action")]
    assert sent == [{"migrate": {"host": "n2"}}, {"confirmResize": None}]


@pytest.mark.parametrize(("ended", "code"), [("completed", 0), ("error", 1)])
def test_a_server_that_can_move_while_it_runs_is_not_confirmed(
    cli: Cli, wire: Wire, server_id: str, ended: str, code: int
) -> None:
    wire.after["os-migrateLive"] = "ACTIVE"
    wire.moves.append(move(server_id, "n2", action="os-migrateLive"))
    wire.migrations.append({"id": 7, "instance_uuid": server_id, "migration_type": "live-migration", "status": ended})
    assert cli("host", "evacuate", "n1").code == code
    sent = [one.body for one in wire.asked if one.path.endswith("/action")]
    assert sent == [{"os-migrateLive": {"host": "n2", "block_migration": "auto"}}]


def test_what_stays_makes_the_command_fail(cli: Cli, wire: Wire, server_id: str) -> None:
    wire.after["evacuate"] = "ERROR"
    wire.servers[server_id]["fault"] = {"message": "no image"}
    wire.moves += [move(server_id, "n2", action="evacuate"), move(server_id, None, "it is paused")]
    ran = cli("host", "evacuate", "n1", "--fenced")
    assert (ran.code, "2 of 2 servers stayed on n1" in ran.err) == (1, True)
    assert "no image" in ran.out


def test_servers_of_a_host_that_may_still_run_are_not_recreated(cli: Cli, wire: Wire, server_id: str) -> None:
    wire.moves.append(move(server_id, "n2", action="evacuate"))
    ran = cli("host", "evacuate", "n1")
    assert (ran.code, "--fenced" in ran.err, "its power is unknown" in ran.err) == (1, True, True)
    assert [one for one in wire.asked if one.path.endswith("/action")] == []
    assert cli("host", "evacuate", "n1", "--preview").code == 0
    assert cli("host", "evacuate", "n1", "--fenced").code == 0
    assert [one.body for one in wire.asked if one.path.endswith("/action")] == [{"evacuate": {"host": "n2"}}]


def test_a_server_that_may_still_run_is_not_recreated(cli: Cli, wire: Wire, server_id: str) -> None:
    wire.servers[server_id]["OS-EXT-SRV-ATTR:hypervisor_hostname"] = "n1"
    wire.hosts["1"] = {"id": "1", "hypervisor_hostname": "n1"}
    for state in ("unknown", "on"):
        wire.power_state = state
        ran = cli("server", "evacuate", "s1")
        assert (ran.code, "--fenced" in ran.err, f"its power is {state}" in ran.err) == (1, True, True)
    assert [one for one in wire.asked if one.path.endswith("/action")] == []
    wire.power_state = "off"
    assert cli("server", "evacuate", "s1").code == 0
    assert wire.sent("POST", f"{SERVERS}/{server_id}/action").body == {"evacuate": {}}


def test_the_host_of_a_server_may_be_unknown(cli: Cli, wire: Wire, server_id: str) -> None:
    ran = cli("server", "evacuate", "s1")
    assert (ran.code, "--fenced" in ran.err, "(not shown)" in ran.err) == (1, True, True)
