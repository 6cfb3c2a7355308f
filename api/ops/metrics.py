"""The figures that Prometheus scrapes: requests of all web processes, and the engine's as the database knows them."""

from collections.abc import Iterable, Iterator
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric

from api.ops.tally import Tally
from climate.context import Climate
from climate.service import broker
from climate.store import failures, figures
from climate.store.figures import Figures


class Scrape:
    """All figures of one moment, in the form that the library asks for."""

    def __init__(self, climate: Climate, tally: Tally) -> None:
        self._climate = climate
        self._tally = tally

    def collect(self) -> Iterable[Metric]:
        """Requests first; a store that is away leaves its figures out."""
        yield from self._tally.collect()
        found = _read(self._climate)
        yield _gauge("climate_database_up", "Whether the database answers.", found is not None)
        if found:
            yield from _of_events(found)
        yield from _of_queues(self._climate.settings.redis_url)


def text(climate: Climate, tally: Tally) -> bytes:
    """The figures in Prometheus's text format."""
    registry = CollectorRegistry(auto_describe=False)
    scrape: Any = Scrape(climate, tally)
    registry.register(scrape)
    return generate_latest(registry)


def _read(climate: Climate) -> Figures | None:
    try:
        with climate.engine.connect() as conn:
            return figures.read(conn, climate.now(conn))
    except failures.ERRORS:
        return None


def _of_events(found: Figures) -> Iterator[Metric]:
    yield _gauge("climate_events_due", "Events that are due and not yet claimed.", found.due)
    yield _gauge("climate_events_oldest_due_seconds", "How long the oldest of them has been due.", found.oldest_due)
    yield _gauge("climate_events_in_progress", "Events that somebody works on.", found.in_progress)
    yield _gauge("climate_events_retrying", "Open events that were tried in vain before.", found.retrying)
    yield _gauge("climate_events_failed", "Events in ERROR.", found.failed)
    late = GaugeMetricFamily(
        "climate_events_lateness_seconds",
        "From due to claimed, of the events claimed in the last five minutes.",
        labels=["quantile"],
    )
    for quantile, seconds in found.lateness.items():
        late.add_metric([f"{quantile:g}"], seconds)
    yield late


def _of_queues(url: str) -> Iterator[Metric]:
    waiting = GaugeMetricFamily("climate_queue_messages", "Messages waiting in the broker.", labels=["queue"])
    for name, length in broker.queues(url).items():
        waiting.add_metric([name], length)
    yield waiting


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(name, text, value=value)
