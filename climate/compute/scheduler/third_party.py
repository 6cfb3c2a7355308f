"""Third-party schedulers: they get the nodes that a request may use, and their results are validated."""

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from climate.compute.errors import ComputeError, NoValidHost
from climate.compute.models.request import Spec
from climate.compute.scheduler.decisions import record as decision_record
from climate.compute.scheduler.decisions.record import Record
from climate.compute.scheduler.filtering.node_selection import Search
from climate.compute.scheduler.filtering.scheduler import refusal
from climate.compute.scheduler.filters.location import forced, in_question
from climate.compute.scheduler.filters.mandatory import MANDATORY_FILTERS
from climate.compute.scheduler.filters.reservation import RESERVATION
from climate.compute.scheduler.hosts.table import Hosts
from climate.compute.scheduler.placement_plan import Pick, Plan, Schedule, Trail
from climate.compute.scheduler.scheduler_parts import Rules

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ThirdPartyScheduler:
    """Scheduler of another package, under the name of its entry point."""

    name: str
    schedule: Schedule

    def __call__(self, hosts: Hosts, spec: Spec, count: int, rules: Rules) -> Plan:
        """Return its plan for `count` servers.

        It gets only the nodes that pass the mandatory filters. Raise NoValidHost if it finds too few nodes, fails, or
        returns nodes outside of them; BadRequest if the scheduler raises it.
        """
        record = decision_record.begun(hosts, spec, count, replace(rules, weighers=()))
        there = _open(hosts, spec, rules, record)
        trail: Trail = {}
        try:
            if not len(there):
                raise NoValidHost(refusal(spec, count, record))
            plan = self._scheduled(there, spec, count, rules)
            trail = plan.trail
            picks = _checked(self.name, there, plan, count)
        except NoValidHost as none:
            raise NoValidHost(str(none), trail=self._trail(record, none.trail or trail), found=none.found) from None
        indexes = np.searchsorted(hosts.ids, [pick.node_id for pick in picks]).tolist()
        record.picks = [(index, ([], [], pick.weight)) for index, pick in zip(indexes, picks, strict=True)]
        return Plan(picks, self._trail(record, trail))

    def _scheduled(self, hosts: Hosts, spec: Spec, count: int, rules: Rules) -> Plan:
        try:
            plan = self.schedule(hosts, spec, count, rules)
            return Plan(tuple(plan.picks), plan.trail)
        except ComputeError:
            raise
        except Exception as reason:
            log.exception("scheduler %s failed", self.name)
            raise NoValidHost(
                f"No valid host was found. The scheduler '{self.name}' failed: {type(reason).__name__}."
            ) from reason

    def _trail(self, record: Record, trail: Trail) -> Trail:
        """Return the record with the scheduler's own trail, if that is JSON."""
        own: dict[str, Any] = {**record.trail(), "scheduler": self.name}
        if not trail or not isinstance(trail, Mapping):
            return own
        stages = trail.get("filters")
        merged: dict[str, object] = {**trail, **own, "filters": [*own["filters"], *(stages or ())]}
        merged |= {name: trail[name] for name in ("weighed", "weighers", "refused") if name in trail}
        try:
            json.dumps(merged, allow_nan=False)
        except (TypeError, ValueError):
            log.warning("trail of scheduler %s dropped: not JSON", self.name)
            return own
        return merged


def _open(hosts: Hosts, spec: Spec, rules: Rules, record: Record) -> Hosts:
    """Return the nodes that pass the mandatory filters."""
    mask = forced(hosts, spec) & in_question(hosts, spec)
    record.considered = int(np.count_nonzero(mask))
    record.refused = None if record.considered else Search.NO_HOSTS
    for rule in (RESERVATION,) if spec.forced else MANDATORY_FILTERS:
        if not mask.any():
            break
        before, mask = mask, mask & rule.keep(hosts, spec, rules.options)
        gone = decision_record.removed(hosts, spec, rules.options, rule, before & ~mask)
        start, end = int(np.count_nonzero(before)), int(np.count_nonzero(mask))
        record.filters.append(decision_record.stage(rule, start, end, gone))
        record.refused = None if end else rule.name
    return hosts.where(mask)


def _checked(name: str, hosts: Hosts, plan: Plan, count: int) -> tuple[Pick, ...]:
    """Return the picks with the node names of the table.

    Raise NoValidHost for a wrong number of picks, unknown nodes or invalid weights.
    """
    if len(plan.picks) != count:
        raise NoValidHost(f"No valid host was found. The scheduler '{name}' chose {len(plan.picks)} nodes for {count}.")
    indexes = {int(node_id): index for index, node_id in enumerate(hosts.ids.tolist())}
    picks = []
    for pick in plan.picks:
        index = indexes.get(pick.node_id)
        if index is None or not np.isfinite(pick.weight):
            raise NoValidHost(f"No valid host was found. The scheduler '{name}' chose a node that it may not use.")
        node, host = str(hosts.names[index]), str(hosts.service_hosts[index])
        picks.append(replace(pick, node=node, service_host=host, weight=float(pick.weight)))
    return tuple(picks)
