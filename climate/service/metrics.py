"""Metrics of the engine for Prometheus."""

from collections.abc import Mapping
from dataclasses import dataclass

from climate.context import Climate
from climate.database.connections import reading
from climate.domain.hosts.pools import Pool
from climate.store import db_errors, metrics
from climate.store.hosts import pools, power
from climate.store.hosts.pools import Count
from climate.store.hosts.power import Counted
from climate.store.metrics import Figures


@dataclass(frozen=True, slots=True)
class EngineFigures:
    """Counts of events and leases, hosts in each pool, and power states of hosts."""

    leases: Figures
    pools: Mapping[Pool, Count]
    power: Counted


def read(climate: Climate) -> EngineFigures | None:
    """Return the present counts; None while the database does not answer."""
    try:
        with reading(climate.engine) as conn:
            now = climate.now(conn)
            return EngineFigures(metrics.read(conn, now), pools.counted(conn, now, now), power.counted(conn))
    except db_errors.ERRORS:
        return None
