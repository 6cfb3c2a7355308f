"""Filter scheduler: filter, weigh, choose and count, one server after the other."""

from climate.compute.errors import ComputeHostMetricNotFound, NoValidHost
from climate.compute.models.request import Spec
from climate.compute.scheduler.decisions import log
from climate.compute.scheduler.decisions.record import Record, begun
from climate.compute.scheduler.filtering.node_selection import Search
from climate.compute.scheduler.hosts.table import Hosts
from climate.compute.scheduler.placement_plan import Plan, Scheduler
from climate.compute.scheduler.scheduler_parts import Rules

REASON = "No valid host was found. There are not enough hosts available."


def select(hosts: Hosts, spec: Spec, count: int, rules: Rules) -> Plan:
    """Return a node for each of `count` servers, each chosen after the previous one was counted.

    Results equal those of filtering and weighing all nodes again for every server; only changed parts are recomputed.
    Consumes `hosts`. Raise NoValidHost, with the trail but no node names in its text, if a server finds no node;
    BadRequest for hints and image properties that a filter cannot parse.
    """
    rules = rules.applied(spec)
    for rule in rules.filters:
        if rule.check:
            rule.check(hosts, spec)
    record = begun(hosts, spec, count, rules)
    search = Search(hosts, spec, rules, record)
    picks = []
    for number in range(count):
        try:
            pick = search.pick(number)
        except ComputeHostMetricNotFound as reason:
            record.refused = "weighers"
            raise ComputeHostMetricNotFound(str(reason), trail=record.trail(), found=number) from None
        if pick is None:
            log.too_few(number, count)
            raise NoValidHost(refusal(spec, count, record), trail=record.trail(), found=number)
        picks.append(pick)
    return Plan(tuple(picks), record.trail())


def refusal(spec: Spec, count: int, record: Record, reason: str = REASON) -> str:
    """Return the reason of a refusal for the requesting user."""
    size = f"{spec.vcpus} vCPUs, {spec.ram_mb} MB of memory, {spec.disk_mb} MB of disk"
    flavor = f" of flavor {spec.flavor.name}" if spec.flavor else ""
    zone = f" in availability zone {spec.zone}" if spec.zone else ""
    lent = f" in reservation {', '.join(spec.pools)}" if spec.pools else ""
    message = f"{spec.slots.usage} " if spec.slots else ""
    result = f", {len(record.picks)} of them could be placed" if record.picks else ""
    return (
        f"{reason} Asked for: {count} server{'s' if count > 1 else ''}{flavor} ({size}){zone}{lent}{result}. "
        f"{message}{_cause(record)}"
    )


def _cause(record: Record) -> str:
    if record.refused == Search.NO_HOSTS:
        return "There are no hosts." if not len(record.hosts) else "No host matches the given names."
    return f"The filter '{record.refused}' left no host."


FILTER = Scheduler(select, filters=True)
"""Filter scheduler as an entry point."""
