"""Builds that other cells send, together with the leases of this cell."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from climate.compute.cells.builds.request import Build
from climate.compute.errors import BadRequest
from climate.compute.nodes.services import IMAGE
from tests.api.compute.api_clients import MEMBER, Person, World, done, hours_away, world
from workers import cell_boots


@pytest.fixture
def there(cloud_database: str, tmp_path: Path) -> Iterator[World]:
    with world(cloud_database, tmp_path) as found:
        yield found


@pytest.fixture
def run(there: World) -> Callable[[Build], Any]:
    runner = cell_boots.runner(there.climate)
    return lambda build: runner(there.here.compute, build)


def build(**wanted: Any) -> Build:
    ids = (str(uuid4()),)
    return Build("r-1", ids, 1, MEMBER.project_id, MEMBER.user_id, "s", "tiny", 512, IMAGE, **wanted)


def nap(**wanted: Any) -> Build:
    return build(reserved=True, lease_params={"name": "nap", "end": hours_away(2)}, **wanted)


def test_server_sleeps_in_the_chosen_cell_until_its_lease(there: World, run: Callable[[Build], Any]) -> None:
    asked = nap()
    assert run(asked) == asked.server_ids
    member = Person(there.app, "member")
    there.here.settle()
    assert member.status(asked.server_ids[0]) == "RESERVED"
    (lease,) = member.get("/reservation/v1/leases")["leases"]
    assert lease["reservations"][0]["resource_id"] == asked.server_ids[0]
    there.at_once("start_lease")
    assert member.status(asked.server_ids[0]) == "ACTIVE"


def test_build_that_comes_twice_makes_one_lease(there: World, run: Callable[[Build], Any]) -> None:
    asked = nap()
    for _ in range(3):
        assert run(asked) == asked.server_ids
    assert there.here.count("compute_servers") == 1
    assert len(Person(there.app, "member").get("/reservation/v1/leases")["leases"]) == 1


def test_refusal_of_the_lease_leaves_nothing(there: World, run: Callable[[Build], Any]) -> None:
    with pytest.raises(BadRequest, match="Missing parameter end"):
        run(build(reserved=True, lease_params={"name": "nap"}))
    assert there.here.count("compute_servers") == 0


def test_boot_on_a_reservation_of_this_cell(there: World, run: Callable[[Build], Any]) -> None:
    member = Person(there.app, "member")
    wanted = {
        "resource_type": "physical:host",
        "min": 1,
        "max": 1,
        "hypervisor_properties": "",
        "resource_properties": "",
    }
    body = {"name": "l", "start_date": "now", "end_date": hours_away(2), "reservations": [wanted], "events": []}
    lease = done(member("POST", "/reservation/v1/leases", body), 201)["lease"]
    hints = {"reservation": lease["reservations"][0]["id"]}
    with pytest.raises(BadRequest, match="starts at"):
        run(build(hints=hints))
    there.settle()
    asked = build(hints=hints)
    assert list(run(asked)) == list(asked.server_ids)
    there.settle()
    server = there.here.look(asked.server_ids[0])
    assert (server.status, str(server.node).startswith("gpu-")) == ("ACTIVE", True)


def test_reservation_of_another_project_is_refused(there: World, run: Callable[[Build], Any]) -> None:
    with pytest.raises(BadRequest):
        run(build(hints={"reservation": str(uuid4())}))
    assert there.here.count("compute_servers") == 0
