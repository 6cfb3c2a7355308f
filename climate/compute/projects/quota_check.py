"""How much a project may have."""

from collections.abc import Mapping

from sqlalchemy import Connection

from climate.compute.errors import BadRequest, QuotaExceeded
from climate.compute.models.flavor import Flavor
from climate.compute.store.projects import quotas
from climate.compute.store.servers import servers

MOST_AT_ONCE = 1000
"""Servers that one request can be answered with."""

_TOLD = {"ram_mb": "ram"}


def allowed(
    conn: Connection,
    project_id: str,
    flavor: Flavor,
    count: int,
    least: int,
    used: Mapping[str, int] | None = None,
) -> int:
    """How many of `count` more servers the project may have, if `least` or more (cloud.md B.3).

    `used`: what counts against the limits; None: the servers that are here.
    Raises QuotaExceeded, and BadRequest for more than MOST_AT_ONCE.  One request
    of a project at a time gets past here: the project's limits stay locked.
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
