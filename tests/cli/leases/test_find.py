"""climate find: what is asked for, the table with its line, and holds and leases of an offer."""

from typing import Any

import pytest

from climate.cli import tables
from climate.cli.leases.find import WIDTH, WindowType, _bars, _sampled
from tests.cli.conftest import Cli
from tests.cli.fake_server import Wire

URL = "/reservation/v1/availability"


def offer(place: int = 1) -> dict[str, Any]:
    return {
        "id": f"gAAAA{place}",
        "start_date": f"2030-01-01T{12 + place}:00:00.000000",
        "end_date": f"2030-01-01T{18 + place}:00:00.000000",
        "expires_at": "2030-01-01T12:10:00.000000",
        "cost": 0.0,
        "reservations": [{"resource_type": "physical:host", "count": 4, "free": 7}],
    }


def answer(**more: Any) -> dict[str, Any]:
    points = [("01T12", 8), ("01T15", 2), ("02T12", 8)]
    free = [[{"time": f"2030-01-{hour}:00:00.000000", "free": count} for hour, count in points]]
    return {"offers": [offer(1), offer(2)], "free": free, "binding": None, "alternatives": [], **more}


def answered(cli: Cli, wire: Wire, *answers: tuple[int, Any]) -> None:
    """Sign in first, so that the answers are those to the command's own requests."""
    cli("limit", "list")
    clock = (200, {"version": {}})
    wire.answers = [(status, body, {}) for status, body in (clock, *answers)]


def test_the_question(cli: Cli, wire: Wire) -> None:
    answered(cli, wire, (200, answer()))
    options = ("--between", "Mon-Wed,Sat 08:00-18:00 Europe/Berlin", "--mode", "most", "--step", "1h")
    ran = cli("find", "--hosts", "4", "--for", "6h", "--within", "2d", "--from", "2030-01-05", *options)
    assert ran.code == 0, ran.err
    body = wire.sent("POST", URL).body
    assert (body["duration"], body["step"], body["mode"], body["offers"]) == (21600, 3600, "most", 5)
    assert (body["earliest"], body["latest"]) == ("2030-01-05T00:00:00Z", "2030-01-07T00:00:00Z")
    assert body["reservations"][0]["min"] == 4
    days = ["mon", "tue", "wed", "sat"]
    assert body["between"] == [{"days": days, "begin": "08:00", "end": "18:00", "zone": "Europe/Berlin"}]


@pytest.mark.parametrize("width", [80, 120, 200])
def test_the_table_fits_the_terminal(cli: Cli, wire: Wire, environ: dict[str, str], width: int) -> None:
    answered(cli, wire, (200, answer()))
    environ["COLUMNS"] = str(width)
    ran = cli("find", "--hosts", "4", "--for", "6h")
    assert max(tables.measure(line) for line in ran.out.splitlines()) <= width
    assert "6h" in ran.out
    assert "2..8" in ran.out


def test_json_has_the_whole_answer(cli: Cli, wire: Wire) -> None:
    answered(cli, wire, (200, answer()))
    data = cli("find", "--hosts", "4", "--for", "6h", "-f", "json").data
    assert [one["id"] for one in data["offers"]] == ["gAAAA1", "gAAAA2"]


def test_take_holds_and_makes_the_lease(cli: Cli, wire: Wire) -> None:
    answered(cli, wire, (200, answer()), (201, {"hold": {"id": "h", "expires_at": "x"}}), (201, {"lease": {"id": "h"}}))
    ran = cli("find", "--hosts", "4", "--for", "6h", "--take", "2", "--name", "mine", "-f", "json")
    assert (ran.code, ran.data) == (0, {"id": "h"})
    assert wire.sent("POST", "/reservation/v1/holds").body == {"offer": "gAAAA2", "name": "mine"}
    assert wire.sent("POST", "/reservation/v1/leases").body == {"name": "mine", "hold": "h"}


def test_hold_says_how_to_go_on(cli: Cli, wire: Wire) -> None:
    answered(cli, wire, (200, answer()), (201, {"hold": {"id": "h", "expires_at": "2030-01-01T12:10:00"}}))
    ran = cli("find", "--hosts", "4", "--for", "6h", "--hold", "1")
    assert (ran.code, "climate lease confirm h" in ran.err) == (0, True)


def test_nothing_fits(cli: Cli, wire: Wire) -> None:
    binding = {"name": "hosts", "message": "Too few hosts are free", "reservation": 0}
    others = [{"kind": "later", "message": "at a later time", "offer": offer(3)}]
    answered(cli, wire, (200, answer(offers=[], binding=binding, alternatives=others)))
    ran = cli("find", "--hosts", "4", "--for", "6h", "--take", "1")
    assert (ran.code, "hosts: Too few hosts are free" in ran.err, "at a later time" in ran.out) == (5, True, True)


@pytest.mark.parametrize("text", ["", "always", "Mon 08-18", "Foo 08:00-18:00", "Mon-Foo 08:00-18:00", "8:00-9:00"])
def test_bad_windows(cli: Cli, text: str) -> None:
    ran = cli("find", "--hosts", "1", "--for", "1h", "--between", text)
    assert (ran.code, "is not a window" in ran.err) == (2, True)


def test_windows_of_days() -> None:
    read = WindowType().convert
    assert read("Fri-Mon 20:00-06:00", None, None)["days"] == ["mon", "fri", "sat", "sun"]
    assert read("08:00-24:00", None, None) == {
        "days": ["mon", "tue", "wed", "thu", "fri", "sat", "sun"], "begin": "08:00", "end": "24:00", "zone": "UTC",
    }  # fmt: skip


def test_the_line_has_the_least_count_of_each_column() -> None:
    points = [
        {"time": "2030-01-01T00:00:00", "free": 4},
        {"time": "2030-01-01T12:00:00", "free": 0},
        {"time": "2030-01-02T00:00:00", "free": 4},
    ]
    counts = _sampled(points)
    assert (len(counts), counts[0], counts[WIDTH // 2], counts[-1]) == (WIDTH, 4, 0, 0)
    assert _bars([0, 1, 4], 4) == " ▂█"


def test_what_does_not_fit_stands_in_line(cli: Cli, wire: Wire) -> None:
    lease = {"id": "l", "name": "found", "status": "PENDING"}
    answered(cli, wire, (200, answer(offers=[])), (201, {"lease": lease}))
    ran = cli("find", "--hosts", "4", "--for", "6h", "--within", "2d", "--from", "2030-01-05", "--wait-list")
    assert ran.code == 0, ran.err
    body = wire.sent("POST", "/reservation/v1/leases").body
    assert (body["start_date"], body["end_date"]) == ("2030-01-05T00:00:00Z", "2030-01-05T06:00:00Z")
    assert body["wait"] == {"until": "2030-01-06T18:00:00Z"}
    assert body["reservations"][0]["min"] == 4


def test_the_waiting_list_excludes_holds_and_windows(cli: Cli) -> None:
    for option in (("--hold", "1"), ("--between", "08:00-18:00")):
        ran = cli("find", "--hosts", "4", "--for", "6h", "--wait-list", *option)
        assert (ran.code, "--wait-list excludes" in ran.err) == (2, True)
