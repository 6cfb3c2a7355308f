"""Prometheus metrics: requests of all web processes, and metrics of the engine from the database."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric

from api.ops.request_counters import Tally
from climate.context import Climate
from climate.domain.hosts.pools import Pool
from climate.service import broker_health, metrics
from climate.store import db_errors
from climate.store.hosts.pools import Count
from climate.store.hosts.power import Counted
from climate.store.metrics import Figures

Source = Callable[[], Iterable[Metric]]


class Scrape:
    """Collector of all metrics at one instant, in the form of the Prometheus library."""

    def __init__(self, climate: Climate, tally: Tally, cloud: Source) -> None:
        self._climate = climate
        self._tally = tally
        self._cloud = cloud

    def collect(self) -> Iterable[Metric]:
        """Yield requests first; a store that does not answer leaves its metrics out."""
        yield from self._tally.collect()
        result = metrics.read(self._climate)
        yield _gauge("climate_database_up", "Whether the database answers.", result is not None)
        if result:
            yield from _of_events(result.leases)
            yield from _of_pools(result.pools)
            yield from _of_power(result.power)
            yield from _of_cloud(self._cloud)
        yield from _of_queues(self._climate.settings.redis_url)


def text(climate: Climate, tally: Tally, cloud: Source) -> bytes:
    """Return the metrics in Prometheus's text format; `cloud` yields those of the bundled cloud."""
    registry = CollectorRegistry(auto_describe=False)
    scrape: Any = Scrape(climate, tally, cloud)
    registry.register(scrape)
    return generate_latest(registry)


def _of_events(figures: Figures) -> Iterator[Metric]:
    yield _gauge("climate_events_due", "Events that are due and not yet claimed, 100,000 at most.", figures.due)
    yield _gauge(
        "climate_events_oldest_due_seconds", "Seconds since the oldest unclaimed event was due.", figures.oldest_due
    )
    if figures.claimed_ago is not None:
        text = "Seconds since the last round of a poller."
        yield _gauge("climate_poller_claimed_ago_seconds", text, figures.claimed_ago)
    yield from _of_workers(figures)
    yield _gauge("climate_events_in_progress", "Events that workers are running.", figures.in_progress)
    yield _gauge("climate_events_retrying", "Open events with failed attempts.", figures.retrying)
    yield _gauge("climate_events_failed", "Events in ERROR.", figures.failed)
    yield _gauge("climate_leases_set_aside", "Leases with broken rows, whose events do not run.", figures.set_aside)
    held, planned = figures.preemptible
    yield _gauge("climate_hosts_preemptible", "Hosts that preemptible leases hold.", held)
    yield _gauge("climate_hosts_preemption_planned", "Hosts that are to be taken from preemptible leases.", planned)
    yield _gauge("climate_waiting_leases", "Leases in the waiting list.", figures.waiting)
    text = "Seconds for which the oldest lease of the waiting list has waited."
    yield _gauge("climate_waiting_oldest_seconds", text, figures.oldest_waiting)
    late = GaugeMetricFamily(
        "climate_events_lateness_seconds",
        "Seconds from due to claimed, of events claimed in the last five minutes.",
        labels=["quantile"],
    )
    for quantile, seconds in figures.lateness.items():
        late.add_metric([f"{quantile:g}"], seconds)
    yield late


def _of_workers(figures: Figures) -> Iterator[Metric]:
    """Yield the length of each queue that was ever read, also of one that no worker reads any more."""
    alive = GaugeMetricFamily("climate_queue_workers", "Workers that read a queue.", labels=["queue"])
    ago = GaugeMetricFamily(
        "climate_queue_read_ago_seconds", "Seconds since the last heartbeat of a worker.", labels=["queue"]
    )
    for name, (count, seconds) in figures.queues.items():
        alive.add_metric([name], count)
        ago.add_metric([name], seconds)
    yield from (alive, ago)


def _of_pools(counts: Mapping[Pool, Count]) -> Iterator[Metric]:
    hosts = GaugeMetricFamily("climate_hosts", "Registered hosts in each pool.", labels=["pool"])
    for pool in Pool:
        hosts.add_metric([pool], counts.get(pool, Count()).hosts)
    yield hosts
    drifted = sum(count.drifted for count in counts.values())
    yield _gauge(
        "climate_hosts_drifted", "Hosts that the cloud has in another pool, and that cannot be reconciled.", drifted
    )


def _of_power(counted: Counted) -> Iterator[Metric]:
    yield _gauge("climate_hosts_switchable", "Hosts with power settings.", counted.managed)
    yield _gauge("climate_hosts_off", "Hosts with power settings that are off.", counted.off)
    yield _gauge("climate_hosts_power_failing", "Hosts whose power driver fails.", counted.failing)


def _of_cloud(cloud: Source) -> Iterable[Metric]:
    try:
        return list(cloud())
    except db_errors.ERRORS:
        return []


def _of_queues(url: str) -> Iterator[Metric]:
    waiting = GaugeMetricFamily("climate_queue_messages", "Messages waiting in the broker.", labels=["queue"])
    for name, length in broker_health.queues(url).items():
        waiting.add_metric([name], length)
    yield waiting


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(name, text, value=value)
