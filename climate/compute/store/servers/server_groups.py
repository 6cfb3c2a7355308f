"""Server groups: their members, and the nodes of the members."""

from collections.abc import Mapping, Sequence

from sqlalchemy import Connection, RowMapping, exists, func, select, tuple_
from sqlalchemy import delete as delete_from
from sqlalchemy.dialects.postgresql import ARRAY, UUID
from sqlalchemy.dialects.postgresql import insert as insert_into

from climate.compute.store.tables.servers import server_groups, servers
from climate.compute.store.tables.shared_capacity import grants

_MEMBERS = (
    select(servers.c.id)
    .where(servers.c.group_id == server_groups.c.id)
    .order_by(servers.c.created_at, servers.c.id)
    .scalar_subquery()
)

_GROUP = select(
    *(server_groups.c.id, server_groups.c.name, server_groups.c.project_id, server_groups.c.user_id),
    *(server_groups.c.policy, server_groups.c.rules, server_groups.c.created_at),
    func.array(_MEMBERS, type_=ARRAY(UUID(as_uuid=False))).label("members"),
)

_IS_GRANTED = exists().where(grants.c.group_id == server_groups.c.id)


def insert(conn: Connection, name: str, owner: Mapping[str, str], policy: str, rules: Mapping[str, int]) -> str:
    """Insert a group; return its id. `owner`: project_id and user_id."""
    row = {"name": name, "policy": policy, "rules": dict(rules), **_owner(owner)}
    return str(conn.execute(insert_into(server_groups).values(row).returning(server_groups.c.id)).scalar_one())


def ensure(conn: Connection, group_id: str, name: str, owner: Mapping[str, str], policy: str) -> None:
    """Insert a group of that id unless it exists. `owner`: project_id and user_id."""
    row = {"id": group_id, "name": name, "policy": policy, "rules": {}, **_owner(owner)}
    conn.execute(insert_into(server_groups).values(row).on_conflict_do_nothing(index_elements=["id"]))


def get(conn: Connection, group_id: str) -> RowMapping | None:
    """Return the group with its members; None if it does not exist."""
    return conn.execute(_GROUP.where(server_groups.c.id == group_id)).mappings().one_or_none()


def listed(
    conn: Connection, project_id: str | None, limit: int, offset: int, marker: str | None
) -> Sequence[RowMapping]:
    """Return the groups of a project, or of all, oldest first; those after the one with the id `marker`."""
    own, last = server_groups.c, server_groups.alias().c
    query = _GROUP.order_by(own.created_at, own.id).limit(limit).offset(offset)
    if project_id is not None:
        query = query.where(own.project_id == project_id)
    if marker is not None:
        after = select(last.created_at, last.id).where(last.id == marker).scalar_subquery()
        query = query.where(tuple_(own.created_at, own.id) > after)
    return conn.execute(query).mappings().all()


def named(conn: Connection, name: str, project_id: str, most: int) -> list[str]:
    """Return the ids of a project's groups of this name, oldest first, up to `most`."""
    own = server_groups.c
    query = select(own.id).where(own.project_id == project_id, own.name == name).order_by(own.created_at, own.id)
    return list(conn.scalars(query.limit(most)))


def count(conn: Connection, project_id: str) -> int:
    """Return the number of groups that a project has of its own."""
    # Groups of reservations belong to no user, and are not counted.
    query = select(func.count()).where(server_groups.c.project_id == project_id, ~_IS_GRANTED)
    return conn.execute(query).scalar_one()


def lock_to_drop(conn: Connection, group_id: str) -> None:
    """Lock a group, then its members, whose rows change with it; nobody joins it meanwhile."""
    # Not FOR UPDATE: a server whose row is written twice by one transaction is checked against its group again, under a
    # share of its key. A transaction that holds one also holds a member, and ends once all members are locked.
    group = select(server_groups.c.id).where(server_groups.c.id == group_id)
    conn.execute(group.with_for_update(key_share=True))
    members = select(servers.c.id).where(servers.c.group_id == group_id).order_by(servers.c.id)
    conn.execute(members.with_for_update(key_share=True))


def delete(conn: Connection, group_id: str) -> None:
    """Delete a group; its members stay without one."""
    lock_to_drop(conn, group_id)
    conn.execute(delete_from(server_groups).where(server_groups.c.id == group_id))


def lock(conn: Connection, group_id: str) -> RowMapping | None:
    """Return the group (id, project_id, policy, rules, granted), locked against concurrent placement of its servers.

    None: it does not exist.
    """
    own = server_groups.c
    query = select(own.id, own.project_id, own.policy, own.rules, _IS_GRANTED.label("granted"))
    locked = query.where(own.id == group_id).with_for_update(key_share=True)
    return conn.execute(locked).mappings().one_or_none()


def whereabouts(conn: Connection, group_id: str) -> dict[str, int | None]:
    """Return member -> its node; None if it is on none."""
    # A statement of its own after the lock, so that it reads the commit of the former holder.
    query = select(servers.c.id, servers.c.node_id).where(servers.c.group_id == group_id)
    return {row.id: row.node_id for row in conn.execute(query)}


def _owner(owner: Mapping[str, str]) -> dict[str, str]:
    return {"project_id": owner["project_id"], "user_id": owner["user_id"]}
