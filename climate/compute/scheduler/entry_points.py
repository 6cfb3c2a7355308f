"""Schedulers, filters and weighers by name: settings can name each installed entry point of three groups.

The bundled ones are loaded the same way. An entry point of `climate.schedulers` is a Schedule or a Scheduler
(climate.compute.scheduler.placement_plan), one of `climate.scheduler_filters` a Filter, and one of
`climate.scheduler_weighers` a Weigher (climate.compute.scheduler.scheduler_parts).
"""

import logging
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from climate.compute.errors import (
    ComputeError,
    SchedulerHostFilterNotFound,
    SchedulerNotFound,
    SchedulerWeigherNotFound,
)
from climate.compute.scheduler import installed_parts
from climate.compute.scheduler.filters import FILTERS, WITH_CORES
from climate.compute.scheduler.filters.reservation import RESERVATION
from climate.compute.scheduler.placement_plan import Scheduler
from climate.compute.scheduler.scheduler_parts import Filter, Options, Rules, Weigher
from climate.compute.scheduler.third_party import ThirdPartyScheduler
from climate.compute.scheduler.weighers import WEIGHERS

SCHEDULER_GROUP = "climate.schedulers"
FILTER_GROUP, WEIGHER_GROUP = "climate.scheduler_filters", "climate.scheduler_weighers"

log = logging.getLogger(__name__)


def rules(filters: Sequence[str], weighers: Sequence[str], options: Options, *, cores: bool = False) -> Rules:
    """Return the rules of a filter scheduler with these filters and weighers in order, or the default ones.

    `cores`: CoreFilter is one of the default filters.

    ReservationFilter is always added in front if it is missing, because it protects reserved nodes. Raise
    SchedulerHostFilterNotFound and SchedulerWeigherNotFound with all unknown names and the known ones, and ComputeError
    for invalid options.
    """
    if options.max_attempts < 1:
        raise ComputeError("Invalid value for 'scheduler_max_attempts', must be >= 1")
    default = WITH_CORES if cores else FILTERS
    chosen = _named(FILTER_GROUP, Filter, filters, SchedulerHostFilterNotFound) if filters else default
    if RESERVATION.name not in [rule.name for rule in chosen]:
        chosen = (RESERVATION, *chosen)
    weighing = _named(WEIGHER_GROUP, Weigher, weighers, SchedulerWeigherNotFound) if weighers else WEIGHERS
    return Rules(chosen, weighing, options)


def scheduler(name: str) -> Scheduler:
    """Return the installed scheduler of that name; a third-party one is wrapped (see ThirdPartyScheduler).

    Raise SchedulerNotFound if it is not installed or not a scheduler.
    """
    part = installed_parts.named(SCHEDULER_GROUP, "Scheduler", [name], SchedulerNotFound)[name]
    result = part if isinstance(part, Scheduler) else Scheduler(part)
    if not callable(result.schedule):
        raise SchedulerNotFound(f"Scheduler {name} is installed, but is not a scheduler")
    if (getattr(result.schedule, "__module__", None) or "").startswith("climate."):
        return result
    return replace(result, schedule=ThirdPartyScheduler(name, result.schedule))


def _named(group: str, kind: type[object], names: Sequence[str], refusal: type[ComputeError]) -> tuple[Any, ...]:
    """Return the parts of these names, without duplicates."""
    what = f"Scheduler {kind.__name__}"
    result = installed_parts.named(group, what, names, refusal)
    wrong = [name for name, part in result.items() if not isinstance(part, kind)]
    if wrong:
        raise refusal(f"{what} {', '.join(wrong)} is installed, but is not a {kind.__name__}")
    return tuple(result.values())


def ratios(text: str) -> tuple[tuple[str, float], ...]:
    """Return (metric, ratio) pairs of `idle=1, user=-0.5`; log a warning for malformed entries and skip them."""
    result = []
    for entry in filter(None, (part.strip() for part in text.split(","))):
        name, _, number = entry.partition("=")
        ratio = _number(number)
        if name.strip() and ratio is not None:
            result.append((name.strip(), ratio))
        else:
            log.warning("Invalid metrics weight setting %r: it must be like 'name=1.0'", entry)
    return tuple(result)


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
