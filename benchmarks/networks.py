"""Servers on real networks, in a sandbox: from the first request until the last guest has its address from DHCP."""

import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from statistics import median
from typing import Any

from benchmarks import processes, scratch
from benchmarks.figures import head, line, step
from climate import bootstrap
from climate.cli.operations import lab
from climate.compute.linux import netns
from climate.compute.servers.interfaces.vif_plugging import netns_of
from climate.sandbox import features, topology
from climate.sandbox.enter import with_system_programs
from climate.sandbox.entry_command import within, words
from climate.sandbox.features import ProbeResult
from climate.settings import Settings

SERVERS, CLIENTS = 50, 16
PATIENCE = 180.0


def main(short: bool) -> None:
    if within():
        _measure(1 if short else 3)
        return
    found = features.probe(os.environ)
    lacks = found.lacks([*lab.NEEDED, "udhcpc", "bwrap"])
    if lacks:
        head(f"Servers on real networks: not measured, {lacks}")
        return
    argv = words([sys.executable, "-m", "benchmarks.networks", *(["--short"] if short else [])])
    subprocess.run(argv, env=with_system_programs(dict(os.environ)), check=True)


def _measure(rounds: int) -> None:
    head(f"{SERVERS} servers in containers on two hosts, {CLIENTS} clients, DHCP by dnsmasq on a third host")
    topology.up(topology.described())
    with scratch.place(broker=True) as place:
        settings = _settings(place.settings)
        lab.furnish(settings.home, ProbeResult(frozenset({"bwrap"})))
        with step("the first start"):
            bootstrap.prepare(settings, demo=True)
        with processes.running(settings, "web", "poller", "worker"):
            token = processes.token(settings, "climate")
            found = [_round(settings, token) for _ in range(rounds)]
    line("until all servers were asked for", f"{median(asked for asked, _ in found):.1f} s")
    line("until all had their addresses", f"{median(had for _, had in found):.1f} s")


def _settings(plain: Settings) -> Settings:
    made = Settings.from_env(lab.surroundings(plain, "flat_dhcp"))
    own = {name: getattr(plain, name) for name in ("home", "database_url", "redis_url", "log_level")}
    return processes.with_port(replace(made, **own, host="127.0.0.1", public_url=""))


def _round(settings: Settings, token: str) -> tuple[float, float]:
    """Seconds until all servers of a round were asked for, and until all had their addresses; they are gone then."""

    def ask(method: str, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        head = {"X-Auth-Token": token, "Content-Type": "application/json", "OpenStack-API-Version": "compute 2.79"}
        request = urllib.request.Request(f"{settings.base_url}{path}", data, head, method=method)
        with urllib.request.urlopen(request, timeout=60) as answer:
            text = answer.read()
        return json.loads(text) if text else None

    image = ask("GET", "/image/v2/images")["images"][0]["id"]
    wanted = {"imageRef": image, "flavorRef": "42", "networks": "auto"}

    def boot(number: int) -> str:
        made = ask("POST", "/compute/v2.1/servers", {"server": {**wanted, "name": f"bench-{number}"}})
        return str(made["server"]["id"])

    begun = time.perf_counter()
    with ThreadPoolExecutor(CLIENTS) as pool:
        made = list(pool.map(boot, range(SERVERS)))
    asked = time.perf_counter() - begun
    _await(lambda: all(_addressed(server_id) for server_id in made))
    had = time.perf_counter() - begun
    with ThreadPoolExecutor(CLIENTS) as pool:
        list(pool.map(lambda one: ask("DELETE", f"/compute/v2.1/servers/{one}"), made))
    _await(lambda: not ask("GET", "/compute/v2.1/servers")["servers"])
    return asked, had


def _addressed(server_id: str) -> bool:
    """Return whether the guest reports an address."""
    name = netns_of(server_id)
    if not netns.exists(name):
        return False
    show = ("ip", "-4", "-oneline", "address", "show", "dev", "eth0")
    told = netns.inside(name, lambda: subprocess.run(show, capture_output=True, text=True, check=False).stdout)
    return "inet " in told


def _await(so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not so():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {PATIENCE:g} s")
        time.sleep(0.1)


if __name__ == "__main__":
    main("--short" in sys.argv)
