"""Run of a scheduler with notifications at its start and its end.

A failure of an installed filter, weigher or scheduler only refuses the request.
"""

import logging
from collections.abc import Callable, Mapping

from climate.compute.errors import ComputeError, NoValidHost
from climate.compute.models.request import Spec
from climate.compute.scheduler.decisions import record
from climate.compute.scheduler.hosts.table import Hosts
from climate.compute.scheduler.placement_plan import Plan, Schedule
from climate.compute.scheduler.scheduler_parts import Rules

log = logging.getLogger(__name__)

START, END = "scheduler.select_destinations.start", "scheduler.select_destinations.end"

Tell = Callable[[str, Mapping[str, object]], None]
"""(START or END, {"request_spec": …}); END also has `hosts`, one {host, nodename, limits} per server, or `error`."""


def silent(kind: str, body: Mapping[str, object]) -> None:
    """Send no notification."""


def run(schedule: Schedule, hosts: Hosts, spec: Spec, asked: tuple[int, Rules], tell: Tell = silent) -> Plan:
    """Return the scheduler's plan for `count` servers under these rules. Consumes `hosts`.

    Raise what the scheduler raises, and NoValidHost if a filter, weigher or cost function fails, so that a third-party
    part never causes a 500.
    """
    if tell is silent:
        return _guarded(schedule, hosts, spec, asked)
    details = {"request_spec": request_spec(spec, asked[0])}
    tell(START, details)
    try:
        plan = _guarded(schedule, hosts, spec, asked)
    except ComputeError as reason:
        tell(END, {**details, "error": str(reason)})
        raise
    chosen = [{"host": pick.service_host, "nodename": pick.node, "limits": dict(pick.limits)} for pick in plan.picks]
    tell(END, {**details, "hosts": chosen})
    return plan


def request_spec(spec: Spec, count: int) -> dict[str, object]:
    """Return a request as plain values. Sizes: MB."""
    return {
        **record.request_fields(spec, count),
        "num_instances": count,
        "project_id": spec.project_id,
        "user_id": spec.user_id,
        "reservation_id": spec.build_id,
        "instance_uuids": list(spec.server_ids[:count]),
        "image_id": spec.image_id,
        "scheduler_hints": dict(spec.hints),
    }


def _guarded(schedule: Schedule, hosts: Hosts, spec: Spec, asked: tuple[int, Rules]) -> Plan:
    try:
        return schedule(hosts, spec, *asked)
    except ComputeError:
        raise
    except Exception as reason:
        log.exception("scheduling failed")
        message = f"No valid host was found. A part of the scheduler failed: {type(reason).__name__}."
        raise NoValidHost(message) from reason
