"""Result of a scheduler: a node for each server of a request, and the record of the decision."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from climate.compute.models.request import Spec
from climate.compute.scheduler.hosts.table import Hosts
from climate.compute.scheduler.scheduler_parts import Rules, Sees


@dataclass(frozen=True, slots=True)
class Pick:
    """Node chosen for one server."""

    node_id: int
    node: str
    service_host: str
    limits: Mapping[str, float] = field(default_factory=dict)
    """Limits that a claim on the node must respect: `memory_mb`, `disk_gb`, `vcpu`, `servers`; a missing one is
    unlimited.
    """
    weight: float = 0.0


Trail = Mapping[str, Any]
"""Record of the decision as plain JSON values; see `climate.compute.scheduler.decisions.record`."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Pick for each requested server, in order."""

    picks: tuple[Pick, ...]
    trail: Trail = field(default_factory=dict)


Schedule = Callable[[Hosts, Spec, int, Rules], Plan]
"""(hosts, spec, count, rules) -> plan. Consumes `hosts`, so pass a copy. Raises NoValidHost with its trail."""


@dataclass(frozen=True, slots=True)
class Scheduler:
    """Scheduler of a package, in the entry point group `climate.schedulers`."""

    schedule: Schedule
    filters: bool = False
    """True if it applies the configured filters and weighers, and so respects server groups; otherwise `rules` has only
    the mandatory ones.
    """
    sees: Sees = Sees.NOTHING
    """Servers whose owners it reads."""
