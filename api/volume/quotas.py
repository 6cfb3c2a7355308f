"""Block storage limits: leases of storage have their own limits, and only they create volumes."""

from flask import Blueprint, request

from api.compute import validation
from api.request_context import caller, compute
from climate.compute import volumes
from climate.domain.errors import Forbidden

Body = dict[str, object]

blueprint = Blueprint("volume-quotas", __name__, url_prefix="/volume/v3")

UNLIMITED = -1
NEVER_MADE = ("snapshots", "backups", "backup_gigabytes", "groups")
"""Limits of Cinder for resources that do not exist here."""


@blueprint.get("/limits")
def limits() -> Body:
    """Show the limits and the usage of the project."""
    validation.may_read()
    used = _used(caller().project_id)
    absolute = {
        "maxTotalVolumes": UNLIMITED,
        "maxTotalVolumeGigabytes": UNLIMITED,
        "totalVolumesUsed": used["volumes"],
        "totalGigabytesUsed": used["gigabytes"],
        **{f"maxTotal{name}": 0 for name in ("Snapshots", "Backups", "BackupGigabytes")},
        **{f"total{name}Used": 0 for name in ("Snapshots", "Backups", "BackupGigabytes")},
    }
    return {"limits": {"rate": [], "absolute": absolute}}


@blueprint.get("/os-quota-sets/<project_id>")
@blueprint.get("/os-quota-sets/<project_id>/defaults")
def quota(project_id: str) -> Body:
    """Show the quota of a project; with `usage`, also its usage."""
    validation.may_read()
    if validation.own_project() not in (None, project_id):
        raise Forbidden("Only administrators may see the quotas of other projects")
    most = {"volumes": UNLIMITED, "gigabytes": UNLIMITED, "per_volume_gigabytes": UNLIMITED}
    most |= dict.fromkeys(NEVER_MADE, 0)
    if not validation.flag(request.args.get("usage", "false"), "usage"):
        return {"quota_set": {"id": project_id, **most}}
    used = _used(project_id)
    shown = {name: {"limit": limit, "in_use": used.get(name, 0), "reserved": 0} for name, limit in most.items()}
    return {"quota_set": {"id": project_id, **shown}}


def _used(project_id: str) -> dict[str, int]:
    result = volumes.listed(compute(), project_id)
    return {"volumes": len(result), "gigabytes": sum(one.size_gb for one in result)}
