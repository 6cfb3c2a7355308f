"""Security groups: create, change and delete them and their rules, and give them to servers.

A change reaches the interfaces of servers by a wake-up of their compute services. It arrives at the latest when these
services compare their guests with the database.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from uuid import uuid4

from sqlalchemy import Connection

from climate.compute.context import Compute
from climate.compute.errors import BadRequest, Conflict, NotFound, QuotaExceeded
from climate.compute.models.security_group import (
    DEFAULT,
    MOST_GROUPS,
    MOST_RULES,
    SecurityGroup,
    SecurityRule,
    default_group,
    default_id,
    new_group,
)
from climate.compute.models.server import Server
from climate.compute.servers import actions
from climate.compute.servers.interfaces.interfaces import Requester
from climate.compute.store.networks import ports
from climate.compute.store.networks import security_groups as rows
from climate.compute.store.projects import quotas
from climate.compute.store.servers import tasks
from climate.database.connections import reading

Change = Callable[[Server, SecurityGroup], list[str]]
"""Function (server, group) -> ids of the groups that the server has then."""


def listed(compute: Compute, own: str, project_id: str | None) -> list[SecurityGroup]:
    """Return the groups of a project, or of all if None; among them `default` of the project `own`."""
    with reading(compute.engine) as conn:
        return _groups(conn, project_id, own)


def of_server(compute: Compute, server: Server) -> list[SecurityGroup]:
    """Return the groups of a server."""
    return named(compute, [server])[server.id]


def named(compute: Compute, servers: Sequence[Server]) -> dict[str, list[SecurityGroup]]:
    """Return the groups of each of these servers, by the id of the server."""
    wanted = {server.id: groups_of(server.project_id, server.security_groups) for server in servers}
    ids = sorted({group_id for groups in wanted.values() for group_id in groups})
    known = {server.project_id: default_group(server.project_id) for server in servers}
    by_id = {group.id: group for group in known.values()}
    if any(server.security_groups is not None for server in servers):
        with reading(compute.engine) as conn:
            by_id |= {group.id: group for group in rows.listed(conn, rows.of_ids(ids))}
    return {server_id: [by_id[one] for one in groups if one in by_id] for server_id, groups in wanted.items()}


def groups_of(project_id: str, groups: Sequence[str] | None) -> tuple[str, ...]:
    """Return the ids of a server's groups; None: `default` of its project."""
    return (default_id(project_id),) if groups is None else tuple(groups)


def get(compute: Compute, group_id: str, project_id: str | None, own: str) -> SecurityGroup:
    """Return a group of a project, or of any if None. NotFound."""
    with reading(compute.engine) as conn:
        return _get(conn, group_id, project_id, own)


def create(compute: Compute, project_id: str, name: str, description: str) -> SecurityGroup:
    """Create a group. Raises QuotaExceeded, Conflict for the name `default`."""
    if name == DEFAULT:
        raise Conflict("Default security group already exists.")
    with compute.engine.begin() as conn:
        group = new_group(project_id, name, description, compute.now(conn))
        _check_room(conn, project_id, 1, len(group.rules))
        rows.add(conn, group)
    return group


def change(compute: Compute, group_id: str, who: tuple[str | None, str], changes: dict[str, str]) -> SecurityGroup:
    """Update the name or the description of a group of `who`, as `get` takes them. Raises NotFound, Conflict."""
    with compute.engine.begin() as conn:
        group = _get(conn, group_id, *who)
        if "name" in changes and (group.name == DEFAULT) != (changes["name"] == DEFAULT):
            raise Conflict("The security group 'default' keeps its name, and no other group has it.")
        rows.add(conn, group)
        rows.change(conn, group.id, changes, compute.now(conn))
        return _get(conn, group_id, *who)


def delete(compute: Compute, group_id: str, who: tuple[str | None, str]) -> None:
    """Delete a group that no server has. Raises NotFound, Conflict.

    Only administrators delete the group `default`, which then is as before its first change.
    """
    with compute.engine.begin() as conn:
        group = _get(conn, group_id, *who)
        if group.name == DEFAULT and who[0] is not None:
            raise Conflict("Removing default security group not allowed.")
        rows.lock(conn, group.id)
        if rows.members(conn, [group.id]):
            raise Conflict(f"Security Group {group.id} in use: a server has it.")
        port_id = ports.with_group(conn, group.id)
        if port_id is not None:
            raise Conflict(f"Security Group {group.id} in use: port {port_id} has it.")
        touched = _touched(conn, rows.naming(conn, [group.id]))
        rows.drop(conn, group.id)
    _wake(compute, touched)


def add_rule(compute: Compute, wanted: SecurityRule, who: tuple[str | None, str]) -> SecurityRule:
    """Add a rule to its group. Raises NotFound, Conflict if the group has it, QuotaExceeded, BadRequest."""
    with compute.engine.begin() as conn:
        group = _get(conn, wanted.group_id, *who)
        if wanted.remote_group_id is not None:
            rows.add(conn, _get(conn, wanted.remote_group_id, *who))
        rows.add(conn, group)
        same = next((rule for rule in group.rules if rule.traffic == wanted.traffic), None)
        if same is not None:
            raise Conflict(f"Security group rule already exists. Rule id is {same.id}.")
        _check_room(conn, group.project_id, 0, 1)
        rule = replace(wanted, id=str(uuid4()), created_at=compute.now(conn))
        rows.add_rule(conn, rule)
        touched = _touched(conn, [group.id])
    _wake(compute, touched)
    return rule


