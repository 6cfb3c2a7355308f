"""Scheduler `multi`: one scheduler for each kind of request."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from climate.compute.models.request import Spec
from climate.compute.scheduler.hosts.table import Hosts
from climate.compute.scheduler.placement_plan import Plan, Schedule, Scheduler
from climate.compute.scheduler.scheduler_parts import Rules

BOOT, RESERVE, RESIZE, UNSHELVE, MIGRATE = "boot", "reserve", "resize", "unshelve", "migrate"
KINDS = (BOOT, RESERVE, RESIZE, UNSHELVE, MIGRATE)
"""New servers; servers of leases; resized servers; unshelved servers; migrated servers."""


@dataclass(frozen=True, slots=True)
class Multi:
    """Scheduler `multi`: a scheduler and its rules for each kind of request."""

    of: Mapping[str, tuple[Schedule, Rules]] = field(default_factory=dict)

    def __call__(self, hosts: Hosts, spec: Spec, count: int, rules: Rules) -> Plan:
        """Return the plan of the scheduler for new servers; `scheduler_of` returns the others."""
        schedule, own = self.of[BOOT]
        return schedule(hosts, spec, count, own)


def scheduler_of(kind: str, schedule: Schedule, rules: Rules) -> tuple[Schedule, Rules]:
    """Return the scheduler and its rules for one kind of request; any scheduler but `multi` serves all kinds."""
    return schedule.of[kind] if isinstance(schedule, Multi) else (schedule, rules)


MULTI = Scheduler(Multi())
"""Scheduler `multi` as an entry point; its parts come from settings."""
