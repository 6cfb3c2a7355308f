"""Security groups, read-only: each project has one group, which allows all traffic."""

from uuid import NAMESPACE_URL, uuid5

from flask import Blueprint

from api.compute import validation
from api.network.filters import fitting, one
from api.request_context import caller

Body = dict[str, object]

blueprint = Blueprint("network-security", __name__, url_prefix="/network/v2.0")


@blueprint.get("/security-groups")
def groups() -> Body:
    """List the group of the caller's project."""
    validation.may_read()
    return {"security_groups": fitting([_group(caller().project_id)])}


@blueprint.get("/security-groups/<group_id>")
def group(group_id: str) -> Body:
    """Show the group of the caller's project."""
    validation.may_read()
    return {"security_group": one([_group(caller().project_id)], group_id, "Security group")}


@blueprint.get("/security-group-rules")
def rules() -> Body:
    """List the rules of the group."""
    validation.may_read()
    return {"security_group_rules": fitting(_rules(caller().project_id))}


@blueprint.get("/security-group-rules/<rule_id>")
def rule(rule_id: str) -> Body:
    """Show one rule of the group."""
    validation.may_read()
    return {"security_group_rule": one(_rules(caller().project_id), rule_id, "Security group rule")}


def _id(project_id: str, *words: str) -> str:
    return str(uuid5(NAMESPACE_URL, "/".join(("climate:security-group", project_id, *words))))


def _group(project_id: str) -> Body:
    return {
        "id": _id(project_id),
        "name": "default",
        "description": "Lets everything through.",
        "stateful": False,
        "tenant_id": project_id,
        "project_id": project_id,
        "security_group_rules": _rules(project_id),
    }


def _rules(project_id: str) -> list[Body]:
    kinds = [(direction, family) for direction in ("egress", "ingress") for family in ("IPv4", "IPv6")]
    nothing = dict.fromkeys(("protocol", "port_range_min", "port_range_max", "remote_ip_prefix", "remote_group_id"))
    return [
        {
            "id": _id(project_id, direction, family),
            "security_group_id": _id(project_id),
            "direction": direction,
            "ethertype": family,
            "description": "",
            "tenant_id": project_id,
            "project_id": project_id,
            **nothing,
        }
        for direction, family in kinds
    ]
