"""A lease for its owner: hosts, servers with addresses, time left, what comes next."""

from datetime import UTC, datetime
from typing import Any

import pytest

from climate.cli.leases.lease_view import following, list_row, time_left, waiting
from tests.cli.conftest import Cli
from tests.cli.fake_server import Wire

NOW = datetime(2030, 1, 1, 12, 0, tzinfo=UTC)
SERVER = "5d0b5b0e-7d1c-4b4c-9d0e-0d5b7f6f2f11"
HOST = {
    "name": "gpu-1",
    "reservation_id": "r",
    "properties": {"vcpus": 8, "memory_mb": 32768, "gpu": "a100"},
    "servers": [{"id": SERVER, "name": "web", "status": "ACTIVE"}],
}


def event(kind: str, time: str, status: str = "UNDONE") -> dict[str, Any]:
    return {"event_type": kind, "time": time, "status": status}


EVENTS = [
    event("start_lease", "2030-01-01T11:00:00.000000", "DONE"),
    event("end_lease", "2030-01-01T14:00:00.000000"),
    event("before_end_lease", "2030-01-01T13:00:00.000000"),
]


@pytest.mark.parametrize("width", [80, 120, 200])
def test_hosts_servers_time_left_and_the_next_event_are_shown(
    cli: Cli, wire: Wire, environ: dict[str, str], width: int
) -> None:
    environ["COLUMNS"] = str(width)
    wire.add_lease("one", status="ACTIVE", events=EVENTS, end_date="2030-01-01T14:00:00.000000")
    wire.lease_hosts = [HOST]
    wire.servers[SERVER] = {
        "id": SERVER, "name": "web", "status": "ACTIVE", "build": "r", "addresses": {"net": [{"addr": "10.0.0.5"}]}
    }  # fmt: skip
    ran = cli("lease", "show", "one")
    assert ran.code == 0, ran.err
    text = " ".join(ran.out.split())
    for said in ("gpu-1 8 vCPUs, 32768 MB memory, gpu=a100", "web ACTIVE 10.0.0.5 on gpu-1", "left 2 h", "in 1 h"):
        assert said in text
    assert max(map(len, ran.out.splitlines())) <= width


def test_machine_forms_have_the_lease_alone(cli: Cli, wire: Wire) -> None:
    wire.add_lease("one")
    wire.lease_hosts = [HOST]
    assert "hosts" not in cli("lease", "show", "one", "-f", "json").data
    assert cli("lease", "show", "one", "-c", "name").out.split() == ["name", "one"]
    assert cli("lease", "hosts", "one", "-f", "json").data == [HOST]
    assert cli("lease", "hosts", "one", "-f", "value", "-c", "servers").out == "web (ACTIVE)\n"


def test_an_owner_who_may_not_see_hosts_sees_the_lease(cli: Cli, wire: Wire) -> None:
    wire.add_lease("one")
    assert "gpu-1" not in cli("lease", "show", "one").out


@pytest.mark.parametrize(
    ("status", "end", "text"),
    [
        ("ACTIVE", "2030-01-01T13:30:00", "1 h 30 min"),
        ("ACTIVE", "2030-01-01T11:59:00", "nothing: it ends now"),
        ("PENDING", "2030-01-01T13:30:00", None),
    ],
)
def test_the_time_left(status: str, end: str, text: str | None) -> None:
    assert time_left({"status": status, "end_date": end}, NOW) == text


def test_what_comes_next() -> None:
    assert following({"status": "ACTIVE", "events": EVENTS}, NOW) == "in 1 h its owner is reminded of the end"
    assert following({"status": "TERMINATED", "events": EVENTS[:1]}, NOW) is None
    assert "confirm" in str(following({"status": "HELD", "events": EVENTS}, NOW))
    assert following({"events": [event("start_lease", "2030-01-01T11:00:00")]}, NOW) == "now it starts"
    both = [event(kind, "2030-01-01T11:00:00") for kind in ("before_end_lease", "start_lease")]
    assert following({"events": both}, NOW) == "now it starts"


WAITING = {"until": "2030-01-02T12:00:00.000000", "place": 3, "estimate": "2030-01-01T18:00:00.000000"}


def test_a_lease_of_the_waiting_list_shows_its_place_and_estimate(cli: Cli, wire: Wire) -> None:
    wire.add_lease("one", status="PENDING", waiting=WAITING, events=[event("expire_wait", "2030-01-02T12:00:00")])
    text = " ".join(cli("lease", "show", "one").out.split())
    assert "place 3, until 2030-01-02 12:00:00 UTC; it would fit from 2030-01-01 18:00:00 UTC" in text
    assert "it gets its resources when some are free" in text
    assert "place 3" in cli("lease", "list").out
    assert cli("lease", "list", "-f", "json").data[0]["waiting"]["place"] == 3


def test_a_lease_that_would_fit_too_late_says_so() -> None:
    late = WAITING | {"estimate": None, "reason": "r", "fits_from": "2030-01-02T18:00:00.000000"}
    said = "place 3, until 2030-01-02 12:00:00 UTC; it would fit from 2030-01-02 18:00:00 UTC, too late"
    assert waiting({"waiting": late}) == said
    assert waiting({"waiting": WAITING | {"estimate": None}}) == "place 3, until 2030-01-02 12:00:00 UTC"


def test_the_place_is_left_out_where_it_is_not_known() -> None:
    assert waiting({"waiting": {"until": "2030-01-02T12:00:00.000000"}}) == "until 2030-01-02 12:00:00 UTC"
    assert (waiting({}), list_row({"id": "1"})) == (None, {"id": "1", "waiting": None})
