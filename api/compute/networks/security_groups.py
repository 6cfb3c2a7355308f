"""Security groups as Compute had them below 2.36, and those of a server."""

from collections.abc import Iterator
from contextlib import contextmanager

from api.body import read_object
from api.compute import validation
from api.compute.blueprint import compute_blueprint
from api.compute.microversion import proxied
from api.compute.networks.security_group_bodies import GROUP, RULE, rule
from api.compute.servers.servers import find
from api.paging import cut, page
from api.request_context import caller, compute
from climate.compute.errors import BadRequest, Conflict
from climate.compute.models.security_group import INGRESS, SecurityGroup, SecurityRule
from climate.compute.network.operations import security_groups

Body = dict[str, object]

blueprint = compute_blueprint("security-groups")

PATH, RULES = "/os-security-groups", "/os-security-group-rules"


@blueprint.get(PATH, strict_slashes=True)
def listing() -> Body:
    """List the security groups of the project; administrators list those of all projects by `all_tenants`."""
    proxied()
    validation.may_read()
    everybody = caller().is_admin and validation.query_flag("all_tenants")
    groups = security_groups.listed(compute(), caller().project_id, None if everybody else caller().project_id)
    return {"security_groups": cut([_view(group, groups) for group in groups], page(), lambda one: str(one["id"]))[0]}


@blueprint.get(f"{PATH}/<security_group>")
def show(security_group: str) -> Body:
    """Show one security group."""
    proxied()
    validation.may_read()
    return {"security_group": _one(security_group)}


@blueprint.post(PATH, strict_slashes=True)
def create() -> Body:
    """Create a security group."""
    proxied()
    validation.may_write()
    given = GROUP.read(read_object())
    with _as_bad_request():
        made = security_groups.create(compute(), caller().project_id, given["name"], given["description"])
    return {"security_group": _view(made, [made])}


@blueprint.put(f"{PATH}/<security_group>")
def change(security_group: str) -> Body:
    """Update the name and the description of a security group."""
    proxied()
    validation.may_write()
    given = GROUP.read(read_object())
    with _as_bad_request():
        changed = security_groups.change(compute(), _id(security_group), _who(), dict(given))
    return {"security_group": _view(changed, [changed])}


@blueprint.delete(f"{PATH}/<security_group>")
def delete(security_group: str) -> tuple[str, int]:
    """Delete a security group that no server has."""
    proxied()
    validation.may_write()
    with _as_bad_request():
        security_groups.delete(compute(), _id(security_group), _who())
    return "", 202


@blueprint.post(RULES)
def create_rule() -> Body:
    """Add a rule for incoming traffic to a security group."""
    proxied()
    validation.may_write()
    wanted = rule(RULE.read(read_object()))
    with _as_bad_request():
        made = security_groups.add_rule(compute(), wanted, _who())
    return {"security_group_rule": _rule(made, security_groups.listed(compute(), *_own()))}


@blueprint.delete(f"{RULES}/<security_group_rule>")
def delete_rule(security_group_rule: str) -> tuple[str, int]:
    """Delete a rule of a security group."""
    proxied()
    validation.may_write()
    security_groups.delete_rule(compute(), validation.path_id(security_group_rule, "Security group rule"), _who())
    return "", 202


@blueprint.get("/servers/<server_id>/os-security-groups")
def of_server(server_id: str) -> Body:
    """List the security groups of a server."""
    groups = security_groups.of_server(compute(), find(server_id))
    return {"security_groups": [_view(group, groups) for group in groups]}


def _id(group_id: str) -> str:
    return validation.path_id(group_id, "Security group")


def _own() -> tuple[str, str | None]:
    return caller().project_id, validation.own_project()


def _who() -> tuple[str | None, str]:
    return validation.own_project(), caller().project_id


def _one(group_id: str) -> Body:
    group = security_groups.get(compute(), _id(group_id), *_who())
    return _view(group, security_groups.listed(compute(), *_own()))


@contextmanager
def _as_bad_request() -> Iterator[None]:
    """Answer a conflict as Nova does: with 400."""
    try:
        yield
    except Conflict as refusal:
        raise BadRequest(str(refusal)) from None


def _view(group: SecurityGroup, known: list[SecurityGroup]) -> Body:
    return {
        "id": group.id,
        "name": group.name,
        "description": group.description,
        "tenant_id": group.project_id,
        "rules": [_rule(rule, known) for rule in group.rules if rule.direction == INGRESS],
    }


def _rule(rule: SecurityRule, known: list[SecurityGroup]) -> Body:
    peer = next((group for group in known if group.id == rule.remote_group_id), None)
    anywhere = {4: "0.0.0.0/0", 6: "::/0"}[rule.version]
    ranged = rule.remote_group_id is None
    return {
        "id": rule.id,
        "parent_group_id": rule.group_id,
        "ip_protocol": rule.protocol,
        "from_port": -1 if rule.protocol == "icmp" and rule.first is None else rule.first,
        "to_port": -1 if rule.protocol == "icmp" and rule.last is None else rule.last,
        "ip_range": {"cidr": rule.remote_cidr or anywhere} if ranged else {},
        "group": {} if peer is None else {"tenant_id": peer.project_id, "name": peer.name},
    }
