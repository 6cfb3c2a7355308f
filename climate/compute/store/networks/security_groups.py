"""Rows of security groups and their rules, and the servers that have them."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from datetime import datetime

from sqlalchemy import (
    ColumnElement,
    Connection,
    RowMapping,
    and_,
    any_,
    bindparam,
    cast,
    delete,
    exists,
    func,
    insert,
    or_,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import UUID
from sqlalchemy.dialects.postgresql import insert as insert_new

from climate.compute.models.security_group import SecurityGroup, SecurityRule
from climate.compute.store.columns import in_array, in_parameter
from climate.compute.store.tables.networks import vifs
from climate.compute.store.tables.nodes import nodes
from climate.compute.store.tables.security_groups import security_group_rules as rule_rows
from climate.compute.store.tables.security_groups import security_groups as group_rows
from climate.compute.store.tables.servers import servers

_RULES = (
    rule_rows.c.id,
    rule_rows.c.group_id,
    rule_rows.c.direction,
    rule_rows.c.version,
    rule_rows.c.protocol,
    rule_rows.c.first,
    rule_rows.c.last,
    rule_rows.c.remote_cidr,
    rule_rows.c.remote_group_id,
    rule_rows.c.description,
    rule_rows.c.created_at,
)

# The servers of a project whose column is NULL have its group `default`.
_IS_DEFAULT = and_(group_rows.c.project_id == servers.c.project_id, group_rows.c.name == "default")
_IS_MEMBER = and_(
    servers.c.project_id == group_rows.c.project_id,
    or_(
        group_rows.c.id == any_(servers.c.security_groups),
        and_(servers.c.security_groups.is_(None), group_rows.c.name == "default"),
        exists().where(vifs.c.server_id == servers.c.id, group_rows.c.id == any_(vifs.c.security_groups)),
    ),
)

_MEMBERS = (
    select(group_rows.c.id.label("group_id"), servers.c.id.label("server_id"), nodes.c.service_host)
    .join_from(group_rows, servers, _IS_MEMBER)
    .outerjoin(nodes, nodes.c.id == servers.c.node_id)
    .where(in_parameter(group_rows.c.id, "ids"))
    .order_by(servers.c.id)
)

_FILTERED = (
    select(servers.c.id)
    .join(nodes, nodes.c.id == servers.c.node_id)
    .where(
        nodes.c.service_host == bindparam("host"),
        or_(
            servers.c.security_groups.is_not(None),
            exists().where(_IS_DEFAULT),
            exists().where(
                vifs.c.server_id == servers.c.id, or_(vifs.c.security_groups.is_not(None), ~vifs.c.admin_up)
            ),
        ),
    )
    .order_by(servers.c.id)
)


def listed(conn: Connection, *conditions: ColumnElement[bool]) -> list[SecurityGroup]:
    """Return the groups with their rules, by name."""
    query = select(group_rows).where(*conditions).order_by(group_rows.c.name, group_rows.c.id)
    groups = list(conn.execute(query).mappings())
    rules = rules_of(conn, [row["id"] for row in groups]) if groups else []
    return [SecurityGroup(**row, rules=tuple(rule for rule in rules if rule.group_id == row["id"])) for row in groups]


def of_project(project_id: str) -> ColumnElement[bool]:
    """Return the condition that a group belongs to a project."""
    return group_rows.c.project_id == project_id


def of_ids(ids: Sequence[str]) -> ColumnElement[bool]:
    """Return the condition that a group has one of these ids."""
    return in_array(group_rows.c.id, ids)


def rules_of(conn: Connection, group_ids: Sequence[str]) -> list[SecurityRule]:
    """Return the rules of these groups, oldest first."""
    query = (
        select(*_RULES)
        .where(in_array(rule_rows.c.group_id, group_ids))
        .order_by(rule_rows.c.created_at, rule_rows.c.direction, rule_rows.c.version, rule_rows.c.id)
    )
    return [_rule(row) for row in conn.execute(query).mappings()]


def add(conn: Connection, group: SecurityGroup) -> None:
    """Insert a group with its rules, unless the project has this group already."""
    values = {key: value for key, value in asdict(group).items() if key != "rules"}
    added = conn.execute(insert_new(group_rows).values(values).on_conflict_do_nothing().returning(group_rows.c.id))
    if added.first() is not None and group.rules:
        conn.execute(insert(rule_rows), [asdict(rule) for rule in group.rules])


def add_rule(conn: Connection, new: SecurityRule) -> None:
    """Insert a rule of a group."""
    conn.execute(insert(rule_rows).values(asdict(new)))


def change(conn: Connection, group_id: str, changes: dict[str, str], now: datetime) -> None:
    """Update the name or the description of a group."""
    conn.execute(update(group_rows).where(group_rows.c.id == group_id).values(**changes, updated_at=now))


def drop(conn: Connection, group_id: str) -> None:
    """Delete a group with its rules, and the rules of other groups that name it."""
    conn.execute(delete(group_rows).where(group_rows.c.id == group_id))


def drop_rule(conn: Connection, rule_id: str) -> None:
    """Delete a rule."""
    conn.execute(delete(rule_rows).where(rule_rows.c.id == rule_id))


def counts(conn: Connection, project_id: str) -> tuple[int, int]:
    """Return the numbers of groups and of rules that a project has rows of."""
    groups = conn.scalar(select(func.count()).select_from(group_rows).where(of_project(project_id)))
    of_groups = select(group_rows.c.id).where(of_project(project_id))
    rules = conn.scalar(select(func.count()).select_from(rule_rows).where(rule_rows.c.group_id.in_(of_groups)))
    return int(groups or 0), int(rules or 0)


def members(conn: Connection, group_ids: Sequence[str]) -> list[tuple[str, str, str | None]]:
    """Return (group, server, service host of the server) of all servers that have one of these groups."""
    rows = conn.execute(_MEMBERS, {"ids": list(group_ids)})
    return [(row.group_id, row.server_id, row.service_host) for row in rows]


def naming(conn: Connection, group_ids: Iterable[str]) -> list[str]:
    """Return the groups with a rule whose other side is one of these groups."""
    query = select(rule_rows.c.group_id).distinct().where(in_array(rule_rows.c.remote_group_id, list(group_ids)))
    return list(conn.scalars(query))


def filtered(conn: Connection, service_host: str) -> list[str]:
    """Return the servers of a service whose traffic security groups restrict."""
    return list(conn.scalars(_FILTERED, {"host": service_host}))


def lock_shared(conn: Connection, project_id: str, group_ids: Sequence[str]) -> list[str]:
    """Return those of these groups that a project has, kept until the transaction ends."""
    query = select(group_rows.c.id).where(of_ids(group_ids), of_project(project_id)).order_by(group_rows.c.id)
    return list(conn.scalars(query.with_for_update(read=True, key_share=True)))


def lock(conn: Connection, group_id: str) -> None:
    """Lock a group against ports that are to have it."""
    conn.execute(select(group_rows.c.id).where(group_rows.c.id == group_id).with_for_update())


def set_groups(conn: Connection, server_id: str, groups: Sequence[str], now: datetime) -> None:
    """Set the security groups of a server."""
    values = {"security_groups": list(groups), "updated_at": now}
    conn.execute(update(servers).where(servers.c.id == server_id).values(values))


def set_groups_of_ports(
    conn: Connection, server_id: str, now: datetime, *, added: str | None = None, removed: str | None = None
) -> None:
    """Add a group to those ports of a server that have groups of their own, or remove it from them."""
    groups = func.array_remove(vifs.c.security_groups, cast(added or removed, UUID))
    if added is not None:
        groups = func.array_append(groups, cast(added, UUID))
    own = update(vifs).where(vifs.c.server_id == server_id, vifs.c.security_groups.is_not(None))
    conn.execute(own.values(security_groups=groups, changed_at=now))


def _rule(row: RowMapping) -> SecurityRule:
    cidr = row["remote_cidr"]
    return SecurityRule(**{**row, "remote_cidr": None if cidr is None else str(cidr)})
