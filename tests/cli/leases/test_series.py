"""climate lease create --repeat and climate series: what is sent, and the table of occurrences."""

from typing import Any

import pytest

from tests.cli.conftest import Cli
from tests.cli.fake_server import Wire
from tests.cli.series_answers import SERIES
from tests.cli.test_completion import completed

URL = "/reservation/v1/series"
ONE = f"{URL}/{SERIES['id']}"
CREATE = ("lease", "create", "training", "--for", "2h", "--hosts", "1", "--repeat", "FREQ=WEEKLY;COUNT=2")


def test_a_series_is_created_in_the_zone_of_the_environment(cli: Cli, wire: Wire, environ: dict[str, str]) -> None:
    environ["TZ"] = "Europe/Berlin"
    ran = cli(*CREATE)
    assert ran.code == 0, ran.err
    asked = wire.sent("POST", URL)
    assert asked.body["repeat"] == {"rule": "FREQ=WEEKLY;COUNT=2", "zone": "Europe/Berlin", "make": "all"}
    assert asked.body["reservations"][0]["min"] == 1
    assert "does not fit" in ran.out
    assert "hosts: Too few hosts are free" in ran.out
    assert "at a later time: 2030-02-12T13:00Z" in ran.out
    assert str(SERIES["id"]) in ran.err


@pytest.mark.parametrize("here", ["", "EST5EDT,M3.2.0,M11.1.0", "/etc/localtime"])
def test_the_zone_and_what_is_created_can_be_chosen(cli: Cli, wire: Wire, environ: dict[str, str], here: str) -> None:
    environ["TZ"] = here
    assert cli(*CREATE, "--fitting", "--dry-run").code == 0
    asked = wire.sent("POST", URL)
    assert (asked.body["repeat"]["zone"], asked.body["repeat"]["make"]) == ("UTC", "fitting")
    assert asked.query == {"dry_run": "true"}
    assert cli(*CREATE, "--timezone", "Asia/Tokyo", "-f", "json").data["id"] == SERIES["id"]
    assert wire.sent("POST", URL).body["repeat"]["zone"] == "Asia/Tokyo"


@pytest.mark.parametrize(
    "line",
    [
        (*CREATE, "--wait"),
        (*CREATE, "--hold", "5m"),
        (*CREATE[:-2], "--fitting"),
        (*CREATE[:-2], "--timezone", "UTC"),
        ("series", "set", "training"),
        ("series", "set", "training", "--later", "1h", "--earlier", "1h"),
        ("series", "extend", "training"),
    ],
)
def test_options_that_exclude_each_other(cli: Cli, wire: Wire, line: tuple[str, ...]) -> None:
    assert cli(*line).code == 2
    assert [one.method for one in wire.asked if "series" in one.path] == []


@pytest.mark.parametrize(
    ("words", "body"),
    [
        (("set", "--name", "course"), {"name": "course"}),
        (("set", "--later", "1h"), {"move_by": 3600}),
        (("set", "--earlier", "1d"), {"move_by": -86400}),
        (("extend", "30m"), {"extend_by": 1800}),
        (("shorten", "30m"), {"extend_by": -1800}),
    ],
)
def test_changes(cli: Cli, wire: Wire, words: tuple[str, ...], body: dict[str, Any]) -> None:
    lease = wire.add_lease("training-2030-02-05")
    assert cli("series", words[0], "training", *words[1:]).code == 0
    assert wire.sent("PUT", ONE).body == body
    assert cli("series", words[0], "training", *words[1:], "--from", "training-2030-02-05", "--dry-run").code == 0
    assert wire.sent("PUT", ONE).body == {**body, "from": lease["id"]}


def test_show_list_and_delete(cli: Cli, wire: Wire, environ: dict[str, str]) -> None:
    assert cli("series", "list", "-f", "value", "-c", "name").out == "training\n"
    assert "training-2030-02-12" in cli("series", "show", "training").out
    assert cli("series", "show", str(SERIES["id"]), "-f", "json").data["rule"] == SERIES["rule"]
    assert cli("series", "delete", "01a20ddc").code == 0
    assert wire.sent("DELETE", ONE)
    assert cli("series", "show", "other").code == 3
    assert completed(environ, ["series", "show"], "tr") == ["training"]
