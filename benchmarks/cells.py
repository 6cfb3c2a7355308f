"""Cells: updates that reach the top cell and their age, a boot through two cells beside one at home.

Three cells, one below the other, each with a database, a Valkey and a cells process of its own.
"""

import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise

from sqlalchemy import text

from benchmarks import processes, scratch
from benchmarks.figures import head, line, spread, step
from climate.compute import Compute, asking, boot, lifecycle, services
from climate.compute.cells import build_start, neighbours, server_sync, state
from climate.compute.cells.cell import Broker, Cell
from climate.compute.flavor import Flavor
from climate.compute.host import NodeSpec
from climate.compute.request import BootRequest
from climate.compute.store import cell_changes, cell_servers
from climate.compute.virt.memory import MemoryDriver
from climate.settings import Settings

NAMES = ("top", "right", "leaf")
RATE = 500
"""Changes of servers in a second."""

TICK = 0.02
PATIENCE = 120.0
SMALL = Flavor("42", "m1.nano", 1, 128, 1)
PROJECT = "bench-project"

_SERVERS = text("""
    INSERT INTO compute_servers (id, name, project_id, user_id, status, flavor, vcpus, ram_mb, disk_mb, build_id,
                                 launch_index, node_id)
    SELECT gen_random_uuid(), 'bench-' || n, :project, 'bench', 'SHUTOFF', CAST(:flavor AS jsonb), 1, 128, 1024,
           'r-bench', n, (SELECT min(id) FROM compute_nodes)
    FROM generate_series(1, :count) AS n
""")

_CHANGE = text("""
    UPDATE compute_servers SET status = :status, updated_at = clock_timestamp()
    WHERE launch_index > :first AND launch_index <= :last AND build_id = 'r-bench'
""")

_KNOWN = text("SELECT count(*) FROM compute_cell_servers WHERE build_id = 'r-bench' AND status = :status")

_AGES = text("""
    SELECT extract(epoch FROM reported_at - changed_at) FROM compute_cell_servers WHERE build_id = 'r-bench'
""")


@dataclass(frozen=True, slots=True)
class Cells:
    """The cells of the benchmark by name."""

    computes: dict[str, Compute]

    @property
    def top(self) -> Compute:
        return self.computes["top"]

    @property
    def leaf(self) -> Compute:
        return self.computes["leaf"]

    def change(self, status: str, first: int, last: int) -> None:
        with self.leaf.engine.begin() as conn:
            conn.execute(_CHANGE, {"status": status, "first": first, "last": last})

    def await_known(self, status: str, count: int) -> None:
        """Wait until the top shows so many servers with a status."""
        deadline = time.monotonic() + PATIENCE
        known = 0
        while known < count:
            if time.monotonic() > deadline:
                raise TimeoutError(f"the top knows {known} of {count} servers after {PATIENCE:g} s")
            time.sleep(0.01)
            with self.top.engine.connect() as conn:
                known = conn.execute(_KNOWN, {"status": status}).scalar_one()


def main(short: bool) -> None:
    seconds = 4 if short else 30
    count = RATE * seconds
    head(f"{count} servers two levels below the top cell")
    with cells() as found:
        with step("making the servers"), found.leaf.engine.begin() as conn:
            flavor = (
                '{"id": "42", "name": "m1.nano", "vcpus": 1, "ram_mb": 128, "disk_gb": 1, "ephemeral_gb": 0, '
                '"swap_mb": 0, "is_public": true, "projects": [], "extra_specs": {}, "description": null}'
            )
            conn.execute(_SERVERS, {"project": PROJECT, "flavor": flavor, "count": count})
        begun = time.perf_counter()
        found.await_known("SHUTOFF", count)
        line("all at once: updates that reach the top", f"{count / (time.perf_counter() - begun):,.0f} a second")
        _at_rate(found, count)
        _stages(found)
        _boots(found, 5 if short else 30)


def _at_rate(found: Cells, count: int) -> None:
    """Change each server once, so many in a second."""
    each, begun = int(RATE * TICK), time.perf_counter()
    for number, first in enumerate(range(0, count, each)):
        time.sleep(max(0.0, begun + number * TICK - time.perf_counter()))
        found.change("ACTIVE", first, first + each)
    lasted = time.perf_counter() - begun
    found.await_known("ACTIVE", count)
    with found.top.engine.connect() as conn:
        ages = [float(age) for age in conn.execute(_AGES).scalars()]
    line(f"age of an update at the top, {count / lasted:,.0f} changes a second", spread(ages))


def _stages(found: Cells) -> None:
    """The database's share of it: one report made and stored, without messages."""
    told: list[object] = []
    with found.leaf.engine.connect() as conn:
        ids = conn.execute(text("SELECT id::text FROM compute_servers WHERE build_id = 'r-bench' LIMIT 1000"))
        chosen = list(ids.scalars())
        now = found.leaf.now(conn)
    begun = time.perf_counter()
    with found.leaf.engine.begin() as conn:
        changed = dict.fromkeys(chosen, now)
        server_sync.report(found.leaf, conn, lambda _, method, kwargs: told.extend(kwargs["instances"]), changed)
    made = time.perf_counter() - begun
    begun = time.perf_counter()
    for first in range(0, len(told), server_sync.REPORTS):
        part = told[first : first + server_sync.REPORTS]
        server_sync.update_at_top(found.top, "top!right!leaf", part, lambda *_: None)
    stored = time.perf_counter() - begun
    line("of it, reading a server and giving its report a version", f"{1000 * made / len(chosen):.2f} ms")
    line("of it, checking and storing a report at the top", f"{1000 * stored / len(chosen):.2f} ms")


