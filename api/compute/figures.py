"""What Prometheus is told of the bundled cloud."""

from collections.abc import Iterator, Mapping
from datetime import timedelta

from prometheus_client.core import GaugeMetricFamily, Metric

from climate.compute import Compute
from climate.compute.store import cell_changes, cell_servers, figures

AGES = timedelta(minutes=5)
"""Reports of the last so many count for their age."""


def collect(compute: Compute) -> Iterator[Metric]:
    """Services and nodes by state, servers by status."""
    with compute.engine.connect() as conn:
        found = figures.read(conn, compute.now(conn), compute.down_seconds)
    yield _by("climate_compute_services", "Compute services.", "state", found.services)
    yield _by("climate_compute_nodes", "Nodes that servers can be put on.", "state", found.nodes)
    yield _by("climate_compute_servers", "Servers.", "status", found.servers)
    if compute.cells.enabled:
        yield from _of_cell_servers(compute)


def _of_cell_servers(compute: Compute) -> Iterator[Metric]:
    """At the top cell the servers of all cells, in any other the changes that it has not reported."""
    if not compute.cells.is_api:
        with compute.engine.connect() as conn:
            waiting, oldest = cell_changes.waiting(conn, compute.now(conn))
        yield GaugeMetricFamily("climate_cell_changes_waiting", "Changes of servers to be reported.", value=waiting)
        yield GaugeMetricFamily("climate_cell_changes_oldest_seconds", "Age of the oldest of them.", value=oldest)
        return
    with compute.engine.connect() as conn:
        counts = cell_servers.counts(conn)
        ages = cell_servers.ages(conn, compute.now(conn) - AGES)
    servers = GaugeMetricFamily("climate_cell_servers", "Servers of all cells.", labels=["cell", "status"])
    for cell, status, count in counts:
        servers.add_metric([cell, status], count)
    yield servers
    yield _by("climate_cell_report_age_seconds", "Age of 99 of 100 reports of the last five minutes.", "cell", ages)


def _by(name: str, says: str, label: str, counts: Mapping[str, float]) -> Metric:
    gauge = GaugeMetricFamily(name, says, labels=[label])
    for word, count in counts.items():
        gauge.add_metric([word], count)
    return gauge
