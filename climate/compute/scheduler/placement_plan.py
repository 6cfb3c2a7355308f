"""What a scheduler answers: a node for each server of a request, and how it came to it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from climate.compute.models.request import Spec
from climate.compute.scheduler.hosts.table import Hosts
from climate.compute.scheduler.scheduler_parts import Rules, Sees


@dataclass(frozen=True, slots=True)
class Pick:
    """The node chosen for one server."""

    node_id: int
    node: str
    service_host: str
    limits: Mapping[str, float] = field(default_factory=dict)
    """What a claim on the node must keep: `memory_mb`, `disk_gb`, `vcpu`, `servers`; one that is not there does not
    bind."""
    weight: float = 0.0


Trail = Mapping[str, Any]
"""How a decision was reached, in plain values that JSON can carry; see `climate.compute.scheduler.decisions.record`."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A pick for each server asked for, in order."""

    picks: tuple[Pick, ...]
    trail: Trail = field(default_factory=dict)


Schedule = Callable[[Hosts, Spec, int, Rules], Plan]
"""(hosts, spec, how many, rules) -> plan.  Consumes `hosts`: hand in a copy.  Raises NoValidHost with its trail."""


@dataclass(frozen=True, slots=True)
class Scheduler:
    """A scheduler as packages offer it, in the group `climate.schedulers`."""

    schedule: Schedule
    filters: bool = False
    """It asks the filters and weighers of the settings, so that server groups are kept; else `rules` has those alone
    that hold under every scheduler."""
    sees: Sees = Sees.NOTHING
    """The servers whose owners it reads."""
