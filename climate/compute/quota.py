"""How much a project may have."""

from sqlalchemy import Connection

from climate.compute.errors import QuotaExceeded
from climate.compute.flavor import Flavor
from climate.compute.store import projects, servers


def check(conn: Connection, project_id: str, flavor: Flavor, count: int) -> None:
    """Return when the project may have `count` more servers, else raise QuotaExceeded.

    One request of a project at a time gets past here: the project's limits stay locked.
    """
    limits = projects.lock_limits(conn, project_id)
    used = servers.used(conn, project_id)
    demand = {"instances": count, "cores": count * flavor.vcpus, "ram_mb": count * flavor.ram_mb}
    over = [name for name, wanted in demand.items() if limits[name] >= 0 and used[name] + wanted > limits[name]]
    if over:
        told = {"ram_mb": "ram"}
        raise QuotaExceeded(
            f"Quota exceeded for {', '.join(told.get(name, name) for name in over)}: "
            f"Requested {', '.join(str(demand[name]) for name in over)}, "
            f"but already used {', '.join(f'{used[name]} of {limits[name]}' for name in over)} "
            f"{', '.join(told.get(name, name) for name in over)}"
        )
