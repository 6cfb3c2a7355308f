"""A lease over two child zones beside the same lease at home: milliseconds, requests between zones, and statements."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import event

from api import create_app
from benchmarks import scratch
from benchmarks.figures import head, line, spread, step, timed
from benchmarks.zone_tree import Zone, Zones, zones
from climate.cloud.bundled import BundledCloud
from climate.cloud.bundled_zones import BundledZones
from climate.compute.models.node import NodeSpec
from climate.compute.nodes import services
from climate.compute.virt.in_memory import MemoryDriver
from climate.domain.policy import Caller
from climate.service.hosts import inventory

LEASED = 8
"""Hosts of a lease: all of them here, or half of them in each child."""

ADMIN = Caller("bench-admin", "bench", frozenset({"admin"}), "req-bench")
HOME, PARENT, CHILDREN = "home", "parent", ("child-1", "child-2")


def measure(place: scratch.Place, times: int) -> None:
    """Print what a lease over two children costs beside one at home, and what its statements are."""
    head(f"Creating a lease of {LEASED} hosts over HTTP, all zones in one process")
    with zones(place) as made:
        with step("four zones"):
            tree = {name: _with_hosts(made, name) for name in (HOME, PARENT, *CHILDREN)}
            for name in CHILDREN:
                tree[PARENT].adopt(tree[name])
        orders = _orders()
        home = _create(tree[HOME], orders, times, "at home")
        over = _create(tree[PARENT], orders, times, "over two children")
        line("ratio of the medians", f"{over / home:.1f}")
        with _counted(tree) as counted:
            _lease(tree[HOME], next(orders))
        line("statements at home", counted[HOME])
        with _counted(tree) as counted:
            _lease(tree[PARENT], next(orders))
        parts = ", ".join(str(counted[name]) for name in CHILDREN)
        line("statements over two children", f"{counted[PARENT]} in the parent; {parts} in the children")
        line("what dominates", "three rounds of requests: offers, holds, confirmations; each to both children at once")


def _with_hosts(made: Zones, name: str) -> Zone:
    """A zone whose engine speaks to its own cloud and to its children; the parent has no hosts."""
    zone = made.make(name)
    count = {HOME: LEASED, PARENT: 0}.get(name, LEASED // len(CHILDREN))
    names = [f"{name}-{number}" for number in range(1, count + 1)]
    nodes = [NodeSpec(node, 8, 8192, 100, driver="memory") for node in names]
    whole = zone.deployment
    compute = replace(whole.compute, driver=MemoryDriver(nodes))
    climate = replace(whole.climate, cloud=BundledCloud(compute), zones=BundledZones(compute))
    services.refresh(compute)
    zone.deployment = replace(whole, climate=climate, compute=compute)
    zone.app = create_app(zone.deployment)
    made.applications[name] = zone.app
    for node in names:
        inventory.register(climate, ADMIN, node, {})
    return zone


def _orders() -> Iterator[dict[str, Any]]:
    """Leases whose times do not touch, so that each finds all hosts free."""
    begin = datetime.now(UTC) + timedelta(days=1)
    wanted = {"resource_type": "physical:host", "min": LEASED, "max": LEASED, "across": True}
    while True:
        dates = {"start_date": f"{begin:%Y-%m-%d %H:%M}", "end_date": f"{begin + timedelta(hours=1):%Y-%m-%d %H:%M}"}
        yield {"name": f"wide-{begin:%j-%H}", **dates, "reservations": [wanted]}
        begin += timedelta(hours=2)


def _create(zone: Zone, orders: Iterator[dict[str, Any]], times: int, what: str) -> float:
    """Print how long a create takes; return the median in milliseconds."""
    _lease(zone, next(orders))
    found = spread(timed(lambda: _lease(zone, next(orders)), times))
    line(what, found)
    return found.median


def _lease(zone: Zone, order: Mapping[str, Any]) -> None:
    made = zone.ask("POST", "/leases", order, below="/reservation/v1")
    states = {part["state"] for part in made["lease"]["reservations"][0].get("parts") or ()}
    assert states <= {"confirmed"}, made


@contextmanager
def _counted(tree: Mapping[str, Zone]) -> Iterator[Counter[str]]:
    """Statements by zone, while the block lasts."""
    count: Counter[str] = Counter()
    with_engines = {name: zone.deployment.compute.engine for name, zone in tree.items()}
    heard = {name: _counter(count, name) for name in tree}
    for name, engine in with_engines.items():
        event.listen(engine, "before_cursor_execute", heard[name])
    try:
        yield count
    finally:
        for name, engine in with_engines.items():
            event.remove(engine, "before_cursor_execute", heard[name])


def _counter(count: Counter[str], name: str) -> Callable[..., None]:
    def heard(*said: object) -> None:
        count[name] += 1

    return heard
