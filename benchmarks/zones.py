"""Zones: a plan over many children, polls of children that hang, a server two zones below, and a spread lease."""

import json
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from flask import Flask, jsonify, request

from benchmarks import scratch, zone_leases, zone_server_show
from benchmarks.figures import head, line, spread, step
from benchmarks.zone_tree import C, Zone, fill, zones
from climate import log_setup
from climate.compute.models.request import BootRequest, spec_of
from climate.compute.scheduler.cost_estimates import estimate
from climate.compute.store.projects import flavors
from climate.compute.zones import polling, registry
from climate.compute.zones.builds import plan, selection
from climate.compute.zones.builds.plan import LocalItem

CHILDREN, HOSTS, SERVERS = 10, 1000, 1000
POLLED, HANGING, DEADLINE = 100, 10, 2.0
SPEC = {
    "num_instances": SERVERS,
    "instance_type": {"name": "m1.small"},
    "instance_properties": {"image_name": "demo"},
}


def main(short: bool) -> None:
    log_setup.configure(level="WARNING")
    with scratch.place() as place:
        _select(place, 3 if short else 20)
        _polls(place, 2 if short else 5)
        zone_server_show.shows(place, 30 if short else 100)
        zone_leases.measure(place, 10 if short else 100)


def _select(place: scratch.Place, times: int) -> None:
    head(f"/zones/select for {SERVERS:,} servers over {CHILDREN} children of {HOSTS:,} hosts each, all in one process")
    with zones(place) as made:
        with step("eleven zones"):
            parent = made.make("parent")
            children = [made.make(f"child-{number}") for number in range(CHILDREN)]
            for child in children:
                fill(child, HOSTS)
                parent.adopt(child)
        one = children[0]
        _measure("the whole plan", times, lambda: parent.ask("POST", "/zones/select", SPEC))
        alone = _measure("of it: the answer of one child", times, lambda: one.ask("POST", "/zones/select", SPEC))
        choosing = _choosing(one, times)
        _parts(parent, one, times)
        line("what dominates", f"choosing nodes: {100 * choosing / alone:.0f} % of a child's processor time")


def _choosing(child: Zone, times: int) -> float:
    """The processor time of the scheduler of one child, in seconds."""
    compute = child.deployment.compute
    with compute.engine.connect() as conn:
        flavor = next(one for one in flavors.listed(conn) if one.name == "m1.small")
        hosts = compute.roster.take(conn, compute.now(conn), compute.down_seconds)
    spec = spec_of(BootRequest("p", "u", "s", flavor, None, count=SERVERS))
    return _measure(
        "in a child: choosing nodes", times, lambda: estimate(compute.schedule, hosts, spec, SERVERS, compute.rules)
    )


def _parts(parent: Zone, child: Zone, times: int) -> None:
    """Print where the time of one level goes beside the scheduler."""
    compute = child.deployment.compute
    items = [LocalItem(number / SERVERS, f"service-{number}", f"node-{number}") for number in range(SERVERS)]
    _measure("in a child: sealing a thousand blobs", times, lambda: selection.sealed(compute, items))
    answer = json.dumps({"weights": selection.sealed(compute, items)})
    zone = registry.listed(parent.deployment.compute)[0]

    def merge() -> None:
        lists = [plan.scaled(zone, plan.offers(json.loads(answer), SERVERS)) for _ in range(CHILDREN)]
        plan.merged(items, lists)

    _measure("in the parent: reading ten answers and merging", times, merge)
    wrapped = plan.scaled(zone, plan.offers(json.loads(answer), SERVERS))
    _measure(
        "in a zone between: sealing a thousand blobs of children", times, lambda: selection.sealed(compute, wrapped)
    )


def _polls(place: scratch.Place, times: int) -> None:
    head(f"The poll of {POLLED} children, of which {HANGING} hang; deadline {DEADLINE:g} s")
    with zones(place) as made:
        parent = made.make("parent", zone_timeout_seconds=DEADLINE)
        compute = parent.deployment.compute
        compute = replace(compute, zones=replace(compute.zones, poll_seconds=0.0))
        for number in range(POLLED):
            account = {"api_url": f"http://stub-{number}{C}", "username": "u", "password": "p"}
            registry.add(compute, account)
            made.applications[f"stub-{number}"] = _stub()
        _measure("when all answer", times, lambda: polling.poll(compute))
        made.silent |= {f"stub-{number}" for number in range(HANGING)}
        _measure(f"when {HANGING} hang", times, lambda: polling.poll(compute))
        line("what dominates", "the deadline of those that hang; they are waited for together")


def _stub() -> Flask:
    """A child that answers what polls ask."""
    app = Flask("stub")

    @app.post("/identity/v3/auth/tokens")
    def sign_in() -> Any:
        return jsonify({"token": {"expires_at": "2100-01-01T00:00:00Z"}}), 201, {"X-Subject-Token": "token"}

    @app.route("/<path:path>", methods=["GET", "POST"])
    def info(path: str) -> Any:
        return jsonify({"zone": {"name": request.host}, "servers": []})

    return app


def _measure(what: str, times: int, act: Callable[[], object]) -> float:
    """Print the wall time and the processor time of a call; return the latter, in seconds."""
    act()
    walls, begun = [], time.process_time()
    for _ in range(max(times, 2)):
        start = time.perf_counter()
        act()
        walls.append(time.perf_counter() - start)
    work = (time.process_time() - begun) / max(times, 2)
    line(what, f"{spread(walls)}, processor {1000 * work:.1f} ms")
    return work


if __name__ == "__main__":
    main("--short" in sys.argv)
