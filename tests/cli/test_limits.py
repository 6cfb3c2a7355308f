"""climate limit and climate notice: what is asked, what is shown."""

import json
from typing import Any

import pytest

from climate.cli.connection.session import Session
from climate.cli.leases.notice import followed
from tests.cli.conftest import Cli
from tests.cli.fake_server import Wire

LIMITS, NOTICES = "/reservation/v1/limits", "/reservation/v1/notices"


def notice(number: int, message: str, at: str = "2030-01-01T12:00:00.000000") -> dict[str, Any]:
    return {"id": str(number), "at": at, "kind": "lease.grace", "message": message, "lease_id": None, "host_id": None}


def test_limits_are_listed(cli: Cli, wire: Wire) -> None:
    assert cli("limit", "list", "-f", "value", "-c", "name", "-c", "value").out == "leases 3\n"
    assert wire.sent("GET", LIMITS).query == {}
    assert cli("limit", "list", "--all").code == 0
    assert wire.sent("GET", LIMITS).query == {"all": "true"}
    assert "default" in cli("limit", "show", "p 2").out
    assert wire.asked[-1].path == f"{LIMITS}/p 2"


def test_limits_are_set_and_unset(cli: Cli, wire: Wire) -> None:
    assert cli("limit", "set", "default", "leases=4", "host_hours=none").code == 0
    assert wire.sent("PUT", f"{LIMITS}/default").body == {"leases": 4, "host_hours": -1}
    assert cli("limit", "unset", "p1", "leases", "--dry-run").code == 0
    sent = wire.sent("PUT", f"{LIMITS}/p1")
    assert (sent.body, sent.query) == ({"leases": None}, {"dry_run": "true"})
    assert cli("limit", "unset", "p1").code == 0
    assert wire.sent("DELETE", f"{LIMITS}/p1")


PROJECT = {"id": "9edf080a10834457a90952a46c9ef60b", "name": "lab"}


def test_a_limit_is_set_for_a_project_by_its_name(cli: Cli, wire: Wire) -> None:
    assert cli("token").code == 0
    wire.answers = [(200, {"projects": [PROJECT]}, {})]
    assert cli("limit", "set", "lab", "leases=3").code == 0
    assert wire.asked[-1].path == f"{LIMITS}/{PROJECT['id']}"
    assert cli("limit", "set", PROJECT["id"], "leases=3").code == 0
    assert [asked.method for asked in wire.asked[-2:]] == ["PUT", "PUT"]


def test_a_limit_of_no_project_is_refused(cli: Cli, wire: Wire) -> None:
    assert cli("token").code == 0
    wire.answers = [(200, {"projects": [PROJECT]}, {})]
    ran = cli("limit", "set", "laboratory", "leases=3")
    assert (ran.code, "no project 'laboratory'" in ran.err) == (3, True)
    assert wire.asked[-1].method == "GET"


def test_limits_of_a_deleted_project_are_still_removed(cli: Cli, wire: Wire) -> None:
    assert cli("token").code == 0
    wire.answers = [(200, {"projects": [PROJECT]}, {})]
    assert cli("limit", "unset", "laboratory").code == 0
    assert wire.sent("DELETE", f"{LIMITS}/laboratory")


def test_what_was_decided_is_reported_with_its_author(cli: Cli, wire: Wire) -> None:
    told = cli("limit", "history", "p1", "-f", "value", "-c", "author", "-c", "decided").out
    assert told == "admin host_hours=unset leases=4\n"
    assert wire.asked[-1].path == f"{LIMITS}/p1/history"
    assert cli("pool", "history", "-f", "value", "-c", "decided").out == "target=3\n"
    assert cli("limit", "show", "p1", "--at", "2030-01-01 12:00").code == 0
    assert wire.sent("GET", f"{LIMITS}/p1").query["at"].startswith("2030-01-01")
    assert cli("pool", "show", "reservation", "--at", "2030-01-01 12:00").code == 0
    assert wire.sent("GET", "/reservation/v1/pools/reservation").query["at"].startswith("2030-01-01")


@pytest.mark.parametrize("bound", ["leases", "leases=x", "leases=-3", "hosts=3", "leases=1.5"])
def test_what_is_no_limit_is_not_sent(cli: Cli, wire: Wire, bound: str) -> None:
    assert cli("limit", "set", "p1", bound).code == 2
    assert wire.asked == []


def test_a_limit_in_the_way_has_an_exit_code_of_its_own(cli: Cli, wire: Wire) -> None:
    assert cli("token").code == 0
    limit = {"name": "leases", "value": 3, "used": 3, "asked": 1}
    body = {"error_code": 403, "error_message": "Limit leases is 3", "error_name": 403, "limit": limit}
    wire.answers = [(403, body, {})]
    ran = cli("lease", "list", "-f", "json")
    said = json.loads(ran.err)
    assert (ran.code, said["code"], said["details"]["limit"]) == (6, 6, limit)
    assert "climate limit list" in said["hint"]


def test_notices_are_listed(cli: Cli, wire: Wire) -> None:
    wire.notices = [notice(1, "one"), notice(2, "two\x1b[2J")]
    lease = wire.add_lease("mine")
    ran = cli("notice", "list", "--since", "-1h", "--kind", "lease.grace", "--lease", "mine", "-f", "value")
    assert ran.out.count("\n") == 2
    assert "\x1b" not in ran.out
    query = wire.sent("GET", NOTICES).query
    assert (query["kind"], query["lease_id"]) == ("lease.grace", lease["id"])
    assert query["since"].startswith("2030-01-01T11:00:0")


def test_following_shows_each_once_also_one_that_was_late(wire: Wire, environ: dict[str, str]) -> None:
    session = Session(environ)
    wire.notices = [notice(5, "five")]
    coming = followed(session.client, {"kind": "x"}, pause=0)
    assert next(coming)["message"] == "five"
    wire.notices = [notice(4, "four, begun before"), notice(5, "five"), notice(6, "six", "2030-01-01T12:05:00.000000")]
    assert [next(coming)["message"] for _ in range(2)] == ["four, begun before", "six"]
    wire.notices = [wire.notices[-1], notice(7, "seven", "2030-01-01T12:05:00.000000")]  # those since then
    assert next(coming)["message"] == "seven"
    query = wire.sent("GET", NOTICES).query
    assert (query["kind"], query["since"]) == ("x", "2030-01-01T12:04:00Z")
    session.close()
