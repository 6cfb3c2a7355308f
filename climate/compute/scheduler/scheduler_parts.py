"""Filters, weighers and options of a scheduler, chosen and ordered by settings."""

import math
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, IntEnum

from climate.compute.models.node import DEFAULT_ZONE
from climate.compute.models.request import Spec
from climate.compute.scheduler.hosts.table import Hosts, Mask, Numbers


class Again(Enum):
    """Part of a filter's result that must be recomputed after a server of a build was placed."""

    NEVER = "never"
    """Nothing: the result does not depend on placements."""
    ROW = "row"
    """The result for the chosen node."""
    ALL = "all"
    """The whole result, which depends on all placements."""


class Sees(IntEnum):
    """Servers whose owners a rule reads in `spec.occupants`; others are not loaded."""

    NOTHING = 0
    OWN = 1
    """Servers of the request's project, and of its user in other projects."""
    ALL = 2


@dataclass(frozen=True, slots=True)
class Options:
    """Options of filters and weighers, with the meaning of Nova's scheduler options."""

    host_subset_size: int = 1
    """Number of best nodes from which one is chosen at random."""
    max_attempts: int = 3
    """Maximum number of nodes on which creation of a server is attempted."""
    max_io_ops_per_host: int = 8
    max_instances_per_host: int = 50
    isolated_images: frozenset[str] = frozenset()
    isolated_hosts: frozenset[str] = frozenset()
    restrict_isolated: bool = True
    """True: isolated hosts accept isolated images only."""
    ram_multiplier: float = 1.0
    """Positive spreads servers over the nodes, negative stacks them."""
    io_ops_multiplier: float = -1.0
    metrics_multiplier: float = 1.0
    soft_affinity_multiplier: float = 10.0
    """Greater than all other multipliers, so that affinity outweighs idle nodes."""
    soft_anti_affinity_multiplier: float = 10.0
    metrics: tuple[tuple[str, float], ...] = ()
    """(metric, ratio)"""
    metrics_required: bool = True
    weight_of_unavailable: float = -10000.0
    default_zone: str = DEFAULT_ZONE
    schedule_zone: str | None = None
    """Availability zone of requests without one; None: any."""
    image_namespace: str = ""
    """Prefix of aggregate keys that isolate images; empty: all keys."""
    image_separator: str = "."
    host_filter: str = "AllHostsFilter"
    """Default host filter of the distributed scheduler."""
    pci_aliases: tuple[tuple[str, tuple[str, str]], ...] = ()
    """(alias, (vendor id, product id)) of PCI devices that flavors can request."""
    max_cores: int = 16
    """Maximum number of cores per node under the simple scheduler."""


Keep = Callable[[Hosts, Spec, Options], Mask]
Weigh = Callable[[Hosts, Spec, Options], Numbers]
"""Function that returns a number for each node. NaN or infinite on a candidate refuses the request."""
Why = Callable[[Hosts, Spec, Options, int], str]
"""Function that returns why the node in a row was removed, as the rest of a sentence that begins with the node."""
Check = Callable[[Hosts, Spec], object]
"""Function that validates the request before scheduling. Raises BadRequest."""


@dataclass(frozen=True, slots=True)
class Filter:
    """Filter of nodes. The result for a row depends only on that row and the request."""

    name: str
    keep: Keep
    again: Again = Again.NEVER
    why: Why | None = None
    limit: tuple[str, Weigh] | None = None
    """Limit that a claim must respect: `memory_mb`, `disk_gb`, `vcpu` or `servers`, and its value for each node;
    infinite: none.
    """
    check: Check | None = None
    when: Callable[[Spec], bool] | None = None
    """Function that returns whether `again` applies to a request; None: always."""
    sees: Sees = Sees.NOTHING

    def changes(self, spec: Spec) -> bool:
        """Return whether any part of the result must be recomputed after a server of a build was placed."""
        return self.again is not Again.NEVER and (self.when is None or self.when(spec))


@dataclass(frozen=True, slots=True)
class Weigher:
    """Weigher of nodes: higher is better."""

    name: str
    weigh: Weigh
    multiplier: Callable[[Options], float]
    floor: float | None = None
    """Minimum of the normalisation range, unless a value is lower; None: the lowest value."""
    ceiling: float | None = None
    """Maximum of the normalisation range, unless a value is higher; None: the highest value."""
    again: Again = Again.ROW
    when: Callable[[Spec], bool] | None = None
    """Function that returns whether the weigher applies to a request; None: always."""
    sees: Sees = Sees.NOTHING


def limits(filters: Sequence[Filter], row: Hosts, spec: Spec, options: Options) -> Mapping[str, float]:
    """Return the limits that a claim on the node in this row must respect; of equal names, the minimum."""
    result: dict[str, float] = {}
    for name, of in [rule.limit for rule in filters if rule.limit]:
        result[name] = min(float(of(row, spec, options)[0]), result.get(name, math.inf))
    return {name: limit for name, limit in result.items() if math.isfinite(limit)}


CostOf = Callable[[Hosts, Spec], Numbers]


@dataclass(frozen=True, slots=True)
class Cost:
    """Cost of nodes: lower is better. The cost of a row depends only on that row and the request."""

    name: str
    of: CostOf
    weight: float = 1.0
    sees: Sees = Sees.NOTHING


@dataclass(frozen=True, slots=True)
class Rules:
    """Configuration of a scheduler."""

    filters: tuple[Filter, ...]
    weighers: tuple[Weigher, ...]
    options: Options = Options()
    costs: tuple[Cost, ...] = ()
    """Costs of the scheduler `least_cost`, in place of weighers."""
    chance: Callable[[int], int] = secrets.randbelow
    """Function that returns a random integer from 0 up to its argument, exclusive."""
    host_filters: Mapping[str, Filter] = field(default_factory=dict)
    """Host filters by name, for schedulers with host filters; empty: the bundled ones."""
    sees: Sees = Sees.NOTHING
    """Servers whose owners the scheduler itself reads."""

    def occupants_read(self) -> Sees:
        """Return the servers whose owners the scheduler or one of its rules reads."""
        weighing = [self.sees, *(rule.sees for rule in self.weighers), *(cost.sees for cost in self.costs)]
        return max([self.kept(), *weighing])

    def kept(self) -> Sees:
        """Return the servers by whose owners a filter removes nodes; a new one of them on a node
        invalidates a choice.
        """
        return max((rule.sees for rule in (*self.filters, *self.host_filters.values())), default=Sees.NOTHING)

    def applied(self, spec: Spec) -> "Rules":
        """Return the rules without the weighers that do not apply to this request."""
        weighers = tuple(rule for rule in self.weighers if rule.when is None or rule.when(spec))
        return self if len(weighers) == len(self.weighers) else replace(self, weighers=weighers)
