"""A tree of complete cells on three levels: led through by the page, and hurt under load."""

import re
import signal
import subprocess
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import httpx
import psutil
import pytest
from sqlalchemy import text

from climate.embedded.home import running
from climate.store.engine import connect
from tests.system.api_client import Api
from tests.system.stack import ROOT, await_so
from tests.system.zone_tree import ZoneTree, demo_tree, free_ports

pytestmark = [pytest.mark.slow, pytest.mark.timeout(2400)]

C = "/compute/v2.1"
NEW = {"OpenStack-API-Version": "compute 2.79"}
TOP, MIDDLE = "api-cell", "child-cell2"
PATHS = {
    "child-cell1": "api-cell!child-cell1",
    "child-cell2": "api-cell!child-cell2",
    "grandchild-cell1": "api-cell!child-cell2!grandchild-cell1",
}
GRANDCHILD = PATHS["grandchild-cell1"]
PATIENCE = 600.0
BROKER_STOPPED_SECONDS = 30.0

_SERVERS = text("""
    SELECT s.id::text, s.status, coalesce(s.task, '') AS task,
           (SELECT coalesce(string_agg(host(a.address), ',' ORDER BY a.address), '') FROM compute_addresses a
            WHERE a.server_id = s.id AND a.vif_id IS NOT NULL) AS addresses
    FROM compute_servers s
""")

_AT_TOP = text("""
    SELECT s.id::text, s.cell, s.status, coalesce(s.task, '') AS task, coalesce(s.fault ->> 'message', '') AS fault,
           (SELECT coalesce(string_agg(a ->> 'address', ',' ORDER BY CAST(a ->> 'address' AS inet)), '')
            FROM jsonb_array_elements(s.addresses) a) AS addresses
    FROM compute_cell_servers s WHERE s.deleted_at IS NULL
""")

_NOTES = text("SELECT count(*) AS kept FROM compute_cell_servers")

Seen = dict[str, tuple[str, ...]]


@dataclass
class Cells:
    """The tree, and what the databases of its cells have."""

    tree: ZoneTree

    @property
    def admin(self) -> Api:
        return self.tree.api(TOP)

    def at_top(self) -> Seen:
        """Id -> (cell, status, task, addresses) of all servers that a cell has, as the top has them."""
        rows = self.read(TOP, _AT_TOP)
        return {row.id: (row.cell, row.status, row.task, row.addresses) for row in rows if row.cell is not None}

    def in_cells(self) -> Seen:
        """The same, as the cells have them; no server is in two cells."""
        rows = [(path, row) for name, path in PATHS.items() for row in self.read(name, _SERVERS)]
        doubled = [server_id for server_id, count in Counter(row.id for _, row in rows).items() if count > 1]
        assert doubled == []
        return {row.id: (path, row.status, row.task, row.addresses) for path, row in rows}

    def agree(self) -> bool:
        """Return whether the top shows the servers of the cells, and no message is under way."""
        seen = self.at_top()
        return seen == self.in_cells() and not any(task for _, _, task, _ in seen.values())

    def unplaced(self) -> dict[str, tuple[str, str]]:
        """Id -> (status, fault) of servers at the top that no cell has reported."""
        return {row.id: (row.status, row.fault) for row in self.read(TOP, _AT_TOP) if row.cell is None}

    def read(self, name: str, statement: Any) -> list[Any]:
        stores = running(self.tree.home_of(name))
        assert stores is not None, name
        engine = connect(stores.database_url, pool_size=1)
        try:
            with engine.connect() as conn:
                return list(conn.execute(statement))
        finally:
            engine.dispose()

    def await_agreement(self) -> None:
        await_so(self._has_settled, PATIENCE, "the top to agree with its cells")

    def _has_settled(self) -> bool:
        return not [one for one in self.unplaced().values() if one[0] == "BUILD"] and self.agree()


@pytest.fixture(scope="module")
def cells(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cells]:
    with demo_tree(tmp_path_factory.mktemp("cells"), "cells", free_ports(1)) as tree:
        yield Cells(tree)


def status(cells: Cells, server_id: str) -> str:
    answer = cells.admin.ask("GET", f"{C}/servers/{server_id}", **NEW)
    return str(answer.json()["server"]["status"]) if answer.status_code == 200 else str(answer.status_code)


def boot(cells: Cells, name: str, path: str) -> str:
    image = cells.admin.read("/image/v2/images")["images"][0]["id"]
    body = {"server": {"name": name, "flavorRef": "1", "imageRef": image, "networks": "auto"}}
    hints = {"OS-SCH-HNT:scheduler_hints": {"target_cell": path}}
    answer = cells.admin.ask("POST", f"{C}/servers", {**body, **hints}, **NEW)
    assert answer.status_code == 202, answer.text
    server_id = str(answer.json()["server"]["id"])
    await_so(lambda: status(cells, server_id) == "ACTIVE", PATIENCE, f"the boot of {name}")
    return server_id


