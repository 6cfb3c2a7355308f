"""`server show` through a tree of web processes: what each level costs, in wall time and in processor time."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from itertools import pairwise
from statistics import median

from benchmarks import processes, scratch
from benchmarks.client import Connection
from benchmarks.figures import head, line, spread, step
from benchmarks.processor_time import Meter
from benchmarks.zone_tree import C, Zone, Zones, fill, zones
from climate.compute.models.request import BootRequest
from climate.compute.servers import create
from climate.compute.store.projects import flavors
from climate.compute.zones import registry
from climate.settings import Settings

NAMES = ("two zones above", "one zone above", "home")
TURNS = 7


@dataclass
class Process:
    """The web process of a zone, and what it spends."""

    settings: Settings
    pids: list[int]
    connection: Connection
    path: str
    """Path of the server that is shown."""

    def open(self) -> None:
        """Use a new connection: the old one may be closed after a pause."""
        self.connection.close()
        self.ask()

    def ask(self) -> float:
        """Show the server; the seconds that it took."""
        answer = self.connection.get(self.path)
        if answer.status != HTTPStatus.OK:
            raise RuntimeError(f"server show is answered with {answer.status}")
        return answer.seconds

    def meter(self) -> Meter:
        """The processor time that the web processes and Postgres spend on it."""
        return Meter(self.pids, self.settings.database_url)


@dataclass
class Turns:
    """Milliseconds of a request to one zone of the tree, turn by turn."""

    walls: list[float] = field(default_factory=list)
    webs: list[float] = field(default_factory=list)
    bases: list[float] = field(default_factory=list)


def shows(place: scratch.Place, times: int) -> None:
    """Print the cost of a level: the same request to three zones by turns, of which the last has the server."""
    head("`server show` through a tree of three web processes, each zone with a database of its own")
    with zones(place) as made, ExitStack() as stack:
        with step("three zones"):
            last, settings = _tree(made)
            server = _server(last)
            asked = [stack.enter_context(_running(chosen, server)) for chosen in settings]
        for process in asked:
            process.open()
            for _ in range(20):  # tokens, statements and connections are made once
                process.ask()
        found = [Turns() for _ in asked]
        for _ in range(TURNS):
            for process, turns in zip(asked, found, strict=True):
                _turn(asked, process, turns, max(2, times))
        _print(found)


def _turn(everybody: Sequence[Process], process: Process, turns: Turns, times: int) -> None:
    process.open()
    before = [one.meter().read() for one in everybody]
    turns.walls += [process.ask() for _ in range(times)]
    spent = [one.meter().read().since(early, times) for one, early in zip(everybody, before, strict=True)]
    turns.webs.append(sum(one.processes for one in spent))
    turns.bases.append(sum(one.postgres for one in spent))


def _print(found: Sequence[Turns]) -> None:
    above, _, home = found
    for name, turns in zip(NAMES[::-1], found[::-1], strict=True):
        work = f"processor {median(turns.webs):.2f} ms, of Postgres {median(turns.bases):.2f} ms"
        line(f"asked {'at ' if turns is home else ''}{name}", f"{spread(turns.walls)}; {work}")
    wall = 1000 * (median(above.walls) - median(home.walls)) / 2
    line("a level: wall time", f"{wall:.2f} ms", "20 ms")
    work = (median(above.webs) - median(home.webs)) / 2
    line("a level: processor time of the web process", f"{work:.2f} ms", "2 ms")
    base = (median(above.bases) - median(home.bases)) / 2
    line("a level: processor time of Postgres", f"{base:.2f} ms")
    ceiling = median(home.webs)
    line("a level: beside the same request at home", f"{work / ceiling:.2f} of its processor time")


def _tree(made: Zones) -> tuple[Zone, list[Settings]]:
    """Parent, child and grandchild: the last of them, and the settings of their web processes."""
    tree = [made.make(name) for name in ("parent", "child", "grandchild")]
    given = {"web_processes": 1, "public_url": ""}
    settings = [processes.with_port(replace(zone.deployment.settings, **given)) for zone in tree]
    for (above, _), (below, chosen) in pairwise(zip(tree, settings, strict=True)):
        account = {"username": "admin", "password": below.password}
        registry.add(above.deployment.compute, {"api_url": f"{chosen.base_url}{C}", **account})
    return tree[-1], settings


@contextmanager
def _running(settings: Settings, server: str) -> Iterator[Process]:
    with processes.running(settings, "web") as pids:
        connection = Connection(settings, processes.token(settings, "climate"))
        yield Process(settings, pids, connection, f"{C}/servers/{server}")
        connection.close()


def _server(zone: Zone) -> str:
    fill(zone, 10)
    compute = zone.deployment.compute
    with compute.engine.connect() as conn:
        flavor = flavors.listed(conn)[0]
    return create.boot(compute, BootRequest("p", "u", "s", flavor, None))[0].id
