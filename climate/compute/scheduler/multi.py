"""One scheduler for each kind of request."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from climate.compute.models.request import Spec
from climate.compute.scheduler.hosts.table import Hosts
from climate.compute.scheduler.placement_plan import Plan, Schedule, Scheduler
from climate.compute.scheduler.scheduler_parts import Rules

BOOT, RESERVE, RESIZE, UNSHELVE, MIGRATE = "boot", "reserve", "resize", "unshelve", "migrate"
KINDS = (BOOT, RESERVE, RESIZE, UNSHELVE, MIGRATE)
"""New servers; servers of leases; servers that need more room on their node; shelved servers that come back; servers
that leave their node."""


@dataclass(frozen=True, slots=True)
class Multi:
    """The scheduler `multi`: for each kind of request a scheduler with the rules that it goes by."""

    of: Mapping[str, tuple[Schedule, Rules]] = field(default_factory=dict)

    def __call__(self, hosts: Hosts, spec: Spec, count: int, rules: Rules) -> Plan:
        """Return the plan of the scheduler for new servers; the others are found by `scheduler_of`."""
        schedule, own = self.of[BOOT]
        return schedule(hosts, spec, count, own)


def scheduler_of(kind: str, schedule: Schedule, rules: Rules) -> tuple[Schedule, Rules]:
    """Return the scheduler for one kind of request, with its rules; all but `multi` serve every kind."""
    return schedule.of[kind] if isinstance(schedule, Multi) else (schedule, rules)


MULTI = Scheduler(Multi())
"""The scheduler as it is installed; the settings say what it is made of."""
