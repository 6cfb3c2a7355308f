"""What there is in the sandbox: interfaces and rules of each network, namespaces, processes that nobody waits for."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from climate.compute.linux import netns

MACHINE = "the machine"
ENDING_SECONDS = 10
"""A script that a DHCP client has begun outlives the client by moments."""


def seen() -> frozenset[tuple[str, str, str]]:
    """Everything, each as (what, where, which)."""
    places = [MACHINE, *netns.names()]
    links = {("interface", place, name) for place in places for name in _interfaces(place)}
    rules = {("rule", place, line) for place in places for line in _rules(place)}
    spaces = {("namespace", MACHINE, place) for place in places[1:]}
    return frozenset(links | rules | spaces | set(_processes()))


def left_since(before: frozenset[tuple[str, str, str]]) -> frozenset[tuple[str, str, str]]:
    """What there is now and was not then, once whatever is just ending has had the time for it."""
    deadline = time.monotonic() + ENDING_SECONDS
    while (left := seen() - before) and time.monotonic() < deadline:
        time.sleep(0.05)
    return left


def at_rest(place: str) -> bool:
    """Whether the kernel has drawn all conclusions from what was set: who has a carrier is in use a moment later."""
    links = json.loads("".join(_said("ip", *_at(place), "-json", "link", "show")))
    return all(_settled(set(link["flags"]), link.get("qdisc", "")) for link in links)


def _settled(flags: set[str], queue: str) -> bool:
    carrier = "LOWER_UP" in flags
    return "UP" not in flags or (carrier != ("NO-CARRIER" in flags) and not (carrier and queue == "noop"))


def end_processes(left: Iterable[tuple[str, str, str]]) -> None:
    """End by force the processes among these; returns when they are gone."""
    for what, _, which in left:
        if what == "process":
            number = int(which.split()[0])
            with suppress(ProcessLookupError):
                handle = os.pidfd_open(number)
                signal.pidfd_send_signal(handle, signal.SIGKILL)
                os.close(handle)


def _interfaces(place: str) -> list[str]:
    lines = _said("ip", *_at(place), "-oneline", "link", "show")
    return [line.split(": ")[1].partition("@")[0] for line in lines]


def _rules(place: str) -> list[str]:
    """Tables and chains with what is in them."""
    return netns.inside(None if place == MACHINE else place, lambda: _said("nft", "--stateless", "list", "ruleset"))


def _at(place: str) -> tuple[str, ...]:
    return () if place == MACHINE else ("-netns", place)


def _said(*words: str) -> list[str]:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return [line.strip() for line in done.stdout.splitlines() if line.strip() not in {"", "}"}]


def _processes() -> Iterator[tuple[str, str, str]]:
    """Those that are orphans, or in another network than ours."""
    ours = os.readlink("/proc/self/ns/net")
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or entry.name == "1" or int(entry.name) == os.getpid():
            continue
        with suppress(OSError):
            fields = (entry / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
            words = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
            network = os.readlink(entry / "ns/net")
            if fields[0] not in "ZX" and (fields[1] == "1" or network != ours):
                yield "process", network, f"{entry.name} {words}"
