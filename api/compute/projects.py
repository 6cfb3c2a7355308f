"""Limits and quotas of a project."""

from collections.abc import Mapping
from typing import Any

from api.compute import asked
from api.compute.blueprint import compute_blueprint
from api.compute.microversion import since
from api.compute.servers import compute
from api.current import caller
from climate.compute.store import projects, servers
from climate.domain.errors import Forbidden

Body = dict[str, Any]

blueprint = compute_blueprint("projects")

OTHERS = {"key_pairs": 100, "metadata_items": asked.MOST_METADATA, "server_groups": 0, "server_group_members": 0}
"""Limits that are the same for all."""

FILES = {"injected_files": 0, "injected_file_content_bytes": 0, "injected_file_path_bytes": 0}
"""Limits that clients wanted to see before 2.57."""


@blueprint.get("/limits")
def limits() -> Body:
    """What the caller's project may have, and has."""
    asked.may_read()
    most, used = _standing(caller().project_id)
    absolute = {
        "maxTotalInstances": most["instances"],
        "maxTotalCores": most["cores"],
        "maxTotalRAMSize": most["ram_mb"],
        "maxTotalKeypairs": OTHERS["key_pairs"],
        "maxServerMeta": OTHERS["metadata_items"],
        "maxImageMeta": OTHERS["metadata_items"],
        "maxServerGroups": OTHERS["server_groups"],
        "maxServerGroupMembers": OTHERS["server_group_members"],
        "totalInstancesUsed": used["instances"],
        "totalCoresUsed": used["cores"],
        "totalRAMUsed": used["ram_mb"],
        "totalServerGroupsUsed": 0,
    }
    return {"limits": {"rate": [], "absolute": absolute}}


@blueprint.get("/os-quota-sets/<project_id>")
def quota(project_id: str) -> Body:
    """The quota of a project."""
    most, _ = _standing(_readable(project_id))
    return {"quota_set": {"id": project_id} | _shown(most)}


@blueprint.get("/os-quota-sets/<project_id>/defaults")
def defaults(project_id: str) -> Body:
    """The quota of a project that was given none of its own."""
    asked.may_read()
    return {"quota_set": {"id": project_id} | _shown(projects.DEFAULT_LIMITS)}


@blueprint.get("/os-quota-sets/<project_id>/detail")
def detail(project_id: str) -> Body:
    """The quota of a project, and what is used of it."""
    most, used = _standing(_readable(project_id))
    in_use = _shown(dict.fromkeys(most, 0) | dict(used))
    shown = {
        key: {"limit": limit, "in_use": in_use[key] if key in ("instances", "cores", "ram") else 0, "reserved": 0}
        for key, limit in _shown(most).items()
    }
    return {"quota_set": {"id": project_id} | shown}


def _standing(project_id: str) -> tuple[Mapping[str, int], Mapping[str, int]]:
    with compute().engine.connect() as conn:
        return projects.limits(conn, project_id), servers.used(conn, project_id)


def _shown(most: Mapping[str, int]) -> dict[str, int]:
    shown = {"instances": most["instances"], "cores": most["cores"], "ram": most["ram_mb"]} | OTHERS
    return shown if since(57) else shown | FILES


def _readable(project_id: str) -> str:
    asked.may_read()
    if project_id != caller().project_id and not caller().is_admin:
        raise Forbidden("Policy doesn't allow os_compute_api:os-quota-sets:show to be performed.")
    return project_id
