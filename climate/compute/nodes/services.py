"""The compute service's report of its nodes, and the initial contents of a new cloud."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import structlog

from climate.compute import shared_home
from climate.compute.clusters import member_service
from climate.compute.context import Compute
from climate.compute.errors import VirtError
from climate.compute.models.flavor import DEFAULTS
from climate.compute.models.image import ACTIVE, Image
from climate.compute.models.node import Liveness, NodeSpec, Service
from climate.compute.network.service import default_networks
from climate.compute.store.networks import network_hosts
from climate.compute.store.nodes import services, usage_repair
from climate.compute.store.projects import flavors, images
from climate.compute.store.zones import child_zones
from climate.database.connections import alone, reading

IMAGE_ID, IMAGE = "c11a7e00-0000-4000-8000-000000000001", "demo"

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class LastHeard:
    """Times of the last heartbeats of the services."""

    now: datetime
    of_compute: Liveness
    of_network: Liveness
    children: int
    """Number of child zones."""
    polled: datetime | None
    """Time of the last poll of a child zone; None: never."""


LOOK_SECONDS = 60.0
"""Longest time in seconds between two comparisons of all node rows of a service with its driver's report."""


@dataclass
class Report:
    """The last report of a process about its nodes, so that unchanged nodes are not compared again."""

    specs: Sequence[NodeSpec] | None = None
    at: float = -math.inf
    """Time of the report by the monotonic clock."""

    def is_of(self, specs: Sequence[NodeSpec]) -> bool:
        """Return whether these nodes were reported recently."""
        is_recent = time.monotonic() - self.at < LOOK_SECONDS
        return is_recent and self.specs is not None and (self.specs is specs or self.specs == specs)


def refresh(compute: Compute, last: Report | None = None) -> None:
    """Renew the heartbeat, and reconcile the node rows of this service with its driver's report.

    The rows stay as they are while the driver cannot list its nodes. They are compared if the report differs from the
    `last` one of this process, if rows were deleted or are absent, and periodically.
    """
    last = last or Report()
    host = compute.service_host
    shared_home.mark(compute)
    with alone(compute.engine) as conn:
        present = services.beat(conn, host, compute.other_time(conn))
    try:
        specs = compute.driver.nodes()
    except VirtError as error:
        log.error("driver cannot list its nodes, nodes unchanged", host=host, reason=str(error))
        return
    if present != len(specs) or not last.is_of(specs):
        _report(compute, specs)
        last.specs, last.at = specs, time.monotonic()
    member_service.report(compute)


def _report(compute: Compute, specs: Sequence[NodeSpec]) -> None:
    with compute.engine.begin() as conn:
        gone = services.report(conn, compute.service_host, specs, compute.defaults)
    for node_id in gone:
        log.info(f"Deleting orphan compute node {node_id}", host=compute.service_host)


def ready(compute: Compute) -> bool:
    """Return whether the driver can list its nodes; until then tasks of servers wait."""
    try:
        compute.driver.nodes()
    except VirtError as error:
        log.error("server tasks wait, driver cannot list its nodes", host=compute.service_host, reason=str(error))
        return False
    return True


def audit(compute: Compute) -> None:
    """Audit the usage of this service's nodes: correct each that is not the sum over its servers."""
    with reading(compute.engine) as conn:
        suspects = usage_repair.drifted(conn, compute.service_host)
    if not suspects:
        return
    with compute.engine.begin() as conn:
        corrected = usage_repair.correct(conn, suspects)
    for drift in corrected:
        log.warning("usage of a node corrected", node=drift.node, was=drift.was, now=drift.now)


def listed(compute: Compute, host: str | None = None) -> list[Service]:
    """Return the compute services, also those that are down, or those of one host name."""
    with reading(compute.engine) as conn:
        return services.listed(conn, compute.other_time(conn), compute.down_seconds, host)


def to_beat(compute: Compute) -> list[tuple[str, bool]]:
    """Return (host, the service is up) for each compute service."""
    with reading(compute.engine) as conn:
        return services.hosts(conn, compute.other_time(conn), compute.down_seconds)


def reports(compute: Compute) -> LastHeard:
    """Return the last heartbeats of compute services, network services and child zones."""
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
    """Create the flavors, image and network of a new cloud; existing ones are not changed."""
    with compute.engine.begin() as conn:
        for flavor in DEFAULTS:
            flavors.insert(conn, flavor)
        images.insert(conn, Image(IMAGE_ID, IMAGE, None, ACTIVE, "public", "raw", "bare", 0, None))
        default_networks.furnish(conn, compute)
