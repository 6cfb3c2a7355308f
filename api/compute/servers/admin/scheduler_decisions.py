"""Scheduler decisions about a server."""

from collections.abc import Mapping
from typing import Any

from api.compute import validation
from api.compute.blueprint import compute_blueprint
from api.compute.servers.servers import find
from api.request_context import compute
from climate.compute.models.server import Server
from climate.compute.placement import decisions
from climate.compute.placement.decisions import Decision
from climate.compute.zones.builds import builds
from climate.compute.zones.builds.builds import InChild

Body = dict[str, Any]

blueprint = compute_blueprint("scheduling")


@blueprint.get("/servers/<server_id>/scheduling")
def scheduling(server_id: str) -> Body:
    """List the scheduler's decisions about a server, oldest first (administrator).

    `trail` has the form of climate.compute.scheduler.decisions.record, except for `picks`. For a build it has `chosen`,
    the node of this server, and `later`, the nodes that filters removed for the servers before it. For a build over
    zones `zones` has the answer of each zone; for a server in a child, `zone` names its zone.
    """
    validation.may_administer()
    placed = builds.in_child(compute(), validation.path_id(server_id))
    if placed is not None:
        return {"scheduling": _of_child(validation.path_id(server_id), placed)}
    server = find(server_id)
    views = [_decision_view(server, decision) for decision in decisions.of(compute(), server.id)]
    return {"scheduling": {"server_id": server.id, "reservation_id": server.build_id, "decisions": views}}


def _of_child(server_id: str, placed: InChild) -> Body:
    """Return the decisions of this zone about a server in a child: answers of zones, without host names."""
    zone = {"zone_id": placed.zone_id, "launch_index": placed.launch_index}
    views = [
        _plain(decision) | {"trail": {**decision.trail, "zone": zone, "chosen": None, "later": []}}
        for decision in decisions.of(compute(), server_id)
    ]
    return {"server_id": server_id, "reservation_id": placed.reservation_id, "decisions": views}


def _decision_view(server: Server, decision: Decision) -> Body:
    number = server.launch_index if decision.server_id is None else 0
    return _plain(decision) | {"trail": _of_one(decision.trail, number)}


def _plain(decision: Decision) -> Body:
    return {
        "made_at": decision.made_at.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "kind": decision.kind,
        "lost": [list(reasons) for reasons in decision.lost],
        "after": _after(decision),
        "error": decision.error,
    }


def _after(decision: Decision) -> Body | None:
    """Return the earlier failures of the build, with their reasons."""
    after = decision.after
    if after is None:
        return None
    return {"host": after["service_host"], "node": after["node"], "reason": after["reason"]}


def _of_one(trail: Mapping[str, Any], number: int) -> Body:
    """Return the part of a build's trail that concerns server `number` of it."""
    picks = trail.get("picks", [])
    own = picks[number] if number < len(picks) else None
    later = [
        {"server": index, **stage}
        for index, pick in enumerate(picks[: number + 1])
        for stage in pick.get("filters", ())
    ]
    kept = {key: value for key, value in trail.items() if key not in ("picks", "more_picks")}
    chosen = None if own is None else {key: value for key, value in own.items() if key != "filters"}
    return {**kept, "chosen": chosen, "later": later}
