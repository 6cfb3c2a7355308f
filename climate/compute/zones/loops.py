"""Detection of loops in the tree: a child that leads back to this zone is recorded and skipped."""

from collections.abc import Sequence

import structlog

from climate.compute.context import Compute
from climate.compute.store.zones import child_zones
from climate.compute.zones.client_interface import ChildAnswer, ChildError, ChildLoop, ChildRequest
from climate.compute.zones.models import ChildZone

NOBODY = "00000000-0000-0000-0000-000000000000"
"""Server id that exists in no zone, so that every zone of the tree is asked."""

log = structlog.get_logger(__name__)


def note_return(compute: Compute, ids: Sequence[str]) -> None:
    """Record the child by which a request came back: the zone after this one in the chain of ids."""
    index = ids.index(compute.zones.own_id()) + 1
    child = list(ids[index : index + 1])
    if child:
        with compute.engine.begin() as conn:
            child_zones.mark_loops(conn, compute.now(conn), deployments=child)


def note_outcomes(compute: Compute, zones: Sequence[ChildZone], outcomes: Sequence[ChildAnswer | ChildError]) -> None:
    """Record the children that are above this zone, by the outcomes of requests to them."""
    matching = [zone for zone, outcome in zip(zones, outcomes, strict=True) if isinstance(outcome, ChildLoop)]
    if not matching:
        return
    for zone in matching:
        log.warning("child zone leads back to this zone", zone=zone.id, api_url=zone.api_url)
    with compute.engine.begin() as conn:
        child_zones.mark_loops(conn, compute.now(conn), ids=[zone.id for zone in matching])


def probe(compute: Compute, zones: Sequence[ChildZone]) -> None:
    """Send a probe request to everything below these children; the zone that it returns to finds the loop."""
    if compute.zones.client is None or not zones:
        return
    with compute.engine.begin() as conn:
        child_zones.clear_loops(conn, [zone.id for zone in zones])
    request = ChildRequest("GET", f"/servers/{NOBODY}")
    compute.zones.client.send_all([(zone, request) for zone in zones])
