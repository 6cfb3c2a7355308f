"""Quotas of floating IPs, networks and ports of a project."""

from flask import Blueprint

from api.audited import audited
from api.body import read_object
from api.compute import validation
from api.network.bodies import QUOTA
from api.request_context import caller, compute
from climate.compute.models.security_group import MOST_GROUPS, MOST_RULES
from climate.compute.projects import quotas
from climate.domain.errors import Forbidden

Body = dict[str, object]

blueprint = Blueprint("network-quotas", __name__, url_prefix="/network/v2.0")

FIXED = {
    **dict.fromkeys(("subnetpool", "router", "rbac_policy"), 0),
    "security_group": MOST_GROUPS,
    "security_group_rule": MOST_RULES,
}
"""Limits that cannot be changed."""

SETTABLE = {"floatingip": "floating_ips", "port": "ports", "network": "networks", "subnet": "networks"}
"""Names of limits, and those of Compute; a network has one subnet."""


@blueprint.get("/quotas/<project_id>")
def show(project_id: str) -> Body:
    """Show the quota of a project."""
    _may_see(project_id)
    return {"quota": _quota(project_id)}


@blueprint.get("/quotas/<project_id>/default")
def default(project_id: str) -> Body:
    """Show the default quota."""
    _may_see(project_id)
    defaults = quotas.defaults(compute())
    limits = {name: defaults[key] for name, key in SETTABLE.items()}
    return {"quota": {**FIXED, **limits, "project_id": project_id}}


@blueprint.get("/quotas/<project_id>/details")
@blueprint.get("/quotas/<project_id>/details.json")
def details(project_id: str) -> Body:
    """Show the quota and the usage of a project."""
    _may_see(project_id)
    now = quotas.quota_usage(compute(), project_id)
    limits = FIXED | {name: now.limits[key] for name, key in SETTABLE.items()}
    used = {name: now.used[key] for name, key in SETTABLE.items()}
    shown = {name: {"limit": most, "used": used.get(name, 0), "reserved": 0} for name, most in limits.items()}
    return {"quota": shown}


@blueprint.put("/quotas/<project_id>")
def change(project_id: str) -> Body:
    """Update the quota of a project."""
    validation.may_administer()
    validation.name(project_id, "the id of the project")
    given = QUOTA.read(read_object())
    wanted = {key: given[key] for key in {*SETTABLE.values()} if key in given}
    quotas.change(audited(), project_id, wanted, force=given["force"])
    return {"quota": _quota(project_id)}


@blueprint.delete("/quotas/<project_id>")
def reset(project_id: str) -> tuple[str, int]:
    """Reset the network quota of a project to the default; its compute quota stays."""
    validation.may_administer()
    validation.name(project_id, "the id of the project")
    wanted = dict.fromkeys(SETTABLE.values())
    quotas.change(audited(), project_id, wanted, force=True)
    return "", 204


def _quota(project_id: str) -> Body:
    limits = quotas.quota_usage(compute(), project_id).limits
    return {**FIXED, **{name: limits[key] for name, key in SETTABLE.items()}, "project_id": project_id}


def _may_see(project_id: str) -> None:
    validation.may_read()
    if project_id != caller().project_id and not caller().is_admin:
        raise Forbidden("Only administrators see the quotas of other projects.")
