"""Build under the filter scheduler: its candidate nodes, and the best of them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from climate.compute.models.request import Spec
from climate.compute.scheduler.decisions import log
from climate.compute.scheduler.decisions import record as decision_record
from climate.compute.scheduler.decisions.record import LISTED, Record, Weighed
from climate.compute.scheduler.filtering.weight_cache import Places, Weights, best, weights
from climate.compute.scheduler.filters.affinity import APART, TOGETHER
from climate.compute.scheduler.filters.location import forced, in_question
from climate.compute.scheduler.filters.reservation import RESERVATION
from climate.compute.scheduler.hosts.table import Hosts, Mask
from climate.compute.scheduler.placement_plan import Pick
from climate.compute.scheduler.scheduler_parts import Again, Filter, Rules, limits

NOT_WEIGHED: Weighed = ([], [], 0.0)


@dataclass(slots=True)
class Search:
    """Candidate nodes of a build, and their cached weights.

    Between two servers of a build only the chosen node and its server group change. Only filters that depend on them
    run again, most of them on that one node. Weights are cached and normalised again for each server.
    """

    NO_HOSTS: ClassVar[str] = "hosts"

    hosts: Hosts
    spec: Spec
    rules: Rules
    record: Record
    among: Places = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    weights: Weights | None = None
    """None before the first weighing."""
    taken: Hosts | None = None
    """Chosen node of the previous server, as a table of its own that reflects the counted server."""
    at: int | None = None
    """Index of that node in `among`; None: a filter removed it."""
    stages: list[log.Stage] = field(default_factory=list)
    """Results of the filters for the current server."""

    def pick(self, number: int) -> Pick | None:
        """Return the node for server `number`, counted; None, with the filter noted, if none is left.

        Raise ComputeHostMetricNotFound.
        """
        left = self._sift() if self.taken is None else self._sift_again(self.taken)
        if not left:
            log.all_removed(self.spec, number, self.stages)
            return None
        self.at, weighed = self._choose()
        index = int(self.among[self.at])
        log.selected(self.hosts, index, weighed[2])
        self.record.picks.append((index, weighed))
        self.taken = self.hosts.row(index)
        return self._take(index, self.taken, weighed[2])

    @property
    def _filters(self) -> tuple[Filter, ...]:
        if not self.spec.forced:
            return self.rules.filters
        # Nova checks a group's policy on the compute node too, even for a forced host.
        return (RESERVATION, *(rule for rule in (APART, TOGETHER) if self.spec.group is not None))

    def _sift(self) -> bool:
        """Apply all filters to all nodes; return whether any is left."""
        mask = self._considered()
        start = self.record.considered = int(np.count_nonzero(mask))
        self._start(start)
        self.record.refused = None if start else self.NO_HOSTS
        for rule in self._filters if start else ():
            before, mask = mask, mask & rule.keep(self.hosts, self.spec, self.rules.options)
            end = int(np.count_nonzero(mask))
            gone = self._gone(rule, before & ~mask) if end < start else []
            self.record.filters.append(decision_record.stage(rule, start, end, gone))
            self._log_result(rule, start, end, mask)
            start = end
            if not end:
                self.record.refused = rule.name
                break
        self.among = np.flatnonzero(mask)
        return start > 0

    def _start(self, count: int) -> None:
        self.stages = []
        log.starting(count)

    def _log_result(self, rule: Filter, start: int, end: int, among: Places | Mask) -> None:
        """Log the result of a filter."""
        self.stages.append((rule.name, start, end, log.remaining(self.hosts, among)))
        log.returned(rule.name, end)

    def _considered(self) -> Mask:
        """Return the nodes that the request does not exclude by name."""
        log.ignoring(self.spec.ignore_hosts)
        mask = in_question(self.hosts, self.spec)
        if not self.spec.forced:
            return mask
        mask &= forced(self.hosts, self.spec)
        log.forcing("hosts", self.spec.force_hosts, self.hosts.service_hosts[mask][:LISTED])
        log.forcing("nodes", self.spec.force_nodes, self.hosts.names[mask][:LISTED])
        return mask

    def _gone(self, rule: Filter, gone: Mask) -> list[dict[str, str]]:
        removed = decision_record.removed(self.hosts, self.spec, self.rules.options, rule, gone)
        if log.debugging():
            for index, entry in zip(np.flatnonzero(gone).tolist(), removed, strict=False):
                log.took_out(self.hosts, index, entry["why"])
        return removed

    def _sift_again(self, taken: Hosts) -> bool:
        """Apply the filters whose results may have changed; return whether any node is left."""
        self._start(len(self.among))
        for rule in self._filters:
            if not rule.changes(self.spec):
                continue
            start, stays = len(self.among), self._stays(rule, taken)
            if stays is not None:
                self._drop(rule, stays)
            self._log_result(rule, start, len(self.among), self.among)
            if not len(self.among):
                self.record.refused = rule.name
                return False
        if self.weights is not None:
            self.weights.renew(self.at, taken, self.hosts, self.among, self.spec)
        return True

    def _stays(self, rule: Filter, taken: Hosts) -> Mask | None:
        """Return which nodes still pass; None: all."""
        options = self.rules.options
        if rule.again is Again.ALL:
            stays = rule.keep(self.hosts, self.spec, options)[self.among]
            return None if stays.all() else stays
        if self.at is None or rule.keep(taken, self.spec, options)[0]:
            return None
        stays = np.ones(len(self.among), dtype=np.bool_)
        stays[self.at] = False
        return stays

    def _drop(self, rule: Filter, stays: Mask) -> None:
        gone = np.zeros(len(self.hosts), dtype=np.bool_)
        gone[self.among[~stays]] = True
        start, self.among = len(self.among), self.among[stays]
        self.record.fell(decision_record.stage(rule, start, len(self.among), self._gone(rule, gone)))
        if self.weights is not None:
            self.weights.keep(stays)
        if self.at is not None:
            self.at = int(np.count_nonzero(stays[: self.at])) if stays[self.at] else None

    def _choose(self) -> tuple[int, Weighed]:
        """Return the index in `among` of the chosen node, and its weight; several best ones are chosen
        from at random.
        """
        log.filtered(self.hosts, self.among[: log.SHOWN].tolist(), len(self.among))
        if len(self.among) == 1:
            self._record_weights([0], [NOT_WEIGHED])
            return 0, NOT_WEIGHED
        if self.weights is None:
            self.weights = weights(self.hosts, self.among, self.spec, self.rules)
        totals = self.weights.totals(len(self.among))
        few = best(totals, min(self.rules.options.host_subset_size, len(totals)))
        if not self.record.picks or log.debugging():
            order = best(totals, min(LISTED, len(totals)))
            self._record_weights(order, [self.weights.of(at, float(totals[at])) for at in order])
        at = few[self.rules.chance(len(few))] if len(few) > 1 else few[0]
        return at, self.weights.of(at, float(totals[at]))

    def _record_weights(self, order: Sequence[int], weighed: list[Weighed]) -> None:
        """Record the best nodes, best first, for the first server; log them for each."""
        listed = list(zip(self.among[order].tolist(), weighed, strict=True))
        if not self.record.picks:
            self.record.weighed = listed
        log.weighed_all(self.hosts, [(index, entry[2]) for index, entry in listed], len(self.among))

    def _take(self, index: int, row: Hosts, weight: float) -> Pick:
        """Count a server on the node in the table, its group and its owner's servers."""
        hosts, node_id = self.hosts, int(self.hosts.ids[index])
        kept = limits(self._filters, row, self.spec, self.rules.options)
        pick = Pick(node_id, str(hosts.names[index]), str(hosts.service_hosts[index]), kept, weight)
        hosts.consume(index, self.spec)
        self.spec = self.spec.joined_by(node_id)
        return pick
