"""Cells: updates that reach the top cell and their age, calls and boots through two cells beside the same at home."""

import sys
import time
from collections.abc import Callable
from uuid import uuid4

from sqlalchemy import text

from benchmarks.cell_tree import FLAVOR, NAMES, PATIENCE, PROJECT, Cells, Processor, cells
from benchmarks.figures import Spread, head, line, spread, step
from climate.compute.cells.builds import start
from climate.compute.cells.messaging import send
from climate.compute.cells.servers import methods, sync
from climate.compute.models.flavor import Flavor
from climate.compute.models.request import BootRequest
from climate.compute.servers import actions, create
from climate.compute.servers.interfaces import interfaces
from climate.compute.store.cells import servers

RATE = 500
"""Changes of servers in a second."""

TICK = 0.02
IDLE_SECONDS = 10.0
SMALL = Flavor("42", "m1.nano", 1, 128, 1)

_ONE = text("""
    INSERT INTO compute_servers (id, name, project_id, user_id, status, flavor, vcpus, ram_mb, disk_mb, build_id,
                                 launch_index)
    VALUES (CAST(:id AS uuid), 'called', :project, 'bench', 'ERROR', CAST(:flavor AS jsonb), 1, 128, 1024, 'r-called',
            0)
""")

_AGES = text("""
    SELECT extract(epoch FROM reported_at - changed_at) FROM compute_cell_servers WHERE build_id = 'r-bench'
""")


def main(short: bool) -> None:
    seconds = 4 if short else 30
    count = RATE * seconds
    head(f"{count} servers two levels below the top cell")
    with cells() as found:
        idle = _idle(found)
        _calls(found, idle, 50 if short else 300)
        _boots(found, idle, 10 if short else 60)
        with step("making the servers"):
            begun = time.perf_counter()
            found.fill(count)
        before = found.processor()
        found.await_known("SHUTOFF", count)
        line("all at once: updates that reach the top", f"{count / (time.perf_counter() - begun):,.0f} a second")
        line("processor time of one, at all three cells", found.processor().since(before).each(count))
        _at_rate(found, count)
        _stages(found)


def _idle(found: Cells) -> Processor:
    """Return the processor time of the tree in a second without any work."""
    before = found.processor()
    time.sleep(IDLE_SECONDS)
    idle = found.processor().since(before).each(IDLE_SECONDS)
    line("three cells without work, in a second", idle)
    return idle


def _calls(found: Cells, idle: Processor, times: int) -> None:
    """A method of a server whose answer is waited for, by turns at home and one and two cells below."""
    server_id = str(uuid4())
    for name in NAMES:
        with found.computes[name].engine.begin() as conn:
            conn.execute(_ONE, {"id": server_id, "project": PROJECT, "flavor": FLAVOR})
    asked = methods.order_of(server_id, "get_interfaces", {}, {})

    def below(path: str) -> Callable[[], object]:
        return lambda: send.call(found.top, path, methods.RUN, asked)

    acts = [lambda: interfaces.interfaces(found.top, server_id), below("top!right"), below("top!right!leaf")]
    walls, work = _by_turns(found, acts, idle, times)
    method = _alone(acts[0], times)
    for what, wall in zip(("at home", "one cell below", "two cells below"), walls, strict=True):
        line(f"call, {what}", wall)
    line("added by each level to a call", f"{(walls[2].median - walls[0].median) / 2:.1f} ms", "less than 20 ms")
    line("processor time that a level adds to a call", work[2].each(2), "less than 2 ms")
    # Two levels include the method itself, and how the top cell sends and waits. The second level only forwards.
    line("of it, the second level alone", work[2].since(work[1]))
    line("the method itself at home, without its database", f"{1000 * method:.2f} ms")


def _alone(act: Callable[[], object], times: int) -> float:
    """Return the processor time of this process for one call, in seconds."""
    before = time.process_time()
    for _ in range(times):
        act()
    return (time.process_time() - before) / times


def _boots(found: Cells, idle: Processor, times: int) -> None:
    """From the request to a server that runs, as whoever asked sees it."""
    with found.serving():
        acts = [lambda: _boot_at_home(found), lambda: _boot_through(found)]
        walls, work = _by_turns(found, acts, idle, times)
    line("boot at home, from the request to ACTIVE", walls[0])
    line("boot from the top, two cells below", walls[1])
    added = (walls[1].median - walls[0].median) / 2
    line("added by each level, there and back", f"{added:.1f} ms", "less than 20 ms")
    # The server that is booted at home is reported to the top as well.
    line("processor time of a boot at home", work[0])
    line("processor time of a boot from the top", work[1])
    dominates = (
        "waking the cells processes and their database commits" if added > walls[0].median else "the boot itself"
    )
    line("what dominates", dominates)


def _by_turns(
    found: Cells, acts: list[Callable[[], object]], idle: Processor, times: int
) -> tuple[list[Spread], list[Processor]]:
    """Run each in turn; their wall times, and the processor time of each beyond that of idle cells."""
    walls: list[list[float]] = [[] for _ in acts]
    for _ in range(times):
        for act, wall in zip(acts, walls, strict=True):
            begun = time.perf_counter()
            act()
            wall.append(time.perf_counter() - begun)
    work = []
    for act in acts:
        before, begun = found.processor(), time.perf_counter()
        for _ in range(times):
            act()
        spent, lasted = found.processor().since(before), time.perf_counter() - begun
        work.append(Processor(spent.processes - idle.processes * lasted, spent.databases - idle.databases * lasted))
    return [spread(wall) for wall in walls], [one.each(times) for one in work]


def _boot_at_home(found: Cells) -> None:
    server = create.boot(found.leaf, _request())[0]
    _await_active(server.id, lambda: actions.get(found.leaf, server.id).status)


def _boot_through(found: Cells) -> None:
    server_id = start.start(found.top, _request()).server_ids[0]

    def status() -> str:
        with found.top.engine.connect() as conn:
            server = servers.get(conn, server_id)
        return server.status if server is not None else ""

    _await_active(server_id, status)


def _await_active(server_id: str, status: Callable[[], str]) -> None:
    deadline = time.monotonic() + PATIENCE
    while (seen := status()) != "ACTIVE":
        if seen == "ERROR" or time.monotonic() > deadline:
            raise RuntimeError(f"server {server_id} is {seen}")
        time.sleep(0.002)


def _request() -> BootRequest:
    return BootRequest(PROJECT, "bench", "b", SMALL, None, networks=())


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
        sync.report(found.leaf, conn, lambda _, method, kwargs: told.extend(kwargs["instances"]), changed)
    made = time.perf_counter() - begun
    begun = time.perf_counter()
    for first in range(0, len(told), sync.REPORTS):
        part = told[first : first + sync.REPORTS]
        sync.update_at_top(found.top, "top!right!leaf", part, lambda *_: None)
    stored = time.perf_counter() - begun
    line("of it, reading a server and giving its report a version", f"{1000 * made / len(chosen):.2f} ms")
    line("of it, checking and storing a report at the top", f"{1000 * stored / len(chosen):.2f} ms")


if __name__ == "__main__":
    main("--short" in sys.argv)
