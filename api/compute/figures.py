"""What Prometheus is told of the bundled cloud."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from prometheus_client.core import GaugeMetricFamily, Metric

from climate.compute import Compute
from climate.compute.store import child_zones, figures
from climate.compute.zones.models import ChildZone

ZONE_LABELS = ("zone", "name")


def collect(compute: Compute) -> Iterator[Metric]:
    """Services and nodes by state, servers by status."""
    with compute.engine.connect() as conn:
        found = figures.read(conn, compute.now(conn), compute.down_seconds)
        zones, now = child_zones.listed(conn), compute.now(conn)
    yield _by("climate_compute_services", "Compute services.", "state", found.services)
    yield _by("climate_compute_nodes", "Nodes that servers can be put on.", "state", found.nodes)
    yield _by("climate_compute_servers", "Servers.", "status", found.servers)
    yield from _of_zones(zones, now)


def _of_zones(zones: Sequence[ChildZone], now: datetime) -> Iterator[Metric]:
    """Each child zone by its id in this zone; none when there are no children."""
    if not zones:
        return
    active = GaugeMetricFamily("climate_zone_active", "Whether a child zone answers.", labels=ZONE_LABELS)
    failed = GaugeMetricFamily("climate_zone_failed_polls", "Polls in a row that failed.", labels=ZONE_LABELS)
    seen = GaugeMetricFamily("climate_zone_last_seen_seconds", "Seconds since its last answer.", labels=ZONE_LABELS)
    for zone in zones:
        labels = [str(zone.id), zone.name or ""]
        active.add_metric(labels, zone.is_active)
        failed.add_metric(labels, zone.attempts)
        if zone.last_seen is not None:
            seen.add_metric(labels, (now - zone.last_seen).total_seconds())
    yield from (active, failed, seen)


def _by(name: str, says: str, label: str, counts: Mapping[str, int]) -> Metric:
    gauge = GaugeMetricFamily(name, says, labels=[label])
    for word, count in counts.items():
        gauge.add_metric([word], count)
    return gauge
