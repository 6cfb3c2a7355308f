"""Builds over zones: estimates for a parent zone, requests for many servers, and their results."""

from api import body
from api.compute import validation
from api.compute.blueprint import compute_blueprint
from api.compute.servers import request_body, server_bodies
from api.compute.zones import build_bodies, build_orders, lease_boot, zone_chain
from api.request_context import caller, compute, request_id
from climate.compute.models.request import pools_of
from climate.compute.zones.builds import builds, selection
from climate.compute.zones.builds.builds import BuildState
from climate.domain.errors import InvalidInput

Body = dict[str, object]

blueprint = compute_blueprint("zone-builds")
"""Routes for administrators, below /zones."""

owners = compute_blueprint("zone-build-states")
"""Routes for owners of builds."""


@blueprint.post("/zones/select")
def select() -> Body:
    """Estimate where this zone and the zones below it could build servers; nothing is stored."""
    validation.may_administer()
    who = caller()
    given = {"project_id": who.project_id, "user_id": who.user_id, "admin": True, "request_id": request_id()}
    spec = build_bodies.request_spec(_spec())
    parts = lease_boot.parts(request_body.admit_on(pools_of(spec.hints)))
    return {"weights": selection.for_parent(compute(), spec, given, zone_chain.chain(), parts)}


@blueprint.post("/zones/boot")
def boot() -> Body:
    """Boot servers in this zone and its children, where they fit best; the answer has their reservation id at once."""
    validation.may_administer()
    given = server_bodies.NEW_BUILD.read(body.read_object())
    server = given["server"]
    if build_orders.is_on_offer(server):
        raise InvalidInput("blob is only for POST /servers, because a build has its own plan")
    wanted = request_body.checked({**given, "server": _counted(server)}, of_build=True)
    if wanted.reserved:
        raise InvalidInput(
            "reserved=True is for POST /servers, which places the server in this zone or, "
            "where there is no room, in a child zone, and makes its lease there"
        )
    parts = lease_boot.parts(request_body.admit(wanted))
    return {
        "reservation_id": builds.create(compute(), wanted.request, wanted.reservation_id, parts=parts).reservation_id
    }


@blueprint.get("/zones/builds/<build_id>")
def for_parent(build_id: str) -> Body:
    """List the servers of a parent zone's build in this zone, with their projects there."""
    validation.may_administer()
    made = builds.servers_for_parent(compute(), build_id, caller().project_id)
    return {
        "servers": [
            {
                "id": row["server_id"],
                "launch_index": row["launch_index"],
                "project_id": row["owner_project"],
                "user_id": row["owner_user"],
            }
            for row in made
        ]
    }


@owners.get("/os-zone-builds")
def listing() -> Body:
    """List the latest builds of the caller's project; administrators see those of all projects."""
    validation.may_read()
    return {"builds": [_brief(state) for state in builds.listed(compute(), validation.own_project())]}


@owners.get("/os-zone-builds/<reservation_id>")
def show(reservation_id: str) -> Body:
    """Show how many servers of a build were requested and placed, and the reason if some were not."""
    validation.may_read()
    state = builds.get(compute(), reservation_id, validation.own_project())
    return {"build": _full(state)}


def _spec() -> Body:
    """Return the request spec in the body: an object, or a text that holds one."""
    value = body.read_json()
    if isinstance(value, str):
        value = body.parse(value.encode())
    if not isinstance(value, dict):
        raise InvalidInput("The body must be a request spec: a JSON object, or a text that holds one")
    return value


def _counted(server: Body) -> Body:
    """Return the server with the minimum and maximum number of them, from `num_instances` or the two counts."""
    counted = {key: value for key, value in server.items() if key != "num_instances"}
    if "num_instances" not in server:
        return {"min_count": 1, **counted}
    if "min_count" in server or "max_count" in server:
        raise InvalidInput("give either num_instances, or min_count and max_count")
    return counted | {"min_count": server["num_instances"], "max_count": server["num_instances"]}


def _brief(state: BuildState) -> Body:
    build = state.build
    return {
        "reservation_id": build.reservation_id,
        "state": build.state,
        "requested": build.requested,
        "created_at": f"{build.created_at:%Y-%m-%dT%H:%M:%SZ}",
        "finished_at": f"{build.finished_at:%Y-%m-%dT%H:%M:%SZ}" if build.finished_at else None,
        "fault": build.fault,
    }


def _full(state: BuildState) -> Body:
    names = builds.zone_names(compute())
    servers = [
        {
            "id": item.server_id,
            "launch_index": item.launch_index,
            "zone": None if item.zone_id is None else names.get(item.zone_id, f"zone {item.zone_id}"),
        }
        for item in state.placed
    ]
    seen = _brief(state) | {"placed": len(servers), "unknown": state.unknown, "servers": servers}
    if caller().is_admin:
        seen |= {
            "id": state.build.id,
            "project_id": state.build.project_id,
            "zones": state.build.report.get("zones", []),
        }
    return seen
