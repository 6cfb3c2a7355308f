"""Quota check of requests for servers."""

from collections.abc import Mapping

from sqlalchemy import Connection

from climate.compute.errors import BadRequest, QuotaExceeded
from climate.compute.models.flavor import Flavor
from climate.compute.store.projects import quotas
from climate.compute.store.servers import servers

MOST_AT_ONCE = 1000
"""Maximum number of servers in one request."""

_TOLD = {"ram_mb": "ram"}


def allowed(
    conn: Connection,
    project_id: str,
    flavor: Flavor,
    count: int,
    least: int,
    used: Mapping[str, int] | None = None,
) -> int:
    """Return how many of `count` more servers the quota of the project allows, at least `least`.

    `used`: usage to compare with the limits; None: that of the servers here. Raises QuotaExceeded, and BadRequest for
    more than MOST_AT_ONCE. The limits stay locked until the commit, so the requests of a project are checked one at a
    time.
    """
    limits = quotas.lock_limits(conn, project_id)
    used = servers.used(conn, project_id) if used is None else used
    each = {"instances": 1, "cores": flavor.vcpus, "ram_mb": flavor.ram_mb}
    fitting = [max(0, limits[name] - used[name]) // size for name, size in each.items() if limits[name] >= 0 < size]
    most = min([count, *fitting])
    if most < least:
        raise QuotaExceeded(_refusal(limits, used, {name: least * size for name, size in each.items()}, most))
    if least > MOST_AT_ONCE:
        raise BadRequest(f"At most {MOST_AT_ONCE} servers can be asked for in one request.")
    return min(most, MOST_AT_ONCE)


def _refusal(limits: Mapping[str, int], used: Mapping[str, int], demand: Mapping[str, int], most: int) -> str:
    over = [name for name, wanted in demand.items() if 0 <= limits[name] < used[name] + wanted]
    names = ", ".join(_TOLD.get(name, name) for name in over)
    requested = ", ".join(str(demand[name]) for name in over)
    taken = ", ".join(f"{used[name]} of {limits[name]}" for name in over)
    allowed = f"can only run {most} more" if most else "cannot run any more"
    return (
        f"Quota exceeded for {names}: Requested {requested}, but already used {taken} {names}. "
        f"You {allowed} instances of this type."
    )
