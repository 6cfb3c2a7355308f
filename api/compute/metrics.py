"""Prometheus metrics of the bundled cloud."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from prometheus_client.core import GaugeMetricFamily, Metric

from climate.compute import Compute, metrics
from climate.compute.cells import backlog, neighbours
from climate.compute.zones.models import ChildZone

ZONE_LABELS = ("zone", "name")

AGES = timedelta(minutes=5)
"""Reports of the last so many count for their age."""


def collect(compute: Compute) -> Iterator[Metric]:
    """Yield services and nodes by state, and servers by status."""
    read = metrics.read(compute)
    result, of_network = read.of_compute, read.of_network
    yield _by("climate_compute_services", "Compute services.", "state", result.services)
    yield _by(
        "climate_network_services",
        "Network services.",
        "state",
        {"up": of_network.up, "down": of_network.known - of_network.up},
    )
    yield _by("climate_compute_nodes", "Nodes on which servers can be placed.", "state", result.nodes)
    yield _by("climate_compute_servers", "Servers.", "status", result.servers)
    yield from _of_zones(read.zones, read.now)
    if compute.cells.enabled:
        yield from _of_cells(compute)
        yield from _of_cell_servers(compute)


def _of_zones(zones: Sequence[ChildZone], now: datetime) -> Iterator[Metric]:
    """Yield the metrics of each child zone by its id; none without children."""
    if not zones:
        return
    active = GaugeMetricFamily("climate_zone_active", "Whether a child zone answers.", labels=ZONE_LABELS)
    failed = GaugeMetricFamily(
        "climate_zone_failed_polls", "Consecutive failed polls of a child zone.", labels=ZONE_LABELS
    )
    seen = GaugeMetricFamily(
        "climate_zone_last_seen_seconds", "Seconds since the last answer of a child zone.", labels=ZONE_LABELS
    )
    for zone in zones:
        labels = [str(zone.id), zone.name or ""]
        active.add_metric(labels, zone.is_active)
        failed.add_metric(labels, zone.attempts)
        if zone.last_seen is not None:
            seen.add_metric(labels, (now - zone.last_seen).total_seconds())
    yield from (active, failed, seen)


def _of_cell_servers(compute: Compute) -> Iterator[Metric]:
    """Yield the number of servers of all cells at the top cell, and of unreported changes in any other cell."""
    if not compute.cells.is_api:
        changes = metrics.unreported_changes(compute)
        text = "Changes of servers that are not reported yet."
        yield GaugeMetricFamily("climate_cell_changes_waiting", text, value=changes.count)
        yield GaugeMetricFamily(
            "climate_cell_changes_oldest_seconds", "Age of the oldest waiting entry in seconds.", value=changes.oldest
        )
        return
    read = metrics.cell_server_figures(compute, AGES)
    servers = GaugeMetricFamily("climate_cell_servers", "Servers of all cells.", labels=["cell", "status"])
    for cell, status, count in read.counts:
        servers.add_metric([cell, status], count)
    yield servers
    yield _by(
        "climate_cell_report_age_seconds",
        "Age of 99 of 100 reports of the last five minutes.",
        "cell",
        read.report_ages,
    )


def _of_cells(compute: Compute) -> Iterator[Metric]:
    cells = neighbours.listed(compute)
    messages = backlog.read(compute)
    heard = {cell.name: (messages.now - cell.last_seen).total_seconds() for cell in cells if cell.last_seen is not None}
    counts = {cell.name: messages.count(cell.name) for cell in cells}
    yield _by("climate_cell_messages", "Messages to a cell without confirmation.", "cell", counts)
    ages = {cell.name: messages.oldest_age(cell.name) for cell in cells}
    yield _by("climate_cell_oldest_message_seconds", "Age of the oldest waiting entry in seconds.", "cell", ages)
    yield _by("climate_cell_heard_seconds", "Age of the last message of a cell in seconds.", "cell", heard)
    failures = {cell.name: cell.failures for cell in cells}
    yield _by("climate_cell_failures", "Consecutive failed attempts to reach the broker of a cell.", "cell", failures)


def _by(name: str, says: str, label: str, counts: Mapping[str, float]) -> Metric:
    gauge = GaugeMetricFamily(name, says, labels=[label])
    for word, count in counts.items():
        gauge.add_metric([word], count)
    return gauge
