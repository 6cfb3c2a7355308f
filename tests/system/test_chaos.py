"""Nothing lost, nothing twice: a stack whose processes and stores are killed at random while clients work."""

import random
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import text

from climate.bootstrap import plain_url
from climate.context import Climate
from climate.plugin import load
from climate.store.engine import connect
from tests.campaign import number
from tests.system import allocation_oracle, checks
from tests.system.api_client import Api
from tests.system.conftest import furnish
from tests.system.faults import LONGEST_LULL, Storm
from tests.system.packages import install
from tests.system.stack import Stack, await_so
from tests.system.traffic import PATIENCE, Traffic

HOSTS = tuple(f"chaos-{place}" for place in range(1, 15))
CLIENTS = 10
SETTINGS = {"CLIMATE_CLAIM_SECONDS": "3", "CLIMATE_STEP_SECONDS": "20", "CLIMATE_IMAGES_PER_PROJECT": "-1"}
"""Quick rescues; each server that ends leaves an image, and a long run leaves more than a project may have."""

HEALED = 180.0
"""Seconds after the storm in which everything has to be well again: longer than a worker's hold on a server."""

LONG = 1000
"""Kills of the long run; CLIMATE_TEST_KILLS replaces it."""

ENOUGH = 20
"""Leases that have to start in time; on a slow machine clients go on after the storm until there are so many."""

OPEN = text("""
    SELECT (SELECT count(*) FROM claims) + (SELECT count(*) FROM compute_servers WHERE task IS NOT NULL)
         + (SELECT count(*) FROM events e JOIN leases l ON l.id = e.lease_id WHERE NOT l.gone AND e.status = 'UNDONE')
         + (SELECT count(*) FROM compute_servers WHERE status = 'RESERVED')
""")
"""What is still to be done: a reserved server whose lease was never made is deleted a minute after its boot."""
ACTIONS = text("""
    SELECT l.name, e.kind, count(a.step), count(a.step) FILTER (WHERE a.state = 'DONE')
    FROM events e JOIN leases l ON l.id = e.lease_id JOIN reservations r ON r.lease_id = l.id
    LEFT JOIN actions a ON a.event_id = e.id
        AND (a.step LIKE 'lend:' || r.id || ':%' OR a.step = 'take_back:' || r.id)
    WHERE r.resource_type = 'physical:host' AND e.kind IN ('start_lease', 'end_lease') AND e.outcome IN ('OK', 'LATE')
    GROUP BY l.id, e.id HAVING count(a.step) <> 1 OR count(a.step) FILTER (WHERE a.state = 'DONE') <> 1
""")
ASTRAY = text("SELECT name, pool FROM compute_nodes WHERE name LIKE 'chaos-%' AND pool IS DISTINCT FROM 'freepool'")
LENT = text("SELECT name FROM compute_aggregates WHERE name <> 'freepool'")
LEFT_OVER = text("SELECT name, status, task FROM compute_servers WHERE name LIKE 'storm-%'")
IMAGES = text("""
    SELECT e.outcome, l.name, count(i.id) FROM leases l
    JOIN reservations r ON r.lease_id = l.id AND r.resource_type = 'virtual:instance'
    JOIN events e ON e.lease_id = l.id AND e.kind = 'start_lease' AND e.outcome IN ('OK', 'LATE')
    LEFT JOIN compute_images i ON i.name = 'reserved_' || l.name AND i.status = 'active'
    GROUP BY l.id, e.id HAVING count(i.id) <> 1
""")


@pytest.fixture
def shaken(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Stack, Path]]:
    """A stack of its own with quick rescues and a stranger's plugin, and the folder for that plugin's pages."""
    folder = tmp_path_factory.mktemp("chaos")
    pages = folder / "pages"
    pages.mkdir()
    site = install("ledger", folder / "site")
    stack = Stack(folder / "home", SETTINGS, (site,))
    furnish(stack.home, HOSTS)
    try:
        stack.start()
        yield stack, pages
    finally:
        stack.stop()
        (folder / "said.log").write_text("\n".join(stack.said), encoding="utf-8")
    assert stack.left() == []


def _register(admin: Api) -> None:
    for name in HOSTS:
        answer = admin.ask("POST", "/v1/os-hosts", {"name": name, "chaos": "yes"})
        assert answer.status_code == 201, answer.text


def _first(api: Api, path: str, kind: str) -> str:
    answer = api.ask("GET", path)
    return str(answer.json()[kind][0]["id"]) if answer.status_code == 200 else ""


@dataclass(frozen=True)
class Weather:
    """Kills of one run, and its pace."""

    kills: int
    lull: float = LONGEST_LULL
    pause: tuple[float, float] = (0.1, 0.9)
    patience: float = PATIENCE
    """Seconds within which each request gets a final answer; a run with more kills than restarts needs more."""


