"""climate audit: what is asked, what is shown."""

import json

from tests.cli.conftest import Cli
from tests.cli.fake_server import Wire

AUDIT = "/reservation/v1/audit"


def test_changes_are_listed_with_author_before_and_after(cli: Cli, wire: Wire) -> None:
    columns = ("-c", "author", "-c", "kind", "-c", "object_id", "-c", "action", "-c", "before", "-c", "after")
    assert cli("audit", "-f", "value", *columns).out == "ada limits p1 changed leases=3 leases=5\n"
    assert wire.sent("GET", AUDIT).query == {"limit": "500"}


def test_json_is_what_the_server_says(cli: Cli, wire: Wire) -> None:
    (entry,) = json.loads(cli("audit", "--json").out)
    assert (entry["before"], entry["after"]) == ({"leases": 3}, {"leases": 5})
    assert json.loads(cli("audit", "-f", "json").out) == [entry]


def test_conditions_are_sent(cli: Cli, wire: Wire) -> None:
    asked = ("--kind", "user", "--object", "u1", "--author", "a1", "--project", "p1", "--since", "2030-01-01 12:00")
    assert cli("audit", *asked, "--until", "2030-01-02 12:00", "--limit", "0").code == 0
    assert wire.sent("GET", AUDIT).query == {
        "kind": "user",
        "object": "u1",
        "author": "a1",
        "project": "p1",
        "limit": "500",
        "since": "2030-01-01T12:00:00Z",
        "until": "2030-01-02T12:00:00Z",
    }
    assert cli("audit", "--kind", "lease").code == 2
