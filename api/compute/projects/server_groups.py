"""Server groups: affinity and anti-affinity of servers."""

from flask import request

from api.body import read_object
from api.compute import validation
from api.compute.blueprint import compute_blueprint
from api.compute.microversion import since
from api.compute.projects.project_bodies import GROUP, GROUP_TO_14, GROUP_TO_63
from api.paging import page
from api.request_context import caller, compute
from climate.compute.placement import server_groups
from climate.compute.placement.server_groups import ServerGroup

Body = dict[str, object]

blueprint = compute_blueprint("server-groups")


@blueprint.get("/os-server-groups")
def listing() -> Body:
    """List the groups of the caller's project; administrators may list those of all projects."""
    validation.may_read()
    everybody = validation.query_flag("all_projects") and caller().is_admin
    offset = validation.count(request.args.get("offset", "0"), "offset")
    wanted = page()
    marker = None if wanted.marker is None else validation.uuid(wanted.marker, "marker")
    groups = server_groups.listed(compute(), None if everybody else caller().project_id, wanted.limit, offset, marker)
    return {"server_groups": [_view(group) for group in groups]}


@blueprint.post("/os-server-groups")
def create() -> Body:
    """Create a group with a policy."""
    validation.may_write()
    form = GROUP if since(64) else GROUP_TO_63 if since(15) else GROUP_TO_14
    wanted, who = form.read(read_object()), caller()
    made = server_groups.create(compute(), project_id=who.project_id, user_id=who.user_id, **wanted)
    return {"server_group": _view(made)}


@blueprint.get("/os-server-groups/<group_id>")
def show(group_id: str) -> Body:
    """Show one group by its id; names are not accepted."""
    validation.may_read()
    return {"server_group": _view(server_groups.get(compute(), group_id, validation.own_project()))}


@blueprint.delete("/os-server-groups/<group_id>")
def delete(group_id: str) -> tuple[str, int]:
    """Delete a group; its servers stay."""
    validation.may_write()
    server_groups.delete(compute(), group_id, validation.own_project())
    return "", 204


def _view(group: ServerGroup) -> Body:
    seen: Body = {"id": group.id, "name": group.name, "members": list(group.members)}
    seen |= (
        {"policy": group.policy, "rules": dict(group.rules)}
        if since(64)
        else {"policies": [group.policy], "metadata": {}}
    )
    return seen | ({"project_id": group.project_id, "user_id": group.user_id} if since(13) else {})
