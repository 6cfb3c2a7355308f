"""A tree of complete cells, hurt under load: afterwards the top shows what its cells have."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest
from sqlalchemy import text

from climate.store.engine import connect
from tests.system.caller import Api
from tests.system.cell_stacks import CHILDREN, TOP, C, cell_stacks, kill
from tests.system.stack import Stack, await_so

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

PATIENCE = 300.0
BROKER_STOPPED_SECONDS = 30.0

_SERVERS = text("""
    SELECT s.id::text, s.status, coalesce(s.task, '') AS task,
           (SELECT coalesce(string_agg(host(a.address), ',' ORDER BY a.address), '') FROM compute_addresses a
            WHERE a.server_id = s.id AND a.vif_id IS NOT NULL) AS addresses
    FROM compute_servers s
""")

_AT_TOP = text("""
    SELECT s.id::text, s.cell, s.status, coalesce(s.task, '') AS task,
           (SELECT coalesce(string_agg(a ->> 'address', ',' ORDER BY CAST(a ->> 'address' AS inet)), '')
            FROM jsonb_array_elements(s.addresses) a) AS addresses
    FROM compute_cell_servers s WHERE s.deleted_at IS NULL
""")

Seen = dict[str, tuple[str, ...]]


@dataclass
class Cells:
    """The stacks by the names of their cells."""

    stacks: dict[str, Stack]

    def at_top(self) -> Seen:
        """Id -> (cell, status, task, addresses) of all servers that a cell has, as the top has them."""
        rows = self._read(TOP, _AT_TOP)
        return {row.id: (row.cell, row.status, row.task, row.addresses) for row in rows if row.cell is not None}

    def in_cells(self) -> Seen:
        """The same, as the cells have them."""
        found: Seen = {}
        for name in CHILDREN:
            rows = self._read(name, _SERVERS)
            found |= {row.id: (f"top!{name}", row.status, row.task, row.addresses) for row in rows}
        return found

    def agree(self) -> bool:
        """Whether the top shows what the cells have, and nothing is under way."""
        seen = self.at_top()
        return seen == self.in_cells() and not any(task for _, _, task, _ in seen.values())

    def scheduling(self) -> int:
        """Servers that no cell has reported, and that have not failed."""
        return sum(row.status == "BUILD" for row in self._read(TOP, _AT_TOP) if row.cell is None)

    def _read(self, name: str, statement: Any) -> list[Any]:
        engine = connect(self.stacks[name].database_url, pool_size=1)
        try:
            with engine.connect() as conn:
                return list(conn.execute(statement))
        finally:
            engine.dispose()


@pytest.fixture(scope="module")
def cells(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cells]:
    """A top cell and two children, each with its own stores and processes."""
    homes = {name: tmp_path_factory.mktemp(name) for name in (TOP, *CHILDREN)}
    with cell_stacks(homes, PATIENCE, CLIMATE_CELLS_CALL_TIMEOUT="20") as stacks:
        yield Cells(stacks)


@dataclass
class Load:
    """Users of the top that boot, stop, start and delete servers without a pause."""

    home: Any
    stopping: threading.Event = field(default_factory=threading.Event)
    booted: list[str] = field(default_factory=list)
    bad: list[str] = field(default_factory=list)
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
            answer = api.ask("DELETE", f"{C}/servers/{server_id}")
            self._judge(answer, (204, 404))
            return
        self._ask(api, f"/{server_id}/action", {("os-stop", "os-start")[number % 2]: None}, (202, 404, 409))

    def _ask(self, api: Api, path: str, body: Any, wanted: tuple[int, ...]) -> None:
        answer = api.ask("POST", f"{C}/servers{path}", body)
        self._judge(answer, wanted)
        if path == "" and answer.status_code == 202:
            self.booted.append(answer.json()["server"]["id"])

    def _judge(self, answer: httpx.Response, wanted: tuple[int, ...]) -> None:
        if answer.status_code not in wanted:
            self.bad.append(f"{answer.request.method} {answer.request.url.path}: {answer.status_code} {answer.text}")


@contextmanager
def loaded(cells: Cells) -> Iterator[Load]:
    load = Load(cells.stacks[TOP].home)
    thread = threading.Thread(target=load.run)
    thread.start()
    try:
        yield load
    finally:
        load.stopping.set()
        thread.join()
    assert load.bad == []


def _await_work(cells: Cells) -> None:
    await_so(lambda: len(cells.at_top()) >= 4, PATIENCE, "servers of the load to be placed")


def _await_agreement(cells: Cells) -> None:
    await_so(lambda: cells.scheduling() == 0 and cells.agree(), PATIENCE, "the top to agree with its cells")


def test_the_broker_of_a_child_is_away_for_half_a_minute_under_load(cells: Cells) -> None:
    with loaded(cells):
        _await_work(cells)
        (broker,) = cells.stacks["left"].find("valkey")
        broker.send_signal(signal.SIGSTOP)
        try:
            threading.Event().wait(BROKER_STOPPED_SECONDS)
        finally:
            broker.send_signal(signal.SIGCONT)
    _await_agreement(cells)
    assert {cell for cell, *_ in cells.at_top().values()} <= {"top!left", "top!right"}


def test_a_child_stack_is_killed_under_load_and_started_again(cells: Cells) -> None:
    right = cells.stacks["right"]
    with loaded(cells):
        _await_work(cells)
        kill(right)
        threading.Event().wait(5)
        right.start()
    _await_agreement(cells)
    assert cells.in_cells()
