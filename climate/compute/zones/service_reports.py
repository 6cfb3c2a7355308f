"""Reports of this zone's services, from which parents get (min, max)."""

import math
import time
from dataclasses import dataclass
from datetime import timedelta

from climate.compute.context import Compute
from climate.compute.store.nodes import service_capabilities as rows
from climate.compute.store.nodes.service_capabilities import NodesSeen
from climate.database.connections import reading

KEPT_PERIODS = 60
"""Number of periods after which a silent service's report is deleted."""


@dataclass
class LastReport:
    """The last report of the nodes by a process, so that unchanged nodes are not compared again."""

    nodes: NodesSeen | None = None
    at: float = -math.inf
    """Time of the report by the monotonic clock."""


def report_compute(compute: Compute, last: LastReport | None = None) -> None:
    """Report the nodes of this compute service, and delete outdated reports.

    Does nothing if no node has changed since the `last` report of this process, which is less than a period ago.
    """
    last, begun = last or LastReport(), time.monotonic()
    period, host = compute.zones.report_seconds, compute.service_host
    if last.nodes is not None and begun - last.at < period:
        with reading(compute.engine) as conn:
            if not rows.is_changed(conn, host, last.nodes):
                return
    with compute.engine.begin() as conn:
        seen = rows.present_state(conn, host)  # first, so that changes during the report lead to another one
        now = compute.now(conn)
        rows.report_nodes(conn, host, now, period)
        rows.forget(conn, now - timedelta(seconds=KEPT_PERIODS * period))
    last.nodes, last.at = seen, begun


def report_network(compute: Compute) -> None:
    """Report the networks that this network service serves."""
    with compute.engine.begin() as conn:
        rows.report_networks(conn, compute.network_host, compute.now(conn), compute.zones.report_seconds)
