"""Reports of services about themselves, from which this zone tells its parents (min, max)."""

from datetime import timedelta

from climate.compute.context import Compute
from climate.compute.store.nodes import service_capabilities as rows

KEPT_PERIODS = 60
"""A report of a service that is gone is dropped after so many periods."""


def report_compute(compute: Compute) -> None:
    """Report the nodes of this compute service, and drop reports that are long out of date."""
    period = compute.zones.report_seconds
    with compute.engine.begin() as conn:
        now = compute.now(conn)
        rows.report_nodes(conn, compute.service_host, now, period)
        rows.forget(conn, now - timedelta(seconds=KEPT_PERIODS * period))


def report_network(compute: Compute) -> None:
    """Report the networks that this network service serves."""
    with compute.engine.begin() as conn:
        rows.report_networks(conn, compute.network_host, compute.now(conn), compute.zones.report_seconds)