def delete_rule(compute: Compute, rule_id: str, who: tuple[str | None, str]) -> None:
    """Delete a rule of a group. Raises NotFound."""
    with compute.engine.begin() as conn:
        group = next((group for group in _groups(conn, *who) if rule_id in {rule.id for rule in group.rules}), None)
        if group is None:
            raise NotFound(f"Security group rule {rule_id} does not exist")
        rows.add(conn, group)
        rows.drop_rule(conn, rule_id)
        touched = _touched(conn, [group.id])
    _wake(compute, touched)


def ids_of(compute: Compute, project_id: str, wanted: Sequence[str]) -> tuple[str, ...] | None:
    """Return the ids of groups of a project by their ids or names; None for `default` alone. BadRequest."""
    if set(wanted) <= {DEFAULT, default_id(project_id)}:
        return None
    with reading(compute.engine) as conn:
        groups = _groups(conn, project_id, project_id)
    return tuple(dict.fromkeys(_named(groups, name, project_id).id for name in wanted))


def add_to_server(compute: Compute, requester: Requester, wanted: str) -> None:
    """Give a server a further group, by its name or id. Raises NotFound, Conflict."""

    def added(server: Server, group: SecurityGroup) -> list[str]:
        return [*groups_of(server.project_id, server.security_groups), group.id]

    _add_to_server(compute, requester, wanted, added)


def remove_from_server(compute: Compute, requester: Requester, wanted: str) -> None:
    """Take a group from a server, by its name or id. Raises NotFound, Conflict."""

    def removed(server: Server, group: SecurityGroup) -> list[str]:
        there = groups_of(server.project_id, server.security_groups)
        if group.id not in there:
            raise NotFound(f"Security group {wanted[:80]} is not associated with the instance {server.id}.")
        return [one for one in there if one != group.id]

    _add_to_server(compute, requester, wanted, removed)


def lock_shared(conn: Connection, project_id: str, group_ids: Sequence[str]) -> list[str]:
    """Return those of these groups that a project has, kept until the transaction ends."""
    return rows.lock_shared(conn, project_id, group_ids)


def wake_peers(compute: Compute, groups: Iterable[str]) -> None:
    """Wake the services of the servers whose rules name one of these groups, one of whose servers has changed."""
    with reading(compute.engine) as conn:
        touched = _touched(conn, rows.naming(conn, groups))
    _wake(compute, touched)


def _add_to_server(compute: Compute, requester: Requester, wanted: str, changed: Change) -> None:
    if compute.cells.is_api:
        raise BadRequest("Security groups of servers in cells cannot be changed at the top cell.")
    with compute.engine.begin() as conn:
        server = actions.locked(conn, requester.server_id, requester.project_id)
        actions.check_lock(server, requester.project_id)
        try:
            group = _named(_groups(conn, server.project_id, server.project_id), wanted, server.project_id)
        except BadRequest as refusal:
            raise NotFound(str(refusal)) from None
        rows.add(conn, group)
        now = compute.now(conn)
        groups = list(dict.fromkeys(changed(server, group)))
        rows.set_groups(conn, server.id, groups, now)
        is_added = group.id in groups
        rows.set_groups_of_ports(
            conn, server.id, now, added=group.id if is_added else None, removed=None if is_added else group.id
        )
        tasks.note(conn, server.id, "changeSecurityGroups", requester.by, now, done=True)
        touched = _touched(conn, [group.id, *rows.naming(conn, [group.id])]) | {
            server.id: server.service_host or "",
        }
    _wake(compute, touched)


def _groups(conn: Connection, project_id: str | None, own: str) -> list[SecurityGroup]:
    groups = rows.listed(conn, *([rows.of_project(project_id)] if project_id is not None else []))
    return groups if any(group.id == default_id(own) for group in groups) else [*groups, default_group(own)]


def _get(conn: Connection, group_id: str, project_id: str | None, own: str) -> SecurityGroup:
    group = next(iter(rows.listed(conn, rows.of_ids([group_id]))), None)
    if group is not None and project_id in (None, group.project_id):
        return group
    if group_id == default_id(own):
        return default_group(own)
    raise NotFound("The security group could not be found.")


def _named(groups: Sequence[SecurityGroup], wanted: str, project_id: str) -> SecurityGroup:
    matching = [group for group in groups if group.id == wanted] or [group for group in groups if group.name == wanted]
    if len(matching) > 1:
        raise Conflict(f"Multiple security groups found matching '{wanted[:80]}'. Use an ID to be more specific.")
    if not matching:
        raise BadRequest(f"Security group {wanted[:80]} not found for project {project_id}.")
    return matching[0]


def _check_room(conn: Connection, project_id: str, groups: int, rules: int) -> None:
    quotas.lock_limits(conn, project_id)
    has_groups, has_rules = rows.counts(conn, project_id)
    if groups and has_groups + groups > MOST_GROUPS:
        raise QuotaExceeded(f"Quota exceeded: a project may have {MOST_GROUPS} security groups.")
    if has_rules + rules > MOST_RULES:
        raise QuotaExceeded(f"Quota exceeded: the security groups of a project may have {MOST_RULES} rules.")


def _touched(conn: Connection, group_ids: Sequence[str]) -> dict[str, str]:
    """Return server -> service host of the servers that have one of these groups."""
    members = rows.members(conn, group_ids) if group_ids else []
    return {server_id: host for _, server_id, host in members if host is not None}


def _wake(compute: Compute, touched: dict[str, str]) -> None:
    by_host: dict[str, list[str]] = defaultdict(list)
    for server_id, host in touched.items():
        by_host[host].append(server_id)
    for host, server_ids in by_host.items():
        compute.cast(host, *server_ids)
