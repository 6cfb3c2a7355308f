"""Reports of this zone's services, from which parents get (min, max)."""

from datetime import timedelta

from climate.compute.context import Compute
from climate.compute.store.nodes import service_capabilities as rows

KEPT_PERIODS = 60
"""Number of periods after which a silent service's report is deleted."""


def report_compute(compute: Compute) -> None:
    """Report the nodes of this compute service, and delete outdated reports."""
    period = compute.zones.report_seconds
    with compute.engine.begin() as conn:
        now = compute.now(conn)
        rows.report_nodes(conn, compute.service_host, now, period)
        rows.forget(conn, now - timedelta(seconds=KEPT_PERIODS * period))


def report_network(compute: Compute) -> None:
    """Report the networks that this network service serves."""
    with compute.engine.begin() as conn:
        rows.report_networks(conn, compute.network_host, compute.now(conn), compute.zones.report_seconds)
