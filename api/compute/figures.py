"""What Prometheus is told of the bundled cloud."""

from collections.abc import Iterator, Mapping

from prometheus_client.core import GaugeMetricFamily, Metric

from climate.compute import Compute
from climate.compute.cells import neighbours
from climate.compute.store import cell_messages, figures


def collect(compute: Compute) -> Iterator[Metric]:
    """Services and nodes by state, servers by status."""
    with compute.engine.connect() as conn:
        found = figures.read(conn, compute.now(conn), compute.down_seconds)
    yield _by("climate_compute_services", "Compute services.", "state", found.services)
    yield _by("climate_compute_nodes", "Nodes that servers can be put on.", "state", found.nodes)
    yield _by("climate_compute_servers", "Servers.", "status", found.servers)
    if compute.cells.enabled:
        yield from _of_cells(compute)


def _of_cells(compute: Compute) -> Iterator[Metric]:
    cells = neighbours.listed(compute)
    with compute.engine.connect() as conn:
        now, waiting = compute.now(conn), cell_messages.counts(conn)
    messages = {cell.name: waiting.get(cell.name, (0, now)) for cell in cells}
    heard = {cell.name: (now - cell.last_seen).total_seconds() for cell in cells if cell.last_seen is not None}
    yield _by("climate_cell_messages", "Messages to a cell that it has not confirmed.", "cell", _first(messages))
    ages = {name: (now - since).total_seconds() for name, (_, since) in messages.items()}
    yield _by("climate_cell_oldest_message_seconds", "Age of the oldest of them.", "cell", ages)
    yield _by("climate_cell_heard_seconds", "Age of the last word of a cell.", "cell", heard)
    failures = {cell.name: cell.failures for cell in cells}
    yield _by("climate_cell_failures", "Attempts in a row at which its broker was not reached.", "cell", failures)


def _first(messages: Mapping[str, tuple[int, object]]) -> dict[str, int]:
    return {name: count for name, (count, _) in messages.items()}


def _by(name: str, says: str, label: str, counts: Mapping[str, float]) -> Metric:
    gauge = GaugeMetricFamily(name, says, labels=[label])
    for word, count in counts.items():
        gauge.add_metric([word], count)
    return gauge
