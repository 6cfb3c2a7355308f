"""A tree of three complete stacks as cells: one with the API, two with nodes."""

import signal
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from climate.compute.nodes.services import IMAGE_ID
from tests.system.api_client import Api
from tests.system.stack import Stack, await_so

C = "/compute/v2.1"
PATIENCE = 240.0
SECRETS = {"left": "secret of top and left", "right": "secret of top and right"}


class Tree:
    """Three stacks, and an administrator of each."""

    def __init__(self, stacks: dict[str, Stack]) -> None:
        self.stacks = stacks
        self.admins = {name: Api(stack.home, "climate") for name, stack in stacks.items()}

    def join(self, one: str, other: str, side: str, secret: str) -> None:
        """Let a cell know another one."""
        cell = {"name": other, "type": side, "transport_url": self.stacks[other].redis_url, "secret": secret}
        answer = self.admins[one].ask("POST", f"{C}/os-cells", {"cell": cell})
        assert answer.status_code == 200, answer.text

    def neighbours(self, name: str) -> dict[str, Any]:
        return {cell["name"]: cell for cell in self.admins[name].read(f"{C}/os-cells/detail")["cells"]}

    def heard(self) -> bool:
        return all(cell["state"] == "up" for cell in self.neighbours("top").values())

    def boot(self, name: str, **hints: str) -> str:
        """Boot a server at the top; its id."""
        body = {"name": name, "imageRef": IMAGE_ID, "flavorRef": "1", "networks": "auto"}
        answer = self.admins["top"].ask(
            "POST",
            f"{C}/servers",
            {"server": body, "OS-SCH-HNT:scheduler_hints": hints},
            **{"OpenStack-API-Version": "compute 2.79"},
        )
        assert answer.status_code == 202, answer.text
        return str(answer.json()["server"]["id"])

    def active(self, name: str) -> list[str]:
        """Servers of a cell that are ACTIVE."""
        found = self.admins[name].read(f"{C}/servers/detail?all_tenants=1&limit=500")["servers"]
        return [server["id"] for server in found if server["status"] == "ACTIVE"]

    def in_cells(self) -> list[str]:
        return sorted(self.active("left") + self.active("right"))


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tree]:
    with ExitStack() as exits:
        stacks = {}
        for name in ("top", "left", "right"):
            more = {"CLIMATE_CELLS_ENABLE": "true", "CLIMATE_CELL_NAME": name, "CLIMATE_WEB_PROCESSES": "1"}
            more |= {"CLIMATE_CELL_TYPE": "api"} if name == "top" else {}
            stacks[name] = Stack(tmp_path_factory.mktemp(name), more)
            exits.callback(stacks[name].stop)
            stacks[name].start()
        found = Tree(stacks)
        for child, secret in SECRETS.items():
            found.join("top", child, "child", secret)
            found.join(child, "top", "parent", secret)
        yield found


@pytest.mark.campaign
@pytest.mark.timeout(1800)
def test_servers_are_booted_once_in_the_cells_while_a_broker_is_away(tree: Tree) -> None:
    await_so(tree.heard, PATIENCE, "the first report of both children")
    hosts = {one["host"].partition("@")[0] for one in tree.admins["top"].read(f"{C}/os-services")["services"]}
    assert hosts == {"top!left", "top!right"}

    aimed = tree.boot("aimed", target_cell="top!left")
    await_so(lambda: tree.active("left") == [aimed], PATIENCE, "the first server")
    (valkey,) = tree.stacks["left"].find("valkey")
    valkey.send_signal(signal.SIGSTOP)
    ids = [aimed, *(tree.boot(f"s{number}", target_cell=f"top!{cell}") for number, cell in enumerate(3 * [*SECRETS]))]
    try:
        await_so(lambda: tree.neighbours("top")["left"]["last_error"], PATIENCE, "noticing the broker")
        await_so(lambda: len(tree.active("right")) == 3, PATIENCE, "the servers of the other cell")
    finally:
        valkey.send_signal(signal.SIGCONT)
    await_so(lambda: len(tree.in_cells()) >= len(ids), PATIENCE, "the servers that waited")
    assert tree.in_cells() == sorted(ids)


@pytest.mark.campaign
@pytest.mark.timeout(1800)
def test_cells_process_that_is_killed_is_begun_again(tree: Tree) -> None:
    await_so(tree.heard, PATIENCE, "the first report of both children")
    before = set(tree.in_cells())
    for name in ("top", "right"):
        for process in tree.stacks[name].find("cells"):
            process.kill()
    made = [tree.boot(f"k{number}", target_cell="top!right") for number in range(3)]
    await_so(lambda: set(made) <= set(tree.active("right")), PATIENCE, "the servers")
    assert set(tree.in_cells()) - before == set(made)


@pytest.mark.campaign
@pytest.mark.timeout(600)
def test_tree_is_shown_on_the_command_line(tree: Tree) -> None:
    await_so(tree.heard, PATIENCE, "the first report of both children")
    shown = tree.stacks["top"].run("cell", "tree")
    assert shown.returncode == 0, shown.stderr
    assert [line.split()[0] for line in shown.stdout.splitlines()] == ["top", "├─", "└─"]
    assert "MB free" in shown.stdout
