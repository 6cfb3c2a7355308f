"""Beginnings of ids, as lists show them, name leases, events, volumes, addresses, images and networks."""

from typing import Any

import pytest

from climate.cli.tables import shortened
from tests.cli.conftest import Cli
from tests.cli.fake_server import VOLUME, Wire
from tests.cli.test_tables import RECORDED, with_twins

V1 = "/reservation/v1"
NETWORK = "/network/v2.0"
ADDED: dict[str, Any] = {
    "/volume/v3/volumes/detail": {"volumes": [{"id": VOLUME, "name": "", "attachments": [], "metadata": {}}]},
    f"{V1}/floatingips": {"floatingips": [{"id": VOLUME, "floating_ip_address": "203.0.113.9"}]},
}


@pytest.fixture
def shown(wire: Wire) -> Wire:
    """A server on which each list has two objects with similar ids."""
    wire.recorded = {path: with_twins(answer) for path, answer in {**RECORDED["answers"], **ADDED}.items()}
    return wire


def ids(wire: Wire, path: str, key: str) -> tuple[str, str]:
    """Return the id of the first object of a list, whole and as a narrow table shows it."""
    whole = [str(one["id"]) for one in wire.recorded[path][key]]
    short = shortened(whole)[0]
    assert 8 < len(short) < 36
    return whole[0], short


def reservation(wire: Wire) -> tuple[str, str]:
    whole = [str(one["id"]) for lease in wire.recorded[f"{V1}/leases"]["leases"] for one in lease["reservations"]]
    return whole[0], shortened(whole)[0]


@pytest.mark.parametrize(
    ("command", "path", "key"),
    [
        ("volume show", "/volume/v3/volumes/detail", "volumes"),
        ("network show", "/compute/v2.1/os-networks", "networks"),
        ("floating show", f"{NETWORK}/floatingips", "floatingips"),
        ("floating reservable show", f"{V1}/floatingips", "floatingips"),
        ("lease show", f"{V1}/leases", "leases"),
    ],
)
def test_a_thing_is_shown_by_the_beginning_of_its_id(cli: Cli, shown: Wire, command: str, path: str, key: str) -> None:
    whole, short = ids(shown, path, key)
    ran = cli(*command.split(), short, "-f", "value", "-c", "id")
    assert (ran.code, ran.out.strip()) == (0, whole), ran.err
    several = cli(*command.split(), short[:8])
    assert (several.code, whole in several.err) == (5, True)


@pytest.mark.parametrize(
    ("command", "path", "key", "asked"),
    [
        ("event requeue", f"{V1}/events", "events", "POST /reservation/v1/events/{}/requeue"),
        ("maintenance show", f"{V1}/maintenances", "maintenances", "GET /reservation/v1/maintenances/{}"),
        ("maintenance history", f"{V1}/maintenances", "maintenances", "GET /reservation/v1/maintenances/{}/history"),
        ("maintenance end", f"{V1}/maintenances", "maintenances", "DELETE /reservation/v1/maintenances/{}"),
        ("network delete", "/compute/v2.1/os-networks", "networks", "DELETE /compute/v2.1/os-networks/{}"),
        ("floating delete", f"{NETWORK}/floatingips", "floatingips", "DELETE /network/v2.0/floatingips/{}"),
    ],
)
def test_a_request_has_the_whole_id(cli: Cli, shown: Wire, command: str, path: str, key: str, asked: str) -> None:
    whole, short = ids(shown, path, key)
    cli(*command.split(), short)
    assert f"{shown.asked[-1].method} {shown.asked[-1].path}" == asked.format(whole)


def test_a_reservation_is_named_by_the_beginning_of_its_id(cli: Cli, shown: Wire) -> None:
    whole, short = reservation(shown)
    cli("reservation", "reallocate", "1", "--reservation", short)
    assert shown.asked[-1].body["reservation_id"] == whole
    cli("host", "allocations", "--reservation", short)
    assert shown.asked[-1].query["reservation_id"] == whole


def test_a_boot_takes_beginnings_of_ids(cli: Cli, shown: Wire) -> None:
    held, held_short = reservation(shown)
    image, image_short = ids(shown, "/image/v2/images", "images")
    network, network_short = ids(shown, f"{NETWORK}/networks", "networks")
    flavors = RECORDED["answers"]["/compute/v2.1/flavors/detail"]
    shown.recorded["/compute/v2.1/flavors/detail"] = flavors
    flavor = flavors["flavors"][0]["name"]
    given = ("--flavor", flavor, "--image", image_short, "--network", network_short, "--reservation", held_short)
    cli("boot", "one", *given)
    body = next(one.body for one in shown.asked if one.path.endswith("/servers") and one.method == "POST")
    assert body["server"]["imageRef"] == image
    assert body["server"]["networks"] == [{"uuid": network}]
    assert body["OS-SCH-HNT:scheduler_hints"]["reservation"] == held


def test_a_beginning_that_nothing_has(cli: Cli, shown: Wire) -> None:
    ran = cli("reservation", "reallocate", "1", "--reservation", "ffff")
    assert (ran.code, "no reservation 'ffff'" in ran.err) == (3, True)


def test_other_texts_are_left_to_the_server(cli: Cli, shown: Wire) -> None:
    cli("maintenance", "show", "no id")
    assert shown.asked[-1].path == f"{V1}/maintenances/no id"
