"""A lease over a tree of complete cells: started, booted on, ended; and a cell that is killed in the middle of it."""

import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from climate.compute.nodes.services import IMAGE_ID
from tests.system.api_client import Api, moment
from tests.system.cell_stacks import CHILDREN, TOP, C, cell_stacks, kill
from tests.system.stack import Stack, await_so

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

R = "/reservation/v1"
PATIENCE = 300.0
HOSTS = 6
"""More than one child has."""
HELD_SECONDS = 90

NEW = {"OpenStack-API-Version": "compute 2.79"}


class Cells:
    """The stacks by the names of their cells, an administrator of each, and a member of the top."""

    def __init__(self, stacks: dict[str, Stack]) -> None:
        self.stacks = stacks
        self.admins = {name: Api(stack.home, "climate") for name, stack in stacks.items()}
        self.member = Api(stacks[TOP].home, "climate-demo")

    def make(self, **more: Any) -> dict[str, Any]:
        """A lease over both children that has started, or is held."""
        wanted = {
            "resource_type": "physical:host",
            "min": HOSTS,
            "max": HOSTS,
            "hypervisor_properties": "",
            "resource_properties": "",
            "across": True,
        }
        body = {"name": "wide", "start_date": "now", "end_date": moment(time.time() + 7200), "reservations": [wanted]}
        answers: list[httpx.Response] = []

        def created() -> bool:
            answers.append(self.member.ask("POST", f"{R}/leases", {**body, **more}))
            assert answers[-1].status_code in (201, 409), answers[-1].text
            return answers[-1].status_code == 201

        await_so(created, PATIENCE, "a lease over both cells")  # a busy cell may make no offer at first
        return dict(answers[-1].json()["lease"])

    def status(self, lease: dict[str, Any]) -> str:
        """The status of a lease at the top; empty when it is gone."""
        answer = self.member.ask("GET", f"{R}/leases/{lease['id']}")
        return "" if answer.status_code == 404 else str(answer.json()["lease"]["status"])

    def leases(self, name: str) -> list[dict[str, Any]]:
        return list(self.admins[name].read(f"{R}/leases")["leases"])

    def server(self, server_id: str) -> dict[str, Any]:
        answer = self.admins[TOP].ask("GET", f"{C}/servers/{server_id}", **NEW)
        return {} if answer.status_code == 404 else dict(answer.json()["server"])

    def boot(self, reservation: str) -> str:
        body = {"name": "s", "imageRef": IMAGE_ID, "flavorRef": "1", "networks": "auto"}
        hinted = {"server": body, "OS-SCH-HNT:scheduler_hints": {"reservation": reservation}}
        answer = self.member.ask("POST", f"{C}/servers", hinted, **NEW)
        assert answer.status_code == 202, answer.text
        return str(answer.json()["server"]["id"])

    def nothing_left(self) -> bool:
        """Whether no cell has a lease any more."""
        return not any(self.leases(name) for name in self.stacks)


@pytest.fixture(scope="module")
def cells(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cells]:
    homes = {name: tmp_path_factory.mktemp(name) for name in (TOP, *CHILDREN)}
    with cell_stacks(homes, PATIENCE, CLIMATE_CELLS_CALL_TIMEOUT="15") as stacks:
        yield Cells(stacks)


def test_a_lease_over_two_cells_is_started_booted_on_and_ended(cells: Cells) -> None:
    lease = cells.make()
    (one,) = lease["reservations"]
    parts = {part["cell"]: part for part in one["parts"]}
    assert set(parts) == {"top!left", "top!right"}
    assert sum(part["hosts"] for part in parts.values()) == HOSTS
    await_so(lambda: cells.status(lease) == "ACTIVE", PATIENCE, "the lease to start")
    for name in CHILDREN:
        await_so(lambda name=name: cells.leases(name)[0]["status"] == "ACTIVE", PATIENCE, f"the part in {name}")
    server_id = cells.boot(one["id"])
    await_so(lambda: cells.server(server_id).get("status") == "ACTIVE", PATIENCE, "the server")
    assert cells.server(server_id)["OS-EXT-SRV-ATTR:host"] in parts
    assert cells.member.ask("DELETE", f"{R}/leases/{lease['id']}").status_code == 204
    await_so(lambda: cells.status(lease) == "", PATIENCE, "the end of the lease")
    assert cells.nothing_left()
    await_so(lambda: not cells.server(server_id), PATIENCE, "the end of the server")


@pytest.mark.campaign
def test_a_cell_that_is_killed_between_hold_and_confirmation_keeps_nothing(cells: Cells) -> None:
    lease = cells.make(hold_seconds=HELD_SECONDS)
    assert {part["state"] for part in lease["reservations"][0]["parts"]} == {"held"}
    kill(cells.stacks["right"])
    answer = cells.member.ask("POST", f"{R}/leases/{lease['id']}/confirm")
    assert answer.status_code in (409, 503), answer.text
    await_so(lambda: not cells.leases("left"), PATIENCE, "the part of the other cell to be given back")
    assert cells.status(lease) in ("DELETING", "")
    cells.stacks["right"].start()
    await_so(cells.nothing_left, PATIENCE, "everything to be given back")
    again = cells.make()
    await_so(lambda: cells.status(again) == "ACTIVE", PATIENCE, "a lease of the same hosts")
