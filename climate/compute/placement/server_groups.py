"""Server groups: affinity and anti-affinity of servers, strict or best effort (soft), as in Nova."""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Connection

from climate.compute.context import Compute
from climate.compute.errors import BadRequest, Conflict, NotFound, QuotaExceeded
from climate.compute.models.request import Group
from climate.compute.scheduler.scheduler_parts import Rules
from climate.compute.store.projects import quotas
from climate.compute.store.reservations import shared_capacity
from climate.compute.store.servers import server_groups as rows
from climate.database.connections import reading

AFFINITY, ANTI_AFFINITY = "affinity", "anti-affinity"
SOFT_AFFINITY, SOFT_ANTI_AFFINITY = "soft-affinity", "soft-anti-affinity"

KEPT_BY = {
    AFFINITY: "ServerGroupAffinityFilter",
    ANTI_AFFINITY: "ServerGroupAntiAffinityFilter",
    SOFT_AFFINITY: "ServerGroupSoftAffinityWeigher",
    SOFT_ANTI_AFFINITY: "ServerGroupSoftAntiAffinityWeigher",
}
"""Policy -> the filter that enforces it, or the weigher that prefers it."""

MOST_ON_NODE = "max_server_per_host"
"""The rule of an anti-affinity group: maximum number of its servers on one node; by default one."""

LONGEST_NAME = 255

SEVERAL = 2
"""Groups of one name to read: two are enough to detect that a name is ambiguous."""

MOST_LISTED = 1000
"""Maximum number of groups in one answer."""


@dataclass(frozen=True, slots=True)
class ServerGroup:
    """A group with the ids of its members, oldest first."""

    id: str
    name: str
    project_id: str
    user_id: str
    policy: str
    created_at: datetime
    rules: Mapping[str, int]
    members: tuple[str, ...] = ()


def create(
    compute: Compute, *, project_id: str, user_id: str, name: str, policy: str, most: int | None = None
) -> ServerGroup:
    """Create a group; `most`: maximum number of its servers on one node.

    Raises BadRequest for an unknown policy or one without such a rule, QuotaExceeded for one group too many.
    """
    if policy not in KEPT_BY:
        raise BadRequest(f"A server group's policy is one of {', '.join(KEPT_BY)}, not {policy!r}.")
    if most is not None and policy != ANTI_AFFINITY:
        raise BadRequest(f"Only the policy {ANTI_AFFINITY} supports rules.")
    with compute.engine.begin() as conn:
        quota = quotas.lock_limits(conn, project_id)["server_groups"]
        if 0 <= quota <= rows.count(conn, project_id):
            raise QuotaExceeded(f"Quota exceeded, too many server groups: the project may have {quota}.")
        owner = {"project_id": project_id, "user_id": user_id}
        made = rows.insert(conn, name, owner, policy, {} if most is None else {MOST_ON_NODE: most})
        return _own(conn, made, None)


def get(compute: Compute, group_id: str, project_id: str | None = None) -> ServerGroup:
    """Return the group if it belongs to the project, when one is given; else raise NotFound."""
    with reading(compute.engine) as conn:
        return _own(conn, group_id, project_id)


def listed(
    compute: Compute,
    project_id: str | None = None,
    limit: int = MOST_LISTED,
    offset: int = 0,
    marker: str | None = None,
) -> list[ServerGroup]:
    """Return the groups of a project, or of all projects, oldest first, after the one with the id `marker`."""
    with reading(compute.engine) as conn:
        return [_group(row) for row in rows.listed(conn, project_id, min(limit, MOST_LISTED), offset, marker)]


def delete(compute: Compute, group_id: str, project_id: str | None = None) -> None:
    """Delete a group; its servers stay, in no group. Raises NotFound, Conflict for that of a reservation."""
    with compute.engine.begin() as conn:
        _own(conn, group_id, project_id)
        pool = shared_capacity.with_group(conn, group_id)
        if pool is not None:
            raise Conflict(f"Instance group {group_id} belongs to the reservation {pool}, and is deleted with it.")
        rows.delete(conn, group_id)


def hinted(conn: Connection, hints: Mapping[str, Any], project_id: str) -> str | None:
    """Return the id of the group that the hint `group` names by its id, or by its name in this project.

    Raises BadRequest for any other value, for an unknown name, and for an ambiguous one.
    """
    named = hints.get("group")
    if named is None:
        return None
    if is_id(named):
        return str(UUID(named))
    if not isinstance(named, str) or not named or len(named) > LONGEST_NAME or "\0" in named:
        raise BadRequest("The hint 'group' must be the id or the name of a server group.")
    result = rows.named(conn, named, project_id, SEVERAL)
    if not result:
        raise BadRequest(f"Server group {named[:80]} could not be found.")
    if len(result) > 1:
        raise BadRequest(f"Several server groups are named {named[:80]}: name one by its id, such as {result[0]}.")
    return result[0]


def is_id(value: object) -> bool:
    """Return whether the value is the text of a UUID."""
    try:
        return isinstance(value, str) and str(UUID(value)) == value.lower()
    except ValueError:
        return False


def joining(conn: Connection, rules: Rules, group_id: str, project_id: str, least: int) -> tuple[Group, float]:
    """Return the locked group with the nodes of its members, and how many servers may join it, at least `least`.

    The lock replaces Nova's late check on the node. Until the commit nobody else places a member, so the nodes that are
    read here stay valid. The group of a reservation has as many members as the reservation has slots, whatever the
    project's limit. Raises BadRequest if the project has no such group or no filter enforces its policy, QuotaExceeded
    if it would have too many members.
    """
    limits = quotas.lock_limits(conn, project_id)
    result = rows.lock(conn, group_id)
    if result is None or result["project_id"] != project_id:
        raise BadRequest(f"Server group {group_id} could not be found.")
    members = rows.whereabouts(conn, group_id)
    most = -1 if result["granted"] else limits["server_group_members"]
    if 0 <= most < len(members) + least:
        raise QuotaExceeded(
            f"Quota exceeded, too many servers in group: Requested {least}, but {len(members)} of {most} are in it."
        )
    return _placing(rules, result, members), most - len(members) if most >= 0 else math.inf


def staying(conn: Connection, rules: Rules, group_id: str, server_id: str) -> Group | None:
    """Return the locked group with the nodes of all members but `server_id`, which is to be placed again.

    None if the group was deleted meanwhile.
    """
    result = rows.lock(conn, group_id)
    if result is None:
        return None
    others = {member: node for member, node in rows.whereabouts(conn, group_id).items() if member != server_id}
    return _placing(rules, result, others)


def _placing(rules: Rules, group: Any, members: Mapping[str, int | None]) -> Group:
    policy, wanted = group["policy"], KEPT_BY.get(group["policy"])
    if wanted not in {rule.name for rule in rules.filters} | {rule.name for rule in rules.weighers}:
        raise BadRequest(f"Server group policy is not supported: {policy} needs {wanted}.")
    nodes = Counter(node for node in members.values() if node is not None)
    return Group(group["id"], policy, nodes, group["rules"].get(MOST_ON_NODE, 1))


def _own(conn: Connection, group_id: str, project_id: str | None) -> ServerGroup:
    row = rows.get(conn, group_id) if is_id(group_id) else None
    if row is None or (project_id is not None and row["project_id"] != project_id):
        raise NotFound(f"Instance group {group_id} could not be found.")
    return _group(row)


def _group(row: Any) -> ServerGroup:
    return ServerGroup(**{**row, "members": tuple(row["members"])})
