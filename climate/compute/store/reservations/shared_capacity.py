"""Shared capacity: slots for servers of one flavor on nodes of the reservation pool, granted to a project."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, and_, bindparam, func, or_, select, text, update
from sqlalchemy.dialects.postgresql import insert

from climate.compute.store.columns import in_array
from climate.compute.store.nodes.nodes import Held
from climate.compute.store.tables import servers as tables
from climate.compute.store.tables.nodes import nodes
from climate.compute.store.tables.shared_capacity import grants
from climate.compute.store.tables.shared_capacity import slots as grant_slots

_SLOTS = text("""
    WITH wanted AS (SELECT * FROM unnest(CAST(:ids AS int[]), CAST(:slots AS int[])) AS w(node_id, slots)),
    gone AS (
        DELETE FROM compute_grant_slots WHERE pool = :pool AND NOT node_id = ANY(CAST(:ids AS int[])))
    INSERT INTO compute_grant_slots (pool, node_id, slots) SELECT :pool, node_id, slots FROM wanted
    ON CONFLICT (pool, node_id) DO UPDATE SET slots = excluded.slots
""")

# The row is kept for good, so that a late worker is refused by its token.
_REVOKE = text("""
    WITH gone AS (DELETE FROM compute_grant_slots WHERE pool = :pool)
    INSERT INTO compute_grants AS g (pool, project_id, fence, closed, revoked) VALUES (:pool, '', :token, true, true)
    ON CONFLICT (pool) DO UPDATE
    SET fence = excluded.fence, closed = true, revoked = true, group_id = NULL, updated_at = clock_timestamp()
    WHERE g.fence <= excluded.fence
    RETURNING pool
""")

_IS_IN_SLOT = and_(tables.servers.c.granted == grants.c.pool, tables.servers.c.node_id == grant_slots.c.node_id)
_USE = (
    select(
        grants.c.project_id,
        grants.c.shared_with,
        grants.c.closed,
        grant_slots.c.node_id,
        grant_slots.c.slots,
        select(func.count()).where(_IS_IN_SLOT).scalar_subquery().label("used"),
    )
    .outerjoin(grant_slots, grant_slots.c.pool == grants.c.pool)
    .where(grants.c.pool == bindparam("pool"))
)


@dataclass(frozen=True, slots=True)
class Grant:
    """A grant of capacity, current or former."""

    pool: str
    project_id: str
    group_id: str | None
    closed: bool
    revoked: bool
    fence: int


@dataclass(frozen=True, slots=True)
class Use:
    """The slots of a grant, and their usage."""

    projects: tuple[str, ...]
    """Projects that may use it."""
    closed: bool
    slots: Mapping[int, tuple[int, int]]
    """Node -> (number of slots, number of servers)"""


def lock(conn: Connection, pool: str, names: Sequence[str] = ()) -> list[Held]:
    """Lock the nodes with slots of a grant, and those of these names, in name order."""
    # The nodes with present or future slots: a claim of a slot holds the lock of its node.
    own = nodes.c
    with_slots = select(grant_slots.c.node_id).where(grant_slots.c.pool == pool)
    query = select(own.id, own.name, own.pool, own.fence, own.outside)
    locked = query.where(or_(in_array(own.name, names), own.id.in_(with_slots))).order_by(own.name, own.id)
    return [Held(*row) for row in conn.execute(locked.with_for_update(key_share=True))]


def write(conn: Connection, pool: str, projects: Sequence[str], group_id: str | None, token: int) -> bool:
    """Create a grant for projects, the owner first, or open it again; False if the token is outdated."""
    owner, *others = projects
    row = insert(grants).values(pool=pool, project_id=owner, shared_with=others, group_id=group_id, fence=token)
    changed = {name: row.excluded[name] for name in ("project_id", "shared_with", "group_id", "fence")}
    statement = row.on_conflict_do_update(
        index_elements=["pool"],
        set_={**changed, "closed": False, "revoked": False, "updated_at": func.clock_timestamp()},
        where=grants.c.fence <= row.excluded.fence,
    )
    return conn.execute(statement.returning(grants.c.pool)).first() is not None


def replace_slots(conn: Connection, pool: str, slots: Mapping[int, int]) -> None:
    """Replace the slots of a grant, by node; all nodes that gain or lose slots must be locked."""
    conn.execute(_SLOTS, {"pool": pool, "ids": list(slots), "slots": list(slots.values())})


def close(conn: Connection, pool: str, token: int) -> bool:
    """Close a grant whose nodes are locked; False if it does not exist, or the token is outdated."""
    this = update(grants).where(grants.c.pool == pool, grants.c.fence <= token)
    closed = this.values(closed=True, fence=token, updated_at=func.clock_timestamp())
    return conn.execute(closed.returning(grants.c.pool)).first() is not None


def revoke(conn: Connection, pool: str, token: int) -> bool:
    """Delete a grant and record its token, even if it never existed; False if the token is outdated."""
    return conn.execute(_REVOKE, {"pool": pool, "token": token}).first() is not None


def servers(conn: Connection, pool: str) -> int:
    """Return the number of servers that use a grant, on a node or not."""
    return conn.execute(select(func.count()).where(tables.servers.c.granted == pool)).scalar_one()


def get(conn: Connection, pools: Sequence[str]) -> list[Grant]:
    """Return the current and former grants of these pools."""
    query = select(*(grants.c[name] for name in Grant.__slots__)).where(in_array(grants.c.pool, pools))
    return [Grant(*row) for row in conn.execute(query)]


def with_group(conn: Connection, group_id: str) -> str | None:
    """Return the grant that a server group was created for, or None."""
    query = select(grants.c.pool).where(grants.c.group_id == group_id, ~grants.c.revoked)
    pool: str | None = conn.scalar(query)
    return pool


def use(conn: Connection, pool: str) -> Use | None:
    """Return the usage of a grant; None if there never was one."""
    rows = conn.execute(_USE, {"pool": pool}).all()
    if not rows:
        return None
    slots = {row.node_id: (row.slots, row.used) for row in rows if row.node_id is not None}
    return Use((rows[0].project_id, *rows[0].shared_with), rows[0].closed, slots)