def _rage(
    stack: Stack, pages: Path, member: Api, seed: int, weather: Weather, note: Callable[[str, object], None]
) -> Traffic:
    """Clients and storm together; afterwards all that was asked for is over."""
    flavor, image = _first(member, "/compute/v2.1/flavors", "flavors"), _first(member, "/image/v2/images", "images")
    traffic = Traffic(member, str(pages), flavor, image, seed, weather.pause, weather.patience)
    storm = Storm(stack, seed, (*sorted(load()), "test:ledger"), weather.lull)
    with ThreadPoolExecutor(CLIENTS) as pool:
        runs = [pool.submit(traffic.work, number) for number in range(CLIENTS)]
        try:
            storm.blow(weather.kills, lambda seconds: traffic.stopping.wait(seconds) or stack.pid is None)
            await_so(lambda: _started(stack) >= ENOUGH, HEALED, "leases that start in time")
        finally:
            traffic.stopping.set()
        for run in runs:
            run.result()
    print(f"\n{dict(storm.count)}, {storm.kills} kills, {len(traffic.wishes)} leases\n{dict(traffic.answers)}")
    assert storm.kills >= weather.kills
    note("kills", storm.kills)
    note("kinds of processes killed", sum(1 for what in storm.count if what.startswith("kill")))
    note("other faults", sum(storm.count.values()) - storm.kills)
    note("requests", sum(traffic.answers.values()))
    threading.Event().wait(max(0.0, traffic.last_end - time.time()))
    return traffic


def _started(stack: Stack) -> int:
    """How many leases have started in time; 0 while the database is away."""
    counted = "SELECT count(*) FROM events WHERE kind = 'start_lease' AND outcome = 'OK'"
    try:
        with psycopg.connect(plain_url(stack.database_url), connect_timeout=2) as conn:
            row = conn.execute(counted).fetchone()
    except psycopg.Error:
        return 0
    return row[0] if row else 0


def _judge(stack: Stack, climate: Climate, pages: Path, traffic: Traffic, note: Callable[[str, object], None]) -> None:
    """Every promise, each said by name when it is broken."""
    everything = checks.read_leases(climate)
    claims, streams = checks.claims_of(climate)
    with climate.engine.connect() as conn:
        found: dict[str, Any] = {
            "answers": traffic.wrong,
            "acknowledged": checks.of_wishes(traffic.wishes, everything),
            "statuses": checks.of_statuses(everything),
            "pages": checks.of_pages(pages, everything, claims),
            "hosts lent twice at once": checks.of_hosts(streams),
            "hosts lent from lease to lease": checks.of_lent_hosts(checks.read_moves(climate)),
            "overlaps": allocation_oracle.overlaps(allocation_oracle.in_rows(stack.database_url)),
            "still held": allocation_oracle.in_rows(stack.database_url),
            "hosts handed over or taken back not once": conn.execute(ACTIONS).all(),
            "hosts astray": conn.execute(ASTRAY).all(),
            "pools left": conn.execute(LENT).all(),
            "servers left": conn.execute(LEFT_OVER).all(),
            "images": conn.execute(IMAGES).all(),
        }
    checked = stack.run("journal", "check", seconds=900)
    found["journal"] = checked.stdout + checked.stderr if checked.returncode else ""
    wrong = {what: said for what, said in found.items() if said}
    assert not wrong, wrong
    note("promises broken", len(wrong))
    _say_how_much(everything, note)


def _say_how_much(everything: list[Any], note: Callable[[str, object], None]) -> None:
    started = [
        lease for lease in everything if any(e.kind == "start_lease" and e.outcome == "OK" for e in lease.events)
    ]
    missed = [lease for lease in everything if any(e.outcome == "MISSED" for e in lease.events)]
    print(f"{len(everything)} leases: {len(started)} started in time, {len(missed)} missed")
    note("leases", len(everything))
    note("leases started in time", len(started))
    note("leases that an outage outlasted", len(missed))
    assert len(started) >= ENOUGH, "too little was under way for the storm to mean anything"


def _run(shaken: tuple[Stack, Path], weather: Weather, note: Callable[[str, object], None]) -> None:
    stack, pages = shaken
    seed = random.SystemRandom().randrange(10**6)
    print(f"\nseed {seed}")
    admin, member = Api(stack.home, "climate"), Api(stack.home, "climate-demo")
    engine = connect(stack.database_url, pool_size=2)
    try:
        _register(admin)
        traffic = _rage(stack, pages, member, seed, weather, note)
        await_so(stack.is_ready, HEALED, "readiness after the storm")
        await_so(lambda: _settled(engine), HEALED, "that everything has settled")
        _judge(stack, Climate(engine, None, {}), pages, traffic, note)  # type: ignore[arg-type]
    finally:
        engine.dispose()
        admin.close()
        member.close()


def _settled(engine: Any) -> bool:
    with engine.connect() as conn:
        return not conn.scalar(OPEN)


@pytest.mark.slow
@pytest.mark.timeout(420)
def test_a_gust(shaken: tuple[Stack, Path], record_property: Callable[[str, object], None]) -> None:
    """The short form, for those who work on the engine: every kind of process dies, some twice."""
    _run(shaken, Weather(12), record_property)


@pytest.mark.campaign
@pytest.mark.timeout(4 * 3600)
def test_a_thousand_kills(shaken: tuple[Stack, Path], record_property: Callable[[str, object], None]) -> None:
    """An hour and more: shorter waits between faults, and fewer requests of each client."""
    _run(shaken, Weather(number("CLIMATE_TEST_KILLS", LONG), 2.0, (0.3, 2.7), 900.0), record_property)
