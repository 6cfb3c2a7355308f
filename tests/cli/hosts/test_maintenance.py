"""climate maintenance, host maintenance, heal, fail, health, and reservation reallocate: what they send."""

from tests.cli.conftest import Cli
from tests.cli.fake_server import Wire

V1 = "/reservation/v1"


def test_a_window_is_planned(cli: Cli, wire: Wire) -> None:
    ran = cli("host", "maintenance", "1", "--from", "+1h", "--for", "2h", "--reason", "new memory", "-f", "json")
    assert (ran.code, ran.data["id"]) == (0, "w1")
    body = wire.sent("POST", f"{V1}/maintenances").body
    assert (body["host_id"], body["reason"], body["force"]) == ("1", "new memory", False)
    assert (body["start_date"], body["end_date"]) == ("2030-01-01T13:00:00Z", "2030-01-01T15:00:00Z")


def test_one_without_an_end(cli: Cli, wire: Wire) -> None:
    ran = cli("host", "maintenance", "1", "--reason", "x", "--force", "--dry-run")
    asked = wire.sent("POST", f"{V1}/maintenances")
    assert (asked.body["start_date"], asked.body["end_date"], asked.body["force"]) == ("now", None, True)
    assert asked.query == {"dry_run": "true"}
    assert "lease l1 (n) has no other host; it lacks 1" in ran.err


def test_windows_are_listed_shown_changed_and_ended(cli: Cli, wire: Wire) -> None:
    assert cli("maintenance", "list", "--host", "1", "--state", "all", "-f", "json").data[0]["id"] == "w1"
    assert wire.sent("GET", f"{V1}/maintenances").query.items() >= {"host_id": "1", "state": "all"}.items()
    assert cli("maintenance", "show", "w1", "-f", "json").data["id"] == "w1"
    assert cli("maintenance", "set", "w1", "--open-end", "--reason", "y").code == 0
    assert wire.sent("PUT", f"{V1}/maintenances/w1").body == {"end_date": None, "reason": "y", "force": False}
    assert cli("maintenance", "end", "w1", "w2").code == 0
    assert wire.sent("DELETE", f"{V1}/maintenances/w2")


def test_hosts_are_declared(cli: Cli, wire: Wire) -> None:
    assert cli("host", "fail", "1", "--reason", "smoke").code == 0
    assert wire.sent("POST", f"{V1}/os-hosts/1/fail").body == {"reason": "smoke"}
    assert cli("host", "heal", "1").code == 0
    assert wire.sent("POST", f"{V1}/os-hosts/1/heal").body is None
    assert cli("host", "health", "1", "-f", "json").data["host_id"] == "1"


def test_a_host_of_a_lease_is_changed(cli: Cli, wire: Wire) -> None:
    lease = wire.add_lease("mine")
    assert cli("reservation", "reallocate", "1", "--lease", "mine", "--to", "2").code == 0
    assert wire.sent("PUT", f"{V1}/os-hosts/1/allocation").body == {
        "lease_id": lease["id"],
        "to": "2",
        "force": False,
    }
    assert cli("reservation", "reallocate", "1", "--reservation", "r1").code == 0
    assert wire.sent("PUT", f"{V1}/os-hosts/1/allocation").body == {"reservation_id": "r1", "to": None, "force": False}


def test_what_is_not_said_right(cli: Cli) -> None:
    assert cli("host", "maintenance", "1").code == 2
    assert cli("host", "maintenance", "1", "--reason", "x", "--to", "+1h", "--for", "1h").code == 2
    assert cli("maintenance", "set", "w1", "--to", "+1h", "--open-end").code == 2
    assert cli("host", "fail", "1").code == 2
    assert cli("reservation", "reallocate", "1").code == 2
    assert cli("reservation", "reallocate", "1", "--lease", "a", "--reservation", "b").code == 2
