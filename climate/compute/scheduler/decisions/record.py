"""Record of a scheduling decision, collected cheaply and converted to plain values at the end.

All of it is JSON:

    asked       the request: servers, vcpus, ram_mb, disk_mb, and if given flavor, zone, reservations,
                group (its policy), destination, force_hosts, force_nodes, ignore_hosts, tried
    hosts       number of nodes
    considered  number of nodes that remained after destination, force_hosts, force_nodes and ignore_hosts
    filters     for the first server, each filter in order: name, start and end (number of nodes before and after),
                removed: up to LISTED removed nodes, each with host, node and why
    weighers    name and multiplier of each, in the order of the lists raw and normalised below
    weighed     up to LISTED candidates for the first server, best first: host, node, raw, normalised, weight;
                a single candidate is not weighed: its lists are empty and its weight is 0
    picks       for each server: host, node, raw, normalised, weight, and from the second on, if nodes were removed
                since the previous one, filters: name, start, end and removed as above
    more_picks  number of placed servers beyond the DETAILED ones in `picks`; the same limit holds for all removed
                nodes that are named
    refused     the filter that left no node, `hosts` if there were no nodes, `weighers` if a candidate could not be
                weighed; absent on success

`host` is a service host, `node` one of its nodes.  Sizes: MB.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from climate.compute.models.request import Spec
from climate.compute.scheduler.hosts.table import Hosts, Mask
from climate.compute.scheduler.placement_plan import Trail
from climate.compute.scheduler.scheduler_parts import Filter, Options, Rules

LISTED = 100
"""Maximum number of nodes in one list."""

DETAILED = 1000
"""Maximum number of servers of a build with named nodes, and of nodes that were removed while it was placed."""

Weighed = tuple[list[float], list[float], float]
"""For one node: the raw value of each weigher, the same normalised to 0…1, and the total weight."""


def request_fields(spec: Spec, count: int) -> dict[str, object]:
    """Return the non-empty parts of a request."""
    wanted = {
        "flavor": spec.flavor.name if spec.flavor else None,
        "zone": spec.zone,
        "reservations": list(spec.pools),
        "group": spec.group.policy if spec.group else None,
        "destination": spec.destination,
        "force_hosts": list(spec.force_hosts),
        "force_nodes": list(spec.force_nodes),
        "ignore_hosts": list(spec.ignore_hosts),
        "tried": list(spec.tried),
    }
    sizes = {"servers": count, "vcpus": spec.vcpus, "ram_mb": spec.ram_mb, "disk_mb": spec.disk_mb}
    return sizes | {name: value for name, value in wanted.items() if value}


def stage(rule: Filter, start: int, end: int, removed: Sequence[dict[str, str]]) -> dict[str, object]:
    """Return the result of a filter."""
    return {"name": rule.name, "start": start, "end": end, "removed": list(removed)}


def removed(hosts: Hosts, spec: Spec, options: Options, rule: Filter, gone: Mask) -> list[dict[str, str]]:
    """Return the first nodes that a filter removed, and why. Call it before another server is counted on them."""
    indexes = np.flatnonzero(gone)[:LISTED].tolist()
    return [named(hosts, index) | {"why": _why(hosts, spec, options, rule, index)} for index in indexes]


def _why(hosts: Hosts, spec: Spec, options: Options, rule: Filter, index: int) -> str:
    return rule.why(hosts, spec, options, index) if rule.why else f"was not accepted by {rule.name}."


def named(hosts: Hosts, index: int) -> dict[str, str]:
    return {"host": str(hosts.service_hosts[index]), "node": str(hosts.names[index])}


@dataclass(slots=True)
class Record:
    """Record of the decisions for one build."""

    hosts: Hosts
    asked: dict[str, object]
    weighers: tuple[dict[str, object], ...]
    considered: int = 0
    filters: list[dict[str, object]] = field(default_factory=list)
    weighed: list[tuple[int, Weighed]] = field(default_factory=list)
    picks: list[tuple[int, Weighed]] = field(default_factory=list)
    later: dict[int, list[dict[str, object]]] = field(default_factory=dict)
    """By the number of the server: the filters that removed nodes before it."""
    listed: int = 0
    """Number of nodes named there."""
    refused: str | None = None

    def fell(self, entry: dict[str, Any]) -> None:
        """Record that a filter removed nodes that had remained for the previous server."""
        entry["removed"] = entry["removed"][: DETAILED - self.listed]
        self.listed += len(entry["removed"])
        if entry["removed"]:
            self.later.setdefault(len(self.picks), []).append(entry)

    def trail(self) -> Trail:
        """Return the record as plain values."""
        entry: dict[str, object] = {
            "asked": self.asked,
            "hosts": len(self.hosts),
            "considered": self.considered,
            "filters": self.filters,
            "weighers": list(self.weighers),
            "weighed": [self._entry(index, weighed) for index, weighed in self.weighed],
            "picks": [self._pick(number) for number in range(min(len(self.picks), DETAILED))],
        }
        if len(self.picks) > DETAILED:
            entry["more_picks"] = len(self.picks) - DETAILED
        return entry if self.refused is None else entry | {"refused": self.refused}

    def _pick(self, number: int) -> dict[str, object]:
        entry = self._entry(*self.picks[number])
        return entry | {"filters": self.later[number]} if number in self.later else entry

    def _entry(self, index: int, weighed: Weighed) -> dict[str, object]:
        raw, normalised, weight = weighed
        return named(self.hosts, index) | {"raw": raw, "normalised": normalised, "weight": weight}


def begun(hosts: Hosts, spec: Spec, count: int, rules: Rules) -> Record:
    """Return an empty record of a request."""
    weighers = [{"name": rule.name, "multiplier": rule.multiplier(rules.options)} for rule in rules.weighers]
    return Record(hosts, request_fields(spec, count), tuple(weighers))
