"""Security groups and their rules."""

from flask import Blueprint

from api.body import read_object
from api.compute import validation
from api.network import bodies, views
from api.network.filters import fitting, one
from api.network.security_group_bodies import CHANGED_GROUP, GROUP, RULE, rule
from api.request_context import caller, compute
from climate.compute.models.security_group import VERSIONS, SecurityGroup, SecurityRule
from climate.compute.network.operations import security_groups

Body = dict[str, object]

ETHERTYPES = {version: name for name, version in VERSIONS.items()}

blueprint = Blueprint("network-security", __name__, url_prefix="/network/v2.0")


@blueprint.get("/security-groups")
def groups() -> Body:
    """List the security groups that match the query."""
    return {"security_groups": fitting([_view(group) for group in _all()])}


@blueprint.get("/security-groups/<group_id>")
def group(group_id: str) -> Body:
    """Show one security group with its rules."""
    return {"security_group": one([_view(group) for group in _all()], group_id, "Security group")}


@blueprint.post("/security-groups")
def create() -> tuple[Body, int]:
    """Create a security group, which lets its servers send anything and receive answers."""
    validation.may_write()
    given = GROUP.read(read_object())
    project_id = bodies.project(given) or caller().project_id
    made = security_groups.create(compute(), project_id, given["name"], given.get("description", ""))
    return {"security_group": _view(made)}, 201


@blueprint.put("/security-groups/<group_id>")
def change(group_id: str) -> Body:
    """Update the name or the description of a security group."""
    validation.may_write()
    given = CHANGED_GROUP.read(read_object())
    changes: dict[str, str] = {key: given[key] for key in ("name", "description") if key in given}
    own = validation.path_id(group_id, "Security group")
    return {"security_group": _view(security_groups.change(compute(), own, _who(), changes))}


@blueprint.delete("/security-groups/<group_id>")
def delete(group_id: str) -> tuple[str, int]:
    """Delete a security group that no server has."""
    validation.may_write()
    security_groups.delete(compute(), validation.path_id(group_id, "Security group"), _who())
    return "", 204


@blueprint.get("/security-group-rules")
def rules() -> Body:
    """List the rules of security groups that match the query."""
    return {"security_group_rules": fitting(_rules())}


@blueprint.get("/security-group-rules/<rule_id>")
def show_rule(rule_id: str) -> Body:
    """Show one rule of a security group."""
    return {"security_group_rule": one(_rules(), rule_id, "Security group rule")}


@blueprint.post("/security-group-rules")
def create_rule() -> tuple[Body, int]:
    """Add a rule to a security group."""
    validation.may_write()
    wanted = rule(RULE.read(read_object()))
    made = security_groups.add_rule(compute(), wanted, _who())
    return {"security_group_rule": _rule(made, caller().project_id)}, 201


@blueprint.delete("/security-group-rules/<rule_id>")
def delete_rule(rule_id: str) -> tuple[str, int]:
    """Delete a rule of a security group."""
    validation.may_write()
    security_groups.delete_rule(compute(), validation.path_id(rule_id, "Security group rule"), _who())
    return "", 204


def _who() -> tuple[str | None, str]:
    return validation.own_project(), caller().project_id


def _all() -> list[SecurityGroup]:
    validation.may_read()
    return security_groups.listed(compute(), caller().project_id, validation.own_project())


def _rules() -> list[Body]:
    return [_rule(rule, group.project_id) for group in _all() for rule in group.rules]


def _view(group: SecurityGroup) -> Body:
    return {
        "id": group.id,
        "name": group.name,
        "description": group.description,
        "stateful": True,
        "tags": [],
        "revision_number": 0,
        "created_at": views.moment(group.created_at),
        "updated_at": views.moment(group.updated_at),
        "security_group_rules": [_rule(rule, group.project_id) for rule in group.rules],
        **views.whose(group.project_id),
    }


def _rule(rule: SecurityRule, project_id: str) -> Body:
    return {
        "id": rule.id,
        "security_group_id": rule.group_id,
        "direction": rule.direction,
        "ethertype": ETHERTYPES[rule.version],
        "protocol": rule.protocol,
        "port_range_min": rule.first,
        "port_range_max": rule.last,
        "remote_ip_prefix": rule.remote_cidr,
        "remote_group_id": rule.remote_group_id,
        "remote_address_group_id": None,
        "description": rule.description,
        "revision_number": 0,
        "created_at": views.moment(rule.created_at),
        "updated_at": views.moment(rule.created_at),
        **views.whose(project_id),
    }