def _boots(found: Cells, times: int) -> None:
    """From the request to a server that runs, as whoever asked sees it."""
    with _serving(found.leaf):
        home = spread([_boot_at_home(found.leaf) for _ in range(times)])
        through = spread([_boot_through(found) for _ in range(times)])
    line("boot at home, from the request to ACTIVE", home)
    line("boot from the top, two cells below", through)
    added = (through.median - home.median) / 2
    line("added by each level, there and back", f"{added:.1f} ms", "less than 20 ms")
    dominates = "waking the cells processes and their database commits" if added > home.median else "the boot itself"
    line("what dominates", dominates)


def _boot_at_home(leaf: Compute) -> float:
    begun = time.perf_counter()
    server = boot.boot(leaf, _request())[0]
    _await_active(server.id, lambda: asking.get(leaf, server.id).status)
    return time.perf_counter() - begun


def _boot_through(found: Cells) -> float:
    begun = time.perf_counter()
    server_id = build_start.start(found.top, _request()).server_ids[0]

    def status() -> str:
        with found.top.engine.connect() as conn:
            server = cell_servers.get(conn, server_id)
        return server.status if server is not None else ""

    _await_active(server_id, status)
    return time.perf_counter() - begun


def _await_active(server_id: str, status: Callable[[], str]) -> None:
    deadline = time.monotonic() + PATIENCE
    while (seen := status()) != "ACTIVE":
        if seen == "ERROR" or time.monotonic() > deadline:
            raise RuntimeError(f"server {server_id} is {seen}")
        time.sleep(0.002)


def _request() -> BootRequest:
    return BootRequest(PROJECT, "bench", "b", SMALL, None, networks=())


@contextmanager
def _serving(leaf: Compute) -> Iterator[None]:
    """Carry out what is asked of the servers of the leaf."""
    stop = threading.Event()

    def serve() -> None:
        while not stop.wait(0.002):
            for _, server_id in lifecycle.unfinished(leaf, wait=0, again=0.5):
                lifecycle.carry_out(leaf, server_id)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


@contextmanager
def cells() -> Iterator[Cells]:
    """Three cells at work, of which the last has a node."""
    with ExitStack() as stack:
        with step("starting three cells"):
            places = {name: _place(stack, name) for name in NAMES}
            computes = {name: _furnished(settings) for name, settings in places.items()}
            for parent, child in pairwise(NAMES):
                _link(computes, places, (parent, child), is_parent=False)
                _link(computes, places, (child, parent), is_parent=True)
            for settings in places.values():
                stack.enter_context(processes.running(settings, "cells"))
            _await_ready(computes)
        yield Cells(computes)
        for compute in computes.values():
            compute.engine.dispose()


def _place(stack: ExitStack, name: str) -> Settings:
    place = stack.enter_context(scratch.place(broker=True))
    kind = "api" if name == "top" else "compute"
    return replace(place.settings, cells_enable=True, cell_name=name, cell_type=kind, compute_host=f"service-{name}")


def _furnished(settings: Settings) -> Compute:
    compute = scratch.Place(settings).deployment().compute
    spec = NodeSpec("bench-node", 10**5, 10**8, 10**6, driver="memory", reserved_ram_mb=0)
    driver = MemoryDriver([spec] if settings.cell_name == "leaf" else [])
    compute = replace(compute, driver=driver, cast=lambda host, *servers: None)
    services.refresh(compute)
    services.furnish(compute)
    with compute.engine.begin() as conn:
        conn.execute(
            text("INSERT INTO compute_quotas (project_id, instances, cores, ram_mb) VALUES (:project, -1, -1, -1)"),
            {"project": PROJECT},
        )
    return compute


def _link(computes: dict[str, Compute], places: dict[str, Settings], names: Sequence[str], *, is_parent: bool) -> None:
    here, other = names
    secret = "benchmark of " + " and ".join(sorted(names))
    broker = Broker(transport_url=places[other].redis_url, secret=secret)
    neighbours.create(computes[here], Cell(other, is_parent=is_parent, broker=broker))


def _await_ready(computes: dict[str, Compute]) -> None:
    """Wait until changes are noted, and the top knows what the leaf has."""
    deadline = time.monotonic() + PATIENCE
    while not _is_ready(computes):
        if time.monotonic() > deadline:
            raise TimeoutError("the cells are not ready")
        state.report(computes["leaf"])
        time.sleep(0.5)


def _is_ready(computes: dict[str, Compute]) -> bool:
    with computes["leaf"].engine.connect() as conn:
        noted = cell_changes.is_tracked(conn)
    with computes["top"].engine.connect() as conn:
        capacities = neighbours.around(conn).children["right"].capacities
    return bool(noted and capacities.get("ram_free", {}).get("total_mb"))


if __name__ == "__main__":
    main("--short" in sys.argv)
