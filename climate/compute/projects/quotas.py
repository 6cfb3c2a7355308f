"""Quotas and quota classes as administrators set them.

Usage is checked in quota_check.py, server_groups.py and keypairs.py.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import Connection

from climate.compute.audit_trail import QUOTA, Change
from climate.compute.context import Compute
from climate.compute.errors import BadRequest
from climate.compute.store.cells import servers as cell_servers
from climate.compute.store.networks import fixed_ips, floating_ips, networks, networks_without_subnet, ports
from climate.compute.store.projects import quotas
from climate.compute.store.servers import server_groups, servers
from climate.database.connections import reading


@dataclass(frozen=True, slots=True)
class QuotaUsage:
    """The limits of a project (-1: unlimited), and its usage."""

    limits: Mapping[str, int]
    used: Mapping[str, int]


def quota_usage(compute: Compute, project_id: str) -> QuotaUsage:
    """Return the limits of a project and their usage. Memory in MB."""
    with reading(compute.engine) as conn:
        return QuotaUsage(quotas.limits(conn, project_id), _used(compute, conn, project_id))


def change(
    compute: Compute, project_id: str, limits: Mapping[str, int | None], *, force: bool = False
) -> Mapping[str, int]:
    """Update limits of a project, None: to the default; return all. BadRequest for less than is used, unless forced."""
    with compute.engine.begin() as conn:
        before = quotas.lock_limits(conn, project_id)
        used = {} if force else _used(compute, conn, project_id)
        for name, limit in limits.items():
            if limit is not None and 0 <= limit < used.get(name, 0):
                raise BadRequest(
                    f"Quota limit {limit} for {name.removesuffix('_mb')} must be greater than or equal to "
                    f"already used and reserved {used[name]}."
                )
        quotas.set_limits(conn, project_id, limits)
        return _changed(compute, conn, project_id, before)


def reset(compute: Compute, project_id: str) -> None:
    """Reset a project to the default limits."""
    with compute.engine.begin() as conn:
        before = quotas.lock_limits(conn, project_id)
        quotas.forget_limits(conn, project_id)
        _changed(compute, conn, project_id, before)


def defaults(compute: Compute) -> Mapping[str, int]:
    """Return the limits of projects without limits of their own. Memory in MB."""
    with reading(compute.engine) as conn:
        return quotas.defaults(conn)


def class_limits(compute: Compute, name: str) -> Mapping[str, int]:
    """Return the limits of a quota class; those that nobody has set are the built-in ones."""
    with reading(compute.engine) as conn:
        return {**quotas.BUILT_IN, **quotas.class_limits(conn, name)}


def change_class(compute: Compute, name: str, limits: Mapping[str, int]) -> Mapping[str, int]:
    """Update limits of a quota class; return all. Those of the class `default` apply to all other projects at once."""
    with compute.engine.begin() as conn:
        before = quotas.class_limits(conn, name)
        after = quotas.set_class_limits(conn, name, limits)
        compute.tell_change(conn, Change(QUOTA, f"class {name}", name, dict(before), dict(after)))
    return {**quotas.BUILT_IN, **after}


def _changed(compute: Compute, conn: Connection, project_id: str, before: Mapping[str, int]) -> Mapping[str, int]:
    """Record the change of a project's limits; return the limits."""
    after = quotas.limits(conn, project_id)
    compute.tell_change(conn, Change(QUOTA, project_id, "", dict(before), dict(after), project_id))
    return after


def _used(compute: Compute, conn: Connection, project_id: str) -> dict[str, int]:
    count = cell_servers.used if compute.cells.is_api else servers.used
    used = dict(count(conn, project_id)) | {"server_groups": server_groups.count(conn, project_id)}
    used |= {"fixed_ips": fixed_ips.used(conn, project_id), "floating_ips": floating_ips.used(conn, project_id)}
    created = networks.count(conn, project_id) + networks_without_subnet.count(conn, project_id)
    return used | {"ports": ports.count(conn, project_id), "networks": created}
