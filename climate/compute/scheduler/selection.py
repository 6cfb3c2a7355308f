"""A selection: one run of a scheduler, in which a fault of an installed part refuses the request and nothing else."""

import logging

from climate.compute.errors import ComputeError, NoValidHost
from climate.compute.request import Spec
from climate.compute.scheduler.hosts import Hosts
from climate.compute.scheduler.plan import Plan, Schedule
from climate.compute.scheduler.rules import Rules

log = logging.getLogger(__name__)


def run(schedule: Schedule, hosts: Hosts, spec: Spec, count: int, rules: Rules) -> Plan:
    """Return the plan of the scheduler for `count` servers.  Consumes `hosts`.

    Raises what the scheduler raises, and NoValidHost when a filter, weigher or
    cost function fails: the parts of other packages are no reason to answer 500.
    """
    try:
        return schedule(hosts, spec, count, rules)
    except ComputeError:
        raise
    except Exception as reason:
        log.exception("scheduling failed")
        raise NoValidHost(
            f"No valid host was found. A part of the scheduler failed: {type(reason).__name__}."
        ) from reason
