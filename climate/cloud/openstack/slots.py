"""Slots of shared capacity as inventories of Placement, which allocates them to servers atomically.

Each reservation has a resource class, and each host a provider below its own with an inventory of that class. Both have
the names that Blazar gives them. The private flavor asks for one unit per server. The claim of one more server than
there are slots fails in Placement, even if several requests are scheduled at the same moment. The page
docs/openstack.md has the setting that Placement needs for it.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress

import structlog

from climate.cloud import NotYet
from climate.cloud.openstack.http import Clash, Missing, Remote
from climate.cloud.openstack.placement import OWN

PLACEMENT = "placement"
PREFIX = "blazar_"
"""Prefix of the name of a provider with slots; the rest is the name of its host."""

ATTEMPTS = 5
"""Number of times that an inventory is read and stored; other reservations change those of the same host."""

Inventories = dict[str, Mapping[str, object]]

log = structlog.get_logger(__name__)


def class_of(pool: str) -> str:
    """Return the resource class of a reservation."""
    return OWN + pool.upper().replace("-", "_")


def are_counted(remote: Remote) -> bool:
    """Return whether the cloud has a Placement; a bundled cloud has none, and counts slots by itself."""
    return remote.has(PLACEMENT)


def offer(remote: Remote, pool: str, counts: Mapping[str, int]) -> None:
    """Let hosts have so many slots each; zero removes them, or closes them while servers use some."""
    unit = class_of(pool)
    remote.put(f"/resource_classes/{unit}", None, PLACEMENT)
    for host, count in sorted(counts.items()):
        _store(remote, host, unit, count)


def drop(remote: Remote, pool: str, hosts: Iterable[str]) -> None:
    """Remove all slots, and the class. Raise NotYet while some are used: Nova deletes an allocation after its server.

    The class of a host that has left the cloud with its slots remains, since Placement deletes no class in use.
    """
    unit = class_of(pool)
    used = [host for host in sorted(hosts) if _store(remote, host, unit, 0)]
    if used:
        raise NotYet(f"servers still use slots of {pool} on {', '.join(used)}")
    try:
        remote.delete(f"/resource_classes/{unit}", PLACEMENT)
    except Missing:
        return
    except Clash as clash:
        log.warning("resource class of a reservation remains in Placement", resource_class=unit, error=str(clash))


def _store(remote: Remote, host: str, unit: str, count: int) -> bool:
    """Store the number of slots of a host; return whether slots that are to be removed are still used."""
    for _ in range(ATTEMPTS):
        path = _path(remote, host, create=count > 0)
        if path is None:
            return False
        seen = remote.get(f"{path}/inventories", PLACEMENT)
        known: Inventories = dict(seen["inventories"])
        wanted = _changed(remote, path, known, unit, count)
        is_used = count == 0 and unit in wanted
        if wanted == known:
            return is_used
        body = {"resource_provider_generation": seen["resource_provider_generation"], "inventories": wanted}
        with suppress(Clash):  # another reservation, or the start of a server, changed the provider since it was read
            remote.put(f"{path}/inventories", body, PLACEMENT)
            return is_used
    raise NotYet(f"the slots of host {host} are changed by others at this moment")


def _changed(remote: Remote, path: str, known: Inventories, unit: str, count: int) -> Inventories:
    """Return the inventories of a provider with that many slots; Placement removes none that is in use."""
    result = {name: each for name, each in known.items() if name != unit}
    if count > 0:
        return result | {unit: inventory(count, 0)}
    if unit in known and remote.get(f"{path}/usages", PLACEMENT)["usages"].get(unit, 0):
        total = known[unit]["total"]
        return result | {unit: inventory(total, total)}
    return result


def inventory(total: object, reserved: object) -> dict[str, object]:
    """Return an inventory of slots; those reserved are closed to further servers."""
    one_each = {"min_unit": 1, "max_unit": 1, "step_size": 1, "allocation_ratio": 1.0}
    return {"total": total, "reserved": reserved, **one_each}


def _path(remote: Remote, host: str, *, create: bool) -> str | None:
    """Return the path of the provider of a host's slots."""
    name = PREFIX + host
    known = _id_of(remote, name)
    if known is None and create:
        parent = _id_of(remote, host)
        if parent is None:
            raise NotYet(f"Placement has no resource provider {host}")
        with suppress(Clash):  # another worker has created it
            remote.post("/resource_providers", {"name": name, "parent_provider_uuid": parent}, PLACEMENT)
        known = _id_of(remote, name)
    return f"/resource_providers/{known}" if known else None


def _id_of(remote: Remote, name: str) -> str | None:
    found = remote.get("/resource_providers", PLACEMENT, name=name)["resource_providers"]
    return str(found[0]["uuid"]) if found else None
