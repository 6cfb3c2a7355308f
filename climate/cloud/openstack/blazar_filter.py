"""Metadata of pools for blazar-nova's BlazarFilter, and the preemptible servers that it admits to free hosts.

The filter recognises a pool by the aggregate's availability zone. It admits a project by `blazar:owner`, or by a key
that is the project's id.
"""

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress

from climate.cloud.openstack import servers
from climate.cloud.openstack.fencing import Changes, Metadata
from climate.cloud.openstack.http import Body, Missing, Remote
from climate.cloud.openstack.pools.aggregates import Pool

ZONE, ZONE_PREFIX = "availability_zone", "blazar_"
ADMITTED = "blazar:project"
"""Value of the key that is the id of a project which may use the pool."""

PREEMPTIBLE = "blazar:preemptible"
"""Extra spec of a flavor whose servers run on free hosts until these are lent."""

TRUE = frozenset({"1", "t", "true", "on", "y", "yes"})


def pool_metadata(name: str, projects: Sequence[str]) -> Metadata:
    """Return the metadata by which the filter knows a pool and lets projects in."""
    return {ZONE: f"{ZONE_PREFIX}{name}", **dict.fromkeys(projects, ADMITTED)}


def closing_metadata(pool: Pool) -> Changes:
    """Return the changes after which the filter admits no project to a pool; its zone stays and keeps others off."""
    return dict.fromkeys(key for key, value in pool.metadata.items() if value == ADMITTED)


def evict(remote: Remote, hosts: Collection[str]) -> int:
    """Delete the preemptible servers on these hosts; return how many there were."""
    matching = [each for each in servers.on(remote, hosts) if is_preemptible(each)]
    for each in matching:
        with suppress(Missing):  # Nova lists a server until its deletion is complete
            remote.delete(f"/servers/{each['id']}")
    return len(matching)


def is_preemptible(server: Body) -> bool:
    """Return whether a server runs on free hosts only until these are lent."""
    specs: Mapping[str, str] = server["flavor"].get("extra_specs") or {}
    return str(specs.get(PREEMPTIBLE, "")).strip().lower() in TRUE
