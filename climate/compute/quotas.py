"""Quotas as administrators set them; what is counted against them is in quota.py, groups.py and the API of keypairs."""

from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import Connection

from climate.compute.context import Compute
from climate.compute.errors import BadRequest
from climate.compute.store import addresses, cell_servers, floating, groups, projects, servers
from climate.connections import reading


@dataclass(frozen=True, slots=True)
class Standing:
    """What a project may have (-1: as much as it likes), and what it has."""

    limits: Mapping[str, int]
    used: Mapping[str, int]


def standing(compute: Compute, project_id: str) -> Standing:
    """The limits of a project and what is used of them.  Memory in MB."""
    with reading(compute.engine) as conn:
        return Standing(projects.limits(conn, project_id), _used(compute, conn, project_id))


def change(compute: Compute, project_id: str, limits: Mapping[str, int], *, force: bool = False) -> Mapping[str, int]:
    """Change limits of a project; all of them then.  BadRequest for less than is used, unless forced."""
    with compute.engine.begin() as conn:
        projects.lock_limits(conn, project_id)
        used = {} if force else _used(compute, conn, project_id)
        for name, limit in limits.items():
            if 0 <= limit < used.get(name, 0):
                raise BadRequest(
                    f"Quota limit {limit} for {name.removesuffix('_mb')} must be greater than or equal to "
                    f"already used and reserved {used[name]}."
                )
        projects.set_limits(conn, project_id, limits)
        return projects.limits(conn, project_id)


def reset(compute: Compute, project_id: str) -> None:
    """Give a project the limits of those that have no others."""
    with compute.engine.begin() as conn:
        projects.forget_limits(conn, project_id)


def _used(compute: Compute, conn: Connection, project_id: str) -> dict[str, int]:
    count = cell_servers.used if compute.cells.is_api else servers.used
    used = dict(count(conn, project_id)) | {"server_groups": groups.count(conn, project_id)}
    return used | {"fixed_ips": addresses.used(conn, project_id), "floating_ips": floating.used(conn, project_id)}
