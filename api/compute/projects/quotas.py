"""Limits and quotas of a project."""

from collections.abc import Mapping

from flask import request

from api.audited import audited
from api.body import read_object
from api.compute import validation
from api.compute.blueprint import compute_blueprint
from api.compute.microversion import since
from api.compute.projects.project_bodies import QUOTA, QUOTA_36_TO_56, QUOTA_57
from api.request_context import caller, compute
from climate.compute.models.security_group import MOST_GROUPS, MOST_RULES
from climate.compute.projects import quotas
from climate.compute.projects.quotas import QuotaUsage
from climate.compute.store.projects.quotas import BUILT_IN
from climate.domain.errors import Forbidden, InvalidInput

Body = dict[str, object]

blueprint = compute_blueprint("projects")

SETTABLE = {
    "instances": "instances",
    "cores": "cores",
    "ram": "ram_mb",
    "key_pairs": "key_pairs",
    "server_groups": "server_groups",
    "server_group_members": "server_group_members",
}
"""Name of each limit in the API -> its name in the engine."""

SAME_FOR_ALL = {"metadata_items": validation.MOST_METADATA}
FILES = {"injected_files": 0, "injected_file_content_bytes": 0, "injected_file_path_bytes": 0}
"""Limits of injected files, which answers before 2.57 have; files are not injected."""

OF_NETWORKS = {"fixed_ips": "fixed_ips", "floating_ips": "floating_ips"}
"""Limits that are set and shown by the network service from 2.36 on."""

_SECURITY = {
    "maxSecurityGroups": MOST_GROUPS,
    "totalSecurityGroupsUsed": 1,
    "maxSecurityGroupRules": MOST_RULES,
}
_PERSONALITY = {"maxPersonality": 0, "maxPersonalitySize": 0}


@blueprint.get("/limits")
def limits() -> Body:
    """Show the limits and the usage of a project: the caller's, or the one that an administrator names."""
    validation.may_read()
    project_id = request.args.get("tenant_id") or caller().project_id
    if project_id != caller().project_id and not caller().is_admin:
        raise Forbidden("Only administrators see the limits of other projects.")
    now = quotas.quota_usage(compute(), project_id)
    most, used = now.limits, now.used
    absolute = {
        "maxTotalInstances": most["instances"],
        "maxTotalCores": most["cores"],
        "maxTotalRAMSize": most["ram_mb"],
        "maxTotalKeypairs": most["key_pairs"],
        "maxServerMeta": validation.MOST_METADATA,
        "maxServerGroups": most["server_groups"],
        "maxServerGroupMembers": most["server_group_members"],
        "totalInstancesUsed": used["instances"],
        "totalCoresUsed": used["cores"],
        "totalRAMUsed": used["ram_mb"],
        "totalServerGroupsUsed": used["server_groups"],
    }
    return {"limits": {"rate": [], "absolute": absolute | _older_limits(now)}}


@blueprint.get("/os-quota-sets/<project_id>")
def quota(project_id: str) -> Body:
    """Show the quota of a project."""
    now = quotas.quota_usage(compute(), _readable(project_id))
    return {"quota_set": {"id": project_id} | _shown(now.limits)}


@blueprint.get("/os-quota-sets/<project_id>/defaults")
def defaults(project_id: str) -> Body:
    """Show the default quota."""
    validation.may_read()
    return {"quota_set": {"id": project_id} | _shown(quotas.defaults(compute()))}


@blueprint.get("/os-quota-sets/<project_id>/detail")
def detail(project_id: str) -> Body:
    """Show the quota and the usage of a project."""
    now = quotas.quota_usage(compute(), _readable(project_id))
    used = {name: now.used.get(key, 0) for name, key in _settable().items()}
    shown = {
        name: {"limit": limit, "in_use": used.get(name, 0), "reserved": 0} for name, limit in _shown(now.limits).items()
    }
    return {"quota_set": {"id": project_id} | shown}


@blueprint.put("/os-quota-sets/<project_id>")
def change(project_id: str) -> Body:
    """Update the quota of a project.

    Limits that are the same for all projects are accepted, and stay as they are: the answer shows them.
    """
    validation.may_administer()
    _check_query()
    validation.name(project_id, "the id of the project")
    form = QUOTA_57 if since(57) else QUOTA_36_TO_56 if since(36) else QUOTA
    given = form.read(read_object())
    wanted = {name: limit for name, limit in given.items() if name in BUILT_IN}
    return {"quota_set": _shown(quotas.change(audited(), project_id, wanted, force=given["force"]))}


@blueprint.delete("/os-quota-sets/<project_id>")
def reset(project_id: str) -> tuple[str, int]:
    """Reset a project to the default quota."""
    validation.may_administer()
    _check_query()
    quotas.reset(audited(), project_id)
    return "", 202


def _check_query() -> None:
    if "user_id" in request.args:
        raise InvalidInput("user_id is not supported: quotas belong to projects")


def _older_limits(now: QuotaUsage) -> dict[str, int]:
    """Return the limits that later microversions removed: networks by 2.36, images by 2.39, files by 2.57."""
    most, used = now.limits["floating_ips"], now.used["floating_ips"]
    networks = _SECURITY | {"maxTotalFloatingIps": most, "totalFloatingIpsUsed": used}
    dropped = ((36, networks), (39, {"maxImageMeta": validation.MOST_METADATA}), (57, _PERSONALITY))
    return {key: limit for minor, limits in dropped if not since(minor) for key, limit in limits.items()}


def _shown(most: Mapping[str, int]) -> dict[str, int]:
    shown = {name: most[key] for name, key in _settable().items()} | SAME_FOR_ALL
    groups = {} if since(36) else {"security_groups": MOST_GROUPS, "security_group_rules": MOST_RULES}
    return shown | groups | ({} if since(57) else FILES)


def _settable() -> Mapping[str, str]:
    """Return the limits that can be set at the microversion of the request."""
    return SETTABLE if since(36) else SETTABLE | OF_NETWORKS


def _readable(project_id: str) -> str:
    validation.may_read()
    if project_id != caller().project_id and not caller().is_admin:
        raise Forbidden("Policy doesn't allow os_compute_api:os-quota-sets:show to be performed.")
    return project_id
