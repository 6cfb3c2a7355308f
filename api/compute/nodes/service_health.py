"""Health of the bundled cloud's services, judged by their last reports.  Checks name no host."""

from collections.abc import Iterator

from climate.compute import Compute
from climate.compute.models.node import Liveness
from climate.compute.nodes import services
from climate.service.process_health import Check, since, time_text
from climate.store import db_errors

POLLS = 3
"""Poll periods without a poll after which the check fails."""

LEAST_SECONDS = 60.0
"""Minimum of that time in seconds."""


def checks(compute: Compute) -> list[Check]:
    """Return the checks of compute services, network services and the polls of child zones; none without a database."""
    try:
        reports = services.reports(compute)
    except db_errors.ERRORS:
        return []
    result = [*_services("compute", reports.of_compute), *_services("network", reports.of_network)]
    if reports.children:
        polled = reports.polled
        longest = max(LEAST_SECONDS, POLLS * compute.zones.poll_seconds)
        ok = polled is None or (reports.now - polled).total_seconds() <= longest
        message = f"no child zone was polled {since(polled)}: start `climate poller`"
        result.append(Check("zones", ok, "polled" if ok else message))
    return result


def _services(name: str, liveness: Liveness) -> Iterator[Check]:
    """Yield a check that fails when all services are silent; `compute service list` shows a single silent one."""
    silent, command = liveness.known - liveness.up, "service list" if name == "compute" else "network hosts"
    if not liveness.known:
        return
    if not liveness.up:
        message = f"no {name} service is heard of {since(liveness.last)}: start `climate worker` on its machine"
        yield Check(name, False, message)
    elif silent and liveness.longest is not None:
        message = f"{silent} of {liveness.known} {name} services are silent, one since {time_text(liveness.longest)}"
        yield Check(name, True, f"{message}: see `climate {command}`", warns=True)
    else:
        yield Check(name, True, f"{liveness.up} heard of")