def test_page_leads_through_the_tree(cells: Cells) -> None:
    page = (ROOT / "docs" / "cells.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```sh\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 5
    script = "set -eu\n" + "\n".join(blocks)
    ran = subprocess.run(
        ["bash", "-c", script],
        env=cells.tree.environ,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=1200,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    for said in (*PATHS, GRANDCHILD, "SHUTOFF", "child-cell2 stays"):
        assert said in ran.stdout, ran.stdout
    assert "cannot be deleted" in ran.stderr
    cells.await_agreement()
    assert cells.at_top() == {}


def test_c2_child_cells_run_everything_but_the_api(cells: Cells) -> None:
    found = {name: _roles(cells.tree.runner(name)) for name in (TOP, *PATHS)}
    below = {"poller", "worker", "cells"}
    assert found.pop(TOP) == {"web", *below}
    assert list(found.values()) == [below, below, below]
    assert cells.read(TOP, text("SELECT host FROM compute_services")) == []
    assert {len(cells.read(name, text("SELECT host FROM compute_services"))) for name in PATHS} == {1}


def _roles(runner: psutil.Process) -> set[str]:
    words = [one.cmdline() for one in runner.children()]
    return {"web" if "gunicorn" in line else line[-1] for line in words} & {"web", "poller", "worker", "cells"}


def test_server_two_levels_below_is_used_from_the_top_and_known_in_no_other_cell(cells: Cells) -> None:
    server_id = boot(cells, "deep", GRANDCHILD)
    assert cells.at_top()[server_id] == cells.in_cells()[server_id]
    assert cells.at_top()[server_id][0] == GRANDCHILD
    for action, then in (("os-stop", "SHUTOFF"), ("os-start", "ACTIVE"), ("pause", "PAUSED"), ("unpause", "ACTIVE")):
        assert cells.admin.ask("POST", f"{C}/servers/{server_id}/action", {action: None}).status_code == 202
        await_so(lambda then=then: status(cells, server_id) == then, PATIENCE, action)  # type: ignore[misc]
        cells.await_agreement()
    for name in PATHS:
        assert cells.read(name, _NOTES)[0].kept == 0, "only the top keeps servers of other cells"
    assert cells.admin.ask("DELETE", f"{C}/servers/{server_id}").status_code == 204
    await_so(lambda: status(cells, server_id) == "404", PATIENCE, "the deletion")
    assert server_id not in cells.in_cells()


@pytest.mark.campaign
def test_tree_that_is_killed_leaves_nothing_and_begins_again_with_its_servers(cells: Cells) -> None:
    server_id = boot(cells, "kept", PATHS["child-cell1"])
    cells.await_agreement()
    cells.tree.kill_all()
    cells.tree.begin_all()
    cells.await_agreement()
    assert server_id in cells.at_top()
    other = boot(cells, "after", GRANDCHILD)
    for one in (server_id, other):
        assert cells.admin.ask("DELETE", f"{C}/servers/{one}").status_code == 204
        await_so(lambda one=one: status(cells, one) == "404", PATIENCE, "the deletion")  # type: ignore[misc]


@dataclass
class Load:
    """Users of the top that boot, stop, start and delete servers without a pause."""

    home: Any
    tolerated: tuple[int, ...] = ()
    """Statuses with which a top that is killed may answer."""
    stopping: threading.Event = field(default_factory=threading.Event)
    booted: list[str] = field(default_factory=list)
    bad: list[str] = field(default_factory=list)
    accepted: set[str] = field(default_factory=set)
    deleted: set[str] = field(default_factory=set)
    image: str = ""

    def run(self) -> None:
        api = Api(self.home, "climate-demo")
        self.image = api.read("/image/v2/images")["images"][0]["id"]
        number = 0
        while not self.stopping.wait(0.3):
            number += 1
            with suppress(httpx.HTTPError):
                self._step(api, number)
        api.close()

    def _step(self, api: Api, number: int) -> None:
        if len(self.booted) < 8:
            body = {"server": {"name": f"s{number}", "flavorRef": "42", "imageRef": self.image}}
            self._ask(api, "", body, (202, 403))
            return
        server_id = self.booted[number % len(self.booted)]
        if number % 11 == 0:
            self.booted.remove(server_id)
            self.deleted.add(server_id)  # also if nothing is heard of it
            answer = api.ask("DELETE", f"{C}/servers/{server_id}")
            self._judge(answer, (204, 404))
            return
        self._ask(api, f"/{server_id}/action", {("os-stop", "os-start")[number % 2]: None}, (202, 404, 409))

    def _ask(self, api: Api, path: str, body: Any, wanted: tuple[int, ...]) -> None:
        answer = api.ask("POST", f"{C}/servers{path}", body)
        self._judge(answer, wanted)
        if path == "" and answer.status_code == 202:
            self.booted.append(answer.json()["server"]["id"])
            self.accepted.add(self.booted[-1])

    def _judge(self, answer: httpx.Response, wanted: tuple[int, ...]) -> None:
        if answer.status_code not in (*wanted, *self.tolerated):
            self.bad.append(f"{answer.request.method} {answer.request.url.path}: {answer.status_code} {answer.text}")


@contextmanager
def loaded(cells: Cells, *tolerated: int) -> Iterator[Load]:
    """Load while the block lasts; afterwards no accepted server is lost, and the top agrees with the cells."""
    load = Load(cells.tree.home_of(TOP), tolerated)
    thread = threading.Thread(target=load.run)
    thread.start()
    try:
        await_so(lambda: len(cells.at_top()) >= 4, PATIENCE, "servers of the load to be placed")
        yield load
    finally:
        load.stopping.set()
        thread.join()
    assert load.bad == []
    cells.await_agreement()
    _check_nothing_is_lost(cells, load)


def _check_nothing_is_lost(cells: Cells, load: Load) -> None:
    """Each server that was accepted and not deleted is in a cell, or has failed and says why."""
    there, unplaced = cells.in_cells(), cells.unplaced()
    wanted = load.accepted - load.deleted
    assert len(wanted) >= 4
    lost = {one for one in wanted if one not in there and unplaced.get(one, ("", ""))[1] == ""}
    assert lost == set()
    assert {cell for cell, *_ in cells.at_top().values()} <= set(PATHS.values())


def _clear(cells: Cells) -> None:
    for server_id in [*cells.at_top(), *cells.unplaced()]:
        assert cells.admin.ask("DELETE", f"{C}/servers/{server_id}").status_code in (204, 404)
    await_so(lambda: not cells.at_top() and not cells.in_cells(), PATIENCE, "the deletions")


def _broker(cells: Cells, name: str) -> psutil.Process:
    (found,) = [one for one in cells.tree.runner(name).children() if "-server" in one.cmdline()[0]]
    return found


@pytest.mark.campaign
@pytest.mark.parametrize("name", ["child-cell2", "grandchild-cell1"])
def test_the_broker_of_a_cell_is_away_for_half_a_minute_under_load(cells: Cells, name: str) -> None:
    with loaded(cells) as load:
        broker, before = _broker(cells, name), len(load.accepted)
        aimed = _aimed(cells, PATHS[name])
        broker.send_signal(signal.SIGSTOP)
        try:
            threading.Event().wait(BROKER_STOPPED_SECONDS)
            waiting = _aimed(cells, PATHS[name])
        finally:
            broker.send_signal(signal.SIGCONT)
        load.accepted |= {aimed, waiting}
    assert len(load.accepted) >= before + 2
    assert {cells.in_cells()[one][0] for one in (aimed, waiting)} == {PATHS[name]}
    _clear(cells)


def _aimed(cells: Cells, path: str) -> str:
    """Ask for a server in a cell, and do not wait for it."""
    image = cells.admin.read("/image/v2/images")["images"][0]["id"]
    body = {"name": "aimed", "flavorRef": "42", "imageRef": image, "networks": "auto"}
    hints = {"target_cell": path}
    answer = cells.admin.ask("POST", f"{C}/servers", {"server": body, "OS-SCH-HNT:scheduler_hints": hints}, **NEW)
    assert answer.status_code == 202, answer.text
    return str(answer.json()["server"]["id"])


def test_a_middle_cell_is_killed_under_load_and_begins_again(cells: Cells) -> None:
    with loaded(cells) as load:
        environ = cells.tree.kill(MIDDLE)
        load.accepted.add(through := _aimed(cells, GRANDCHILD))
        threading.Event().wait(5)
        cells.tree.begin(environ)
        await_so(lambda: running(cells.tree.home_of(MIDDLE)), PATIENCE, "the stores of the cell")
    assert cells.in_cells()[through][0] == GRANDCHILD
    _clear(cells)


@pytest.mark.campaign
def test_the_top_is_killed_under_load_and_agrees_with_its_cells_again(cells: Cells) -> None:
    with loaded(cells, 503, 504) as load:
        environ = cells.tree.kill(TOP)
        threading.Event().wait(5)
        cells.tree.begin(environ)
        await_so(lambda: _answers(cells), PATIENCE, "the top")
        load.accepted.add(after := _aimed(cells, GRANDCHILD))
    assert cells.in_cells()[after][0] == GRANDCHILD
    _clear(cells)


def _answers(cells: Cells) -> bool:
    with suppress(httpx.HTTPError):
        return cells.admin.ask("GET", f"{C}/servers").status_code == 200
    return False
