"""The compute service's report of its nodes, and what a fresh cloud is furnished with."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import structlog

from climate.compute import shared_home
from climate.compute.clusters import member_orders
from climate.compute.context import Compute
from climate.compute.errors import VirtError
from climate.compute.models.flavor import DEFAULTS
from climate.compute.models.image import ACTIVE, Image
from climate.compute.models.node import Liveness, NodeSpec, Service
from climate.compute.network.service import default_networks
from climate.compute.store.networks import network_hosts
from climate.compute.store.nodes import services
from climate.compute.store.nodes import usage_audit as drifts
from climate.compute.store.projects import flavors, images
from climate.compute.store.zones import child_zones
from climate.connections import reading

IMAGE_ID, IMAGE = "c11a7e00-0000-4000-8000-000000000001", "demo"

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class LastHeard:
    """When the services were last heard of."""

    now: datetime
    of_compute: Liveness
    of_network: Liveness
    children: int
    """Number of child zones."""
    polled: datetime | None
    """When one of them was last polled; None: never."""


LOOK_SECONDS = 60.0
"""Longest time between two comparisons of all node rows of a service with what its driver reports."""


@dataclass
class Report:
    """What a process has reported of its nodes, so that what has not changed is not compared again and again."""

    specs: Sequence[NodeSpec] | None = None
    at: float = -math.inf
    """By the monotonic clock."""

    def is_of(self, specs: Sequence[NodeSpec]) -> bool:
        """Return whether these nodes were reported, not long ago."""
        is_recent = time.monotonic() - self.at < LOOK_SECONDS
        return is_recent and self.specs is not None and (self.specs is specs or self.specs == specs)


def refresh(compute: Compute, last: Report | None = None) -> None:
    """Beat, and bring the node rows of this service up to what its driver reports (cloud.md F.4).

    While the driver cannot tell its nodes, the rows stay as they are.  They are compared
    with the report when it is another than the `last` of this process, when rows were deleted or are absent, and now
    and then.
    """
    last = last or Report()
    host = compute.service_host
    shared_home.mark(compute)
    with compute.engine.begin() as conn:
        services.beat(conn, host, compute.now(conn))
        present = services.present(conn, host)
    try:
        specs = compute.driver.nodes()
    except VirtError as error:
        log.error("the nodes are not known and stay as they were", host=host, reason=str(error))
        return
    if present != len(specs) or not last.is_of(specs):
        _report(compute, specs)
        last.specs, last.at = specs, time.monotonic()
    member_orders.report(compute)


def _report(compute: Compute, specs: Sequence[NodeSpec]) -> None:
    with compute.engine.begin() as conn:
        gone = services.report(conn, compute.service_host, specs, compute.defaults)
    for node_id in gone:
        log.info(f"Deleting orphan compute node {node_id}", host=compute.service_host)


def ready(compute: Compute) -> bool:
    """Whether the driver knows its nodes: otherwise what is asked of servers waits."""
    try:
        compute.driver.nodes()
    except VirtError as error:
        log.error("work on servers waits until the nodes are known", host=compute.service_host, reason=str(error))
        return False
    return True


def audit(compute: Compute) -> None:
    """See that what is taken of this service's nodes is the sum over their servers; what is not is put right."""
    with reading(compute.engine) as conn:
        suspects = drifts.drifted(conn, compute.service_host)
    if not suspects:
        return
    with compute.engine.begin() as conn:
        mended = drifts.mend(conn, suspects)
    for drift in mended:
        log.warning("what was taken of a node was wrong", node=drift.node, was=drift.was, now=drift.now)


def listed(compute: Compute, host: str | None = None) -> list[Service]:
    """The compute services, of whom nothing may have been heard for long, or that of one host name."""
    with reading(compute.engine) as conn:
        return services.listed(conn, compute.now(conn), compute.down_seconds, host)


def reports(compute: Compute) -> LastHeard:
    """Return when compute services, network services and child zones were last heard of."""
    with reading(compute.engine) as conn:
        now = compute.now(conn)
        of_compute = services.liveness(conn, now, compute.down_seconds)
        of_network = network_hosts.liveness(conn, now, compute.network.down_seconds)
        return LastHeard(now, of_compute, of_network, *child_zones.last_poll(conn))


def database_now(compute: Compute) -> datetime:
    """Return the time of the database, in UTC."""
    with reading(compute.engine) as conn:
        return compute.now(conn)


def furnish(compute: Compute) -> None:
    """Give a fresh cloud flavors, an image and a network; what is there stays as it is."""
    with compute.engine.begin() as conn:
        for flavor in DEFAULTS:
            flavors.insert(conn, flavor)
        images.insert(conn, Image(IMAGE_ID, IMAGE, None, ACTIVE, "public", "raw", "bare", 0, None))
        default_networks.furnish(conn, compute)
