"""climate zone boot, builds and build: requests over zones and what became of them."""

from typing import Any

from tests.cli.conftest import Cli
from tests.cli.fake_server import Wire

BUILD: dict[str, Any] = {
    "reservation_id": "r-1",
    "state": "done",
    "requested": 3,
    "created_at": "2030-01-01T12:00:00Z",
    "finished_at": "2030-01-01T12:00:01Z",
    "fault": None,
    "placed": 3,
    "unknown": 0,
    "servers": [
        {"id": f"s{place}", "launch_index": place, "zone": zone} for place, zone in enumerate([None, "w", "w"])
    ],
}


def answer(wire: Wire, *bodies: Any) -> None:
    """Answers of the server, except those about names and tokens."""
    wire.zone_builds = list(bodies)


def test_a_build_is_asked_for_and_shown(cli: Cli, wire: Wire) -> None:
    answer(wire, {"reservation_id": "r-1"}, {"build": BUILD})
    given = ("--count", "3", "--metadata", "a=b", "--hint", "query=x", "--reservation-id", "r-1")
    shown = cli("zone", "boot", "web", "--flavor", "small", "--image", "cirros", *given).out
    assert "this zone: 1, w: 2" in shown
    body = wire.sent("POST", "/compute/v2.1/zones/boot").body
    wanted = {"name": "web", "num_instances": 3, "metadata": {"a": "b"}, "reservation_id": "r-1", "networks": "auto"}
    assert {key: body["server"][key] for key in wanted} == wanted
    assert body["OS-SCH-HNT:scheduler_hints"] == {"query": "x"}


def test_a_build_can_be_waited_for(cli: Cli, wire: Wire) -> None:
    answer(wire, {"reservation_id": "r-1"}, {"build": {**BUILD, "state": "queued"}}, {"build": BUILD})
    shown = cli("zone", "boot", "web", "--flavor", "small", "--image", "cirros", "--wait", "-f", "json").data
    assert shown == BUILD


def test_builds_are_listed_and_shown(cli: Cli, wire: Wire) -> None:
    answer(wire, {"builds": [BUILD]}, {"build": BUILD})
    assert cli("zone", "builds", "-f", "csv").out.splitlines()[1].startswith("r-1,done,3,")
    assert cli("zone", "build", "r-1", "-f", "json").data == BUILD
