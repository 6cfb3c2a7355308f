"""Server groups: affinity and anti-affinity of servers."""

from typing import Any

from flask import request

from api.body import read_object
from api.compute import validation
from api.compute.blueprint import compute_blueprint
from api.compute.microversion import since
from api.paging import page
from api.request_context import caller, compute
from climate.compute.placement import server_groups
from climate.compute.placement.server_groups import ServerGroup
from climate.domain.errors import InvalidInput

Body = dict[str, Any]

blueprint = compute_blueprint("server-groups")

STRICT = (server_groups.AFFINITY, server_groups.ANTI_AFFINITY)


@blueprint.get("/os-server-groups")
def listing() -> Body:
    """List the groups of the caller's project; administrators may list those of all projects."""
    validation.may_read()
    everybody = validation.query_flag("all_projects") and caller().is_admin
    offset = validation.count(request.args.get("offset", "0"), "offset")
    wanted = page()
    marker = None if wanted.marker is None else validation.uuid(wanted.marker, "marker")
    found = server_groups.listed(compute(), None if everybody else caller().project_id, wanted.limit, offset, marker)
    return {"server_groups": [_view(group) for group in found]}


@blueprint.post("/os-server-groups")
def create() -> Body:
    """Create a group with a policy."""
    validation.may_write()
    body = validation.part(read_object(), "server_group")
    policy, most = _policy(body) if since(64) else (_only_policy(body), None)
    who, name = caller(), validation.name(body.get("name"))
    made = server_groups.create(
        compute(), project_id=who.project_id, user_id=who.user_id, name=name, policy=policy, most=most
    )
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


def _policy(body: Body) -> tuple[str, int | None]:
    """Return the policy and the allowed servers per host, in the form of 2.64 and later."""
    _check_keys(body, "name", "policy", "rules")
    policy, rules = body.get("policy"), body.get("rules")
    if not isinstance(policy, str):
        raise InvalidInput(f"policy must be one of {', '.join(server_groups.KEPT_BY)}")
    if rules in (None, {}):
        return policy, None
    if not isinstance(rules, dict) or set(rules) != {server_groups.MOST_ON_NODE}:
        raise InvalidInput(f"rules must be empty, or an object with {server_groups.MOST_ON_NODE} alone")
    return policy, validation.count(rules[server_groups.MOST_ON_NODE], f"rules.{server_groups.MOST_ON_NODE}", 1)


def _only_policy(body: Body) -> str:
    """Return the policy in the form before 2.64: a list with one entry, which is strict before 2.15."""
    _check_keys(body, "name", "policies")
    known, policies = list(server_groups.KEPT_BY) if since(15) else list(STRICT), body.get("policies")
    if not isinstance(policies, list) or len(policies) != 1 or policies[0] not in known:
        raise InvalidInput(f"policies must be a list of exactly one of {', '.join(known)}")
    return str(policies[0])


def _check_keys(body: Body, *known: str) -> None:
    unknown = sorted(set(body) - set(known))
    if unknown:
        raise InvalidInput(f"server_group has no {unknown[0][:40]!r}; it may have {', '.join(known)}")


def _view(group: ServerGroup) -> Body:
    seen: Body = {"id": group.id, "name": group.name, "members": list(group.members)}
    seen |= (
        {"policy": group.policy, "rules": dict(group.rules)}
        if since(64)
        else {"policies": [group.policy], "metadata": {}}
    )
    return seen | ({"project_id": group.project_id, "user_id": group.user_id} if since(13) else {})
