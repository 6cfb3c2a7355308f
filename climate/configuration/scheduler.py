"""Settings of the scheduler; SettingError names the invalid value and the valid ones."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from climate.compute.context import TRUSTED
from climate.compute.errors import ComputeError
from climate.compute.nodes.attestation import AttestationService, Trust
from climate.compute.scheduler import entry_points
from climate.compute.scheduler.distributed import costs, host_filters
from climate.compute.scheduler.filters.mandatory import MANDATORY_FILTERS
from climate.compute.scheduler.multi import BOOT, KINDS, Multi
from climate.compute.scheduler.placement_plan import Schedule, Scheduler
from climate.compute.scheduler.scheduler_parts import Cost, Filter, Options, Rules
from climate.outbound import http_client
from climate.settings import SettingError, Settings

BUNDLED = ("filter", "least_cost", "host_filter", "chance", "availability_zone", "simple", "multi")
"""Bundled values of CLIMATE_SCHEDULER."""

T = TypeVar("T")


def chosen(settings: Settings) -> tuple[Schedule, Rules]:
    """Return the scheduler and its rules.

    It reads every setting, also those of other schedulers, so that errors
    appear at start-up and not when the scheduler is changed.
    """
    options = _options(settings)
    filters = _read(
        settings,
        "scheduler_filters",
        lambda text: entry_points.rules(_words(text), (), options, cores=settings.scheduler_core_filter).filters,
    )
    weighers = _read(
        settings, "scheduler_weighers", lambda text: entry_points.rules((), _words(text), options).weighers
    )
    _check_attestation(settings, filters)
    known = _read(settings, "scheduler_host_filters", lambda text: host_filters.load(_words(text)))
    options = replace(options, host_filter=_read(settings, "default_host_filter", lambda name: _known(name, known)))
    rules = Rules(filters, weighers, options, _read(settings, "least_cost_functions", _costs), host_filters=known)
    named = {kind: _bound(part, rules) for kind, part in _read(settings, "multi_schedulers", _by_kind).items()}
    scheduler = _read(settings, "scheduler", entry_points.scheduler)
    return (Multi(named), named[BOOT][1]) if isinstance(scheduler.schedule, Multi) else _bound(scheduler, rules)


def trust(settings: Settings) -> Trust:
    """Return the attestation client for compute services."""
    url, blob = settings.attestation_url, settings.attestation_auth_blob
    service = AttestationService(url, blob, settings.attestation_seconds) if url else None
    return Trust(service, settings.attestation_auth_timeout)


def _check_attestation(settings: Settings, filters: Sequence[Filter]) -> None:
    url = settings.attestation_url
    if url and not http_client.usable(url):
        raise SettingError(f"CLIMATE_ATTESTATION_URL={url!r}: it must be an http or https URL without a password in it")
    if not url and any(rule.name == TRUSTED for rule in filters):
        raise SettingError("CLIMATE_SCHEDULER_FILTERS: TrustedFilter needs CLIMATE_ATTESTATION_URL")


def _by_kind(text: str) -> Mapping[str, Scheduler]:
    """Return the scheduler of each kind of request, from `kind=name` entries; unnamed kinds have `filter`."""
    named = dict.fromkeys(KINDS, BUNDLED[0])
    for entry in _words(text):
        kind, _, name = (part.strip() for part in entry.partition("="))
        if kind not in KINDS or not name:
            raise ComputeError(f"{entry!r} must be one of {', '.join(KINDS)} and its scheduler, like boot=least_cost")
        if name == "multi":
            raise ComputeError(f"{entry!r}: the scheduler multi cannot be one of its own schedulers")
        named[kind] = name
    return {kind: entry_points.scheduler(name) for kind, name in named.items()}


def _bound(scheduler: Scheduler, rules: Rules) -> tuple[Schedule, Rules]:
    """Return a scheduler with its rules."""
    if not scheduler.filters:
        rules = replace(rules, filters=MANDATORY_FILTERS, weighers=())
    return scheduler.schedule, replace(rules, sees=scheduler.sees)


def _read(settings: Settings, name: str, understood: Callable[[str], T]) -> T:
    text = getattr(settings, name)
    try:
        return understood(text)
    except ComputeError as wrong:
        raise SettingError(f"CLIMATE_{name.upper()}={text!r}: {wrong}") from None


def _options(settings: Settings) -> Options:
    return Options(
        host_subset_size=settings.scheduler_host_subset_size,
        max_attempts=settings.scheduler_max_attempts,
        max_io_ops_per_host=settings.max_io_ops_per_host,
        max_instances_per_host=settings.max_instances_per_host,
        isolated_images=frozenset(_words(settings.isolated_images)),
        isolated_hosts=frozenset(_words(settings.isolated_hosts)),
        restrict_isolated=settings.restrict_isolated_hosts_to_isolated_images,
        ram_multiplier=settings.ram_weight_multiplier,
        io_ops_multiplier=settings.io_ops_weight_multiplier,
        metrics_multiplier=settings.metrics_weight_multiplier,
        soft_affinity_multiplier=settings.soft_affinity_weight_multiplier,
        soft_anti_affinity_multiplier=settings.soft_anti_affinity_weight_multiplier,
        metrics=entry_points.ratios(settings.metrics_weight_setting),
        metrics_required=settings.metrics_required,
        weight_of_unavailable=settings.metrics_weight_of_unavailable,
        default_zone=settings.default_availability_zone,
        schedule_zone=settings.default_schedule_zone or None,
        image_namespace=settings.aggregate_image_properties_isolation_namespace,
        image_separator=settings.aggregate_image_properties_isolation_separator,
        max_cores=settings.simple_max_cores,
        pci_aliases=_read(settings, "pci_aliases", _pci_aliases),
    )


def _pci_aliases(text: str) -> tuple[tuple[str, tuple[str, str]], ...]:
    result: dict[str, tuple[str, str]] = {}
    for entry in _words(text):
        product = re.fullmatch(r"([\w-]{1,64})\s*=\s*([0-9a-fA-F]{4}):([0-9a-fA-F]{4})", entry)
        if product is None or product[1] in result:
            raise ComputeError(f"{entry!r} must be an alias, once, and the device that it is, like gpu=10de:20b0")
        result[product[1]] = product[2].lower(), product[3].lower()
    return tuple(result.items())


def _words(text: str) -> tuple[str, ...]:
    """Return the words between commas."""
    return tuple(word for part in text.split(",") if (word := part.strip()))


def _known(name: str, known: Mapping[str, Filter]) -> str:
    host_filters.named(name, known)
    return name


def _costs(text: str) -> tuple[Cost, ...]:
    result = costs.load([_weighted(entry) for entry in _words(text)])
    if not result:
        raise ComputeError("at least one cost function is needed, like noop_cost_fn=1")
    return result


def _weighted(entry: str) -> tuple[str, float]:
    """Return the name and the weight of `name=weight`; a function without a weight is an error."""
    name, _, number = (part.strip() for part in entry.partition("="))
    try:
        weight = float(number)
    except ValueError:
        weight = math.nan
    if not name or not math.isfinite(weight):
        raise ComputeError(f"{entry!r} must be a cost function and its weight, like noop_cost_fn=1")
    return name, weight
