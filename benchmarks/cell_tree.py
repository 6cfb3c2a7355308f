"""Three cells for benchmarks, one below the other, each with a database, a Valkey and a cells process of its own."""

import os
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from sqlalchemy import text

from benchmarks import processes, scratch
from benchmarks.figures import step
from climate.compute import Compute
from climate.compute.cells import neighbours
from climate.compute.cells.models import Broker, Cell
from climate.compute.cells.state import state
from climate.compute.models.node import NodeSpec
from climate.compute.nodes import services
from climate.compute.servers.tasks import task_worker
from climate.compute.store.cells import changes
from climate.compute.virt.in_memory import MemoryDriver
from climate.settings import Settings

NAMES = ("top", "right", "leaf")
PROJECT = "bench-project"
PATIENCE = 300.0
TICKS = os.sysconf("SC_CLK_TCK")

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

_BACKENDS = text("""
    SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'climate-cells%'
""")

FLAVOR = (
    '{"id": "42", "name": "m1.nano", "vcpus": 1, "ram_mb": 128, "disk_gb": 1, "ephemeral_gb": 0, "swap_mb": 0, '
    '"is_public": true, "projects": [], "extra_specs": {}, "description": null}'
)


@dataclass(frozen=True, slots=True)
class Processor:
    """Processor time since some moment, in seconds."""

    processes: float
    """Processor time of the cells processes."""
    databases: float
    """Processor time of their database backends."""

    def since(self, earlier: "Processor") -> "Processor":
        return Processor(self.processes - earlier.processes, self.databases - earlier.databases)

    def each(self, count: float) -> "Processor":
        return Processor(self.processes / count, self.databases / count)

    def __str__(self) -> str:
        return f"{1000 * self.processes:.2f} ms in the cells processes, {1000 * self.databases:.2f} ms in the databases"


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

    def fill(self, count: int) -> None:
        """Make so many servers in the leaf."""
        with self.leaf.engine.begin() as conn:
            conn.execute(_SERVERS, {"project": PROJECT, "flavor": FLAVOR, "count": count})

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

    def processor(self) -> Processor:
        """Return the processor time of the cells processes and of their backends until now."""
        backends: list[int] = []
        for compute in self.computes.values():
            with compute.engine.connect() as conn:
                backends += conn.execute(_BACKENDS).scalars()
        return Processor(sum(map(_spent, _cells_processes())), sum(map(_spent, backends)))

    @contextmanager
    def serving(self) -> Iterator[None]:
        """Carry out what is asked of the servers of the leaf."""
        stop = threading.Event()
        services.refresh(self.leaf)

        def serve() -> None:
            refreshed = time.monotonic()
            while not stop.wait(0.002):
                for _, server_id in task_worker.unfinished(self.leaf, wait=0, again=0.5):
                    task_worker.run_task(self.leaf, server_id)
                if time.monotonic() > refreshed + 5:
                    services.refresh(self.leaf)
                    refreshed = time.monotonic()

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
        services.refresh(computes["leaf"])
        state.report(computes["leaf"])
        time.sleep(0.5)


def _is_ready(computes: dict[str, Compute]) -> bool:
    with computes["leaf"].engine.connect() as conn:
        noted = changes.is_tracked(conn)
    with computes["top"].engine.connect() as conn:
        capacities = neighbours.around(conn).children["right"].capacities
    return bool(noted and capacities.get("ram_free", {}).get("total_mb"))


def _cells_processes() -> list[int]:
    """The cells processes that this one has started."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == os.getpid() and (folder / "cmdline").read_bytes().rstrip(b"\0").endswith(b"climate\0cells"):
                found.append(int(folder.name))
        except (OSError, ValueError):
            continue  # ended meanwhile
    return found


def _spent(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0  # ended meanwhile
    return (int(fields[11]) + int(fields[12])) / TICKS
