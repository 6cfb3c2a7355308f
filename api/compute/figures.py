"""What Prometheus is told of the bundled cloud."""

from collections.abc import Iterator, Mapping

from prometheus_client.core import GaugeMetricFamily, Metric

from climate.compute import Compute
from climate.compute.store import figures


def collect(compute: Compute) -> Iterator[Metric]:
    """Services and nodes by state, servers by status."""
    with compute.engine.connect() as conn:
        found = figures.read(conn, compute.now(conn), compute.down_seconds)
    yield _by("climate_compute_services", "Compute services.", "state", found.services)
    yield _by("climate_compute_nodes", "Nodes that servers can be put on.", "state", found.nodes)
    yield _by("climate_compute_servers", "Servers.", "status", found.servers)


def _by(name: str, says: str, label: str, counts: Mapping[str, int]) -> Metric:
    gauge = GaugeMetricFamily(name, says, labels=[label])
    for word, count in counts.items():
        gauge.add_metric([word], count)
    return gauge
