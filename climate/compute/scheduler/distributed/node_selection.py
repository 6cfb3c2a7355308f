"""Build under the distributed scheduler: its candidate nodes and their costs, as in Nova's least_cost.

The trail is that of the filter scheduler (climate.compute.scheduler.decisions.record) with `scheduler`: "least_cost".
Its weighers are costs here, so lower is better.
"""

from dataclasses import dataclass, field, replace

import numpy as np

from climate.compute.errors import ComputeHostMetricNotFound
from climate.compute.models.request import Spec
from climate.compute.scheduler.decisions import log
from climate.compute.scheduler.decisions import record as decision_record
from climate.compute.scheduler.decisions.record import LISTED, Record, Weighed
from climate.compute.scheduler.distributed import host_filters
from climate.compute.scheduler.distributed.costs import normalised, total
from climate.compute.scheduler.filtering.node_selection import Search
from climate.compute.scheduler.filters.location import forced, in_question
from climate.compute.scheduler.filters.mandatory import MANDATORY_FILTERS
from climate.compute.scheduler.filters.reservation import RESERVATION
from climate.compute.scheduler.hosts.table import Hosts, Mask, Numbers
from climate.compute.scheduler.placement_plan import Pick
from climate.compute.scheduler.scheduler_parts import Again, Filter, Options, Rules, limits


@dataclass(slots=True)
class Priced:
    """Candidate nodes and their costs, kept between the servers of a build.

    Filters and cost functions evaluate each row alone, so after a pick only the chosen node is evaluated again.
    """

    hosts: Hosts
    spec: Spec
    rules: Rules
    filters: tuple[Filter, ...]
    mask: Mask
    raw: list[Numbers]
    record: Record
    picks: list[Pick] = field(default_factory=list)
    stages: list[log.Stage] = field(default_factory=list)
    """For the log: the nodes that the filters left, and each one removed since."""

    def pick(self) -> None:
        """Return the cheapest node, the first of equals, and count a server on it.

        Raise ComputeHostMetricNotFound if the cost of a candidate is not a number.
        """
        among = np.flatnonzero(self.mask)
        raw = [column[among] for column in self.raw]
        for cost, column in zip(self.rules.costs, raw, strict=True):
            if not np.isfinite(column).all():
                raise ComputeHostMetricNotFound(f"The cost '{cost.name}' is not a number for a host.")
        columns = [normalised(column) for column in raw]
        costs = total(self.rules.costs, columns)

        def weighed(at: int) -> Weighed:
            return [float(column[at]) for column in raw], [float(column[at]) for column in columns], float(costs[at])

        if not self.picks:
            order = np.argsort(costs, kind="stable")[:LISTED].tolist()
            self.record.weighed = [(int(among[at]), weighed(at)) for at in order]
        cheapest = int(np.argmin(costs))
        self._take(int(among[cheapest]), weighed(cheapest))

    def sort(self) -> None:
        """Sort the picks and their records by cost, cheapest first."""
        order = sorted(range(len(self.picks)), key=lambda number: self.picks[number].weight)
        self.picks = [self.picks[number] for number in order]
        self.record.picks = [self.record.picks[number] for number in order]
        later = self.record.later
        self.record.later = {new: later[old] for new, old in enumerate(order) if old in later}

    def _take(self, index: int, weighed: Weighed) -> None:
        hosts, options = self.hosts, self.rules.options
        kept = limits(self.filters, hosts.row(index), self.spec, options)
        names = str(hosts.names[index]), str(hosts.service_hosts[index])
        self.picks.append(Pick(int(hosts.ids[index]), *names, kept, weighed[2]))
        self.record.picks.append((index, weighed))
        log.selected(hosts, index, weighed[2])
        hosts.consume(index, self.spec)
        self.spec = self.spec.joined_by(int(hosts.ids[index]))
        self._reprice(index)

    def _reprice(self, index: int) -> None:
        row, options = self.hosts.row(index), self.rules.options
        for rule in self.filters:
            if rule.changes(self.spec) and not rule.keep(row, self.spec, options)[0]:
                self._drop(rule, index)
                return
        for cost, column in zip(self.rules.costs, self.raw, strict=True):
            column[index] = cost.of(row, self.spec)[0]

    def _drop(self, rule: Filter, index: int) -> None:
        before = self.mask.copy()
        self.mask[index] = False
        self.record.fell(self._stage(rule, before, self.mask))
        if not self.mask.any():
            self.record.refused = rule.name

    def _stage(self, rule: Filter, before: Mask, after: Mask) -> dict[str, object]:
        gone = decision_record.removed(self.hosts, self.spec, self.rules.options, rule, before & ~after)
        start, end = int(np.count_nonzero(before)), int(np.count_nonzero(after))
        log.returned(rule.name, end)
        self.stages.append((rule.name, start, end, log.remaining(self.hosts, after)))
        return decision_record.stage(rule, start, end, gone)

    def sift(self) -> None:
        """Apply the filters in order until one leaves no node."""
        self.record.considered = int(np.count_nonzero(self.mask))
        self.record.refused = None if self.record.considered else Search.NO_HOSTS
        for rule in self.filters:
            if not self.mask.any():
                return
            before, self.mask = self.mask, self.mask & rule.keep(self.hosts, self.spec, self.rules.options)
            self.record.filters.append(self._stage(rule, before, self.mask))
            self.record.refused = None if self.mask.any() else rule.name


def begun(hosts: Hosts, spec: Spec, count: int, rules: Rules) -> Priced:
    """Return a build after its first filtering. Raise BadRequest for an unknown host filter.

    A forced host skips all filters except the reservation filter, and then there are no limits, as under the filter
    scheduler.
    """
    own = (*MANDATORY_FILTERS, FREE_MEMORY, host_filters.chosen(spec, rules))
    record = decision_record.begun(hosts, spec, count, replace(rules, weighers=()))
    record.weighers = tuple({"name": cost.name, "multiplier": cost.weight} for cost in rules.costs)
    raw = [np.array(cost.of(hosts, spec), dtype=np.float64) for cost in rules.costs]
    mask = forced(hosts, spec) & in_question(hosts, spec)
    build = Priced(hosts, spec, rules, (RESERVATION,) if spec.forced else own, mask, raw, record)
    build.sift()
    return build


def has_free_memory(hosts: Hosts, spec: Spec, options: Options) -> Mask:
    """Return the nodes with enough unallocated memory; the distributed scheduler never overcommits it."""
    return np.asarray(hosts.free_ram_mb >= spec.ram_mb, dtype=np.bool_)


def _why(hosts: Hosts, spec: Spec, options: Options, index: int) -> str:
    return f"has {hosts.free_ram_mb[index]:g} MB of memory free; {spec.ram_mb} MB are asked for."


def _memory(hosts: Hosts, spec: Spec, options: Options) -> Numbers:
    return hosts.ram_mb


FREE_MEMORY = Filter("FreeMemoryFilter", has_free_memory, Again.ROW, _why, limit=("memory_mb", _memory))
