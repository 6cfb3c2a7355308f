"""Metrics of the bundled cloud for Prometheus."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from climate.compute.context import Compute
from climate.compute.models.node import Liveness
from climate.compute.store import metrics
from climate.compute.store.cells import changes, servers
from climate.compute.store.metrics import Figures
from climate.compute.store.networks import network_hosts
from climate.compute.store.zones import child_zones
from climate.compute.zones.models import ChildZone
from climate.database.connections import reading


@dataclass(frozen=True, slots=True)
class CloudFigures:
    """Services, nodes and servers by state, and the child zones."""

    now: datetime
    of_compute: Figures
    of_network: Liveness
    zones: Sequence[ChildZone]


@dataclass(frozen=True, slots=True)
class CellServers:
    """Servers of all cells, as recorded by the top cell."""

    counts: Sequence[tuple[str, str, int]]
    """(cell, status, number)."""
    report_ages: Mapping[str, float]
    """Cell -> 99th percentile of the age of its last reports, in seconds."""


@dataclass(frozen=True, slots=True)
class UnreportedChanges:
    """Changes of servers that a cell has not reported yet."""

    count: int
    oldest: float
    """Age of the oldest change in seconds."""


def read(compute: Compute) -> CloudFigures:
    """Return the metrics of this deployment."""
    with reading(compute.engine) as conn:
        result = metrics.read(conn, compute.now(conn), compute.down_seconds)
        of_network = network_hosts.liveness(conn, compute.now(conn), compute.network.down_seconds)
        zones, now = child_zones.listed(conn), compute.now(conn)
    return CloudFigures(now, result, of_network, zones)


def cell_server_figures(compute: Compute, window: timedelta) -> CellServers:
    """Return the servers of all cells; report ages are those within `window`."""
    with reading(compute.engine) as conn:
        counts = servers.counts(conn)
        return CellServers(counts, servers.ages(conn, compute.now(conn) - window))


def unreported_changes(compute: Compute) -> UnreportedChanges:
    """Return the changes that this cell has not reported to the top cell."""
    with reading(compute.engine) as conn:
        return UnreportedChanges(*changes.waiting(conn, compute.now(conn)))
