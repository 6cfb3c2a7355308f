"""What a scheduler is made of: filters, weighers and options, chosen and ordered by settings."""

import math
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, IntEnum

from climate.compute.models.node import DEFAULT_ZONE
from climate.compute.models.request import Spec
from climate.compute.scheduler.hosts.table import Hosts, Mask, Numbers


class Again(Enum):
    """What of an answer must be asked for anew when a server of a build has found its node."""

    NEVER = "never"
    """It does not depend on what is taken."""
    ROW = "row"
    """The answer for that node."""
    ALL = "all"
    """Every answer: it depends on the nodes that were chosen already."""


class Sees(IntEnum):
    """The servers of which a rule reads the owners in `spec.occupants`; what no rule sees is not looked up."""

    NOTHING = 0
    OWN = 1
    """Those of the request's project, and those of its user in other projects."""
    ALL = 2


@dataclass(frozen=True, slots=True)
class Options:
    """The numbers and names that filters and weighers go by (cloud.md C.1)."""

    host_subset_size: int = 1
    """A server goes to one of so many best nodes, by chance."""
    max_attempts: int = 3
    """Nodes on which making a server is tried."""
    max_io_ops_per_host: int = 8
    max_instances_per_host: int = 50
    isolated_images: frozenset[str] = frozenset()
    isolated_hosts: frozenset[str] = frozenset()
    restrict_isolated: bool = True
    """Isolated hosts are for isolated images only."""
    ram_multiplier: float = 1.0
    """Above zero spreads servers over the nodes, below it stacks them."""
    io_ops_multiplier: float = -1.0
    metrics_multiplier: float = 1.0
    soft_affinity_multiplier: float = 10.0
    """More than the other weighers together: who asks for neighbours does not lose them to a node that is idle."""
    soft_anti_affinity_multiplier: float = 10.0
    metrics: tuple[tuple[str, float], ...] = ()
    """(metric, ratio)"""
    metrics_required: bool = True
    weight_of_unavailable: float = -10000.0
    default_zone: str = DEFAULT_ZONE
    schedule_zone: str | None = None
    """Availability zone of servers that are asked for without one; None: any."""
    image_namespace: str = ""
    """Only aggregate keys with this prefix isolate images; empty: all."""
    image_separator: str = "."
    host_filter: str = "AllHostsFilter"
    """Of the distributed scheduler, for requests that name none (cloud.md B.10)."""
    pci_aliases: tuple[tuple[str, tuple[str, str]], ...] = ()
    """(alias, (vendor id, product id)) of the PCI devices that flavors can ask for."""
    max_cores: int = 16
    """Cores that the simple scheduler puts on a node."""


Keep = Callable[[Hosts, Spec, Options], Mask]
Weigh = Callable[[Hosts, Spec, Options], Numbers]
"""A number for each node.  NaN or infinite: it cannot be weighed, and if it is a candidate the request is refused."""
Why = Callable[[Hosts, Spec, Options, int], str]
"""Why the node in a row was removed, for the log and the trail: the rest of a sentence that begins with the node."""
Check = Callable[[Hosts, Spec], object]
"""Raises BadRequest for what in a request cannot be understood; asked before anything is chosen."""


@dataclass(frozen=True, slots=True)
class Filter:
    """Which nodes stay.  A row's answer depends on that row and the request only."""

    name: str
    keep: Keep
    again: Again = Again.NEVER
    why: Why | None = None
    limit: tuple[str, Weigh] | None = None
    """A limit that a claim must keep: `memory_mb`, `disk_gb`, `vcpu` or `servers`, and its value for each node;
    infinite: none."""
    check: Check | None = None
    when: Callable[[Spec], bool] | None = None
    """The requests that `again` holds for; None: all."""
    sees: Sees = Sees.NOTHING

    def changes(self, spec: Spec) -> bool:
        """Whether anything of its answer must be asked for anew when a server of a build has found its node."""
        return self.again is not Again.NEVER and (self.when is None or self.when(spec))


@dataclass(frozen=True, slots=True)
class Weigher:
    """How good a node is: higher is better (cloud.md C.5)."""

    name: str
    weigh: Weigh
    multiplier: Callable[[Options], float]
    floor: float | None = None
    """The lowest value that is brought to 0, when none is lower; None: the lowest there is."""
    ceiling: float | None = None
    """The highest value that is brought to 1, when none is higher; None: the highest there is."""
    again: Again = Again.ROW
    when: Callable[[Spec], bool] | None = None
    """The requests that it has a say in; None: all."""
    sees: Sees = Sees.NOTHING


def limits(filters: Sequence[Filter], row: Hosts, spec: Spec, options: Options) -> Mapping[str, float]:
    """What a claim on the node in this row must keep; of several limits of one name, the least."""
    found: dict[str, float] = {}
    for name, of in [rule.limit for rule in filters if rule.limit]:
        found[name] = min(float(of(row, spec, options)[0]), found.get(name, math.inf))
    return {name: limit for name, limit in found.items() if math.isfinite(limit)}


CostOf = Callable[[Hosts, Spec], Numbers]


@dataclass(frozen=True, slots=True)
class Cost:
    """How dear a node is: lower is better (cloud.md B.11).  A row's cost depends on that row and the request only."""

    name: str
    of: CostOf
    weight: float = 1.0
    sees: Sees = Sees.NOTHING


@dataclass(frozen=True, slots=True)
class Rules:
    """A scheduler, as the settings want it."""

    filters: tuple[Filter, ...]
    weighers: tuple[Weigher, ...]
    options: Options = Options()
    costs: tuple[Cost, ...] = ()
    """Of the scheduler `least_cost`, which has costs where the filter scheduler has weighers."""
    chance: Callable[[int], int] = secrets.randbelow
    """One of the numbers from 0 up to the one given, without it; each as likely as the others."""
    host_filters: Mapping[str, Filter] = field(default_factory=dict)
    """The host filters of the schedulers that have one, by name; empty: the bundled ones."""
    sees: Sees = Sees.NOTHING
    """The servers whose owners the scheduler itself reads."""

    def seen(self) -> Sees:
        """Return the servers whose owners the scheduler or one of its rules reads."""
        weighing = [self.sees, *(rule.sees for rule in self.weighers), *(cost.sees for cost in self.costs)]
        return max([self.kept(), *weighing])

    def kept(self) -> Sees:
        """Return the servers by whose owners a filter removes nodes; others coming there make a choice void."""
        return max((rule.sees for rule in (*self.filters, *self.host_filters.values())), default=Sees.NOTHING)

    def applied(self, spec: Spec) -> "Rules":
        """The same without the weighers that have no say in this request."""
        weighers = tuple(rule for rule in self.weighers if rule.when is None or rule.when(spec))
        return self if len(weighers) == len(self.weighers) else replace(self, weighers=weighers)
