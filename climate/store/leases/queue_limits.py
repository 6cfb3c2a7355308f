"""Limits of the worker queues: how many more events may be claimed for each, and the turns of projects.

A queue keeps the order of the claims. So that the thousand events of one project do not block one of another, only as
many are claimed as workers can begin soon. The rest waits in the database, where projects take turns.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from sqlalchemy import (
    Connection,
    Integer,
    Text,
    and_,
    bindparam,
    case,
    column,
    func,
    literal,
    literal_column,
    not_,
    or_,
    select,
    true,
)
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.sql.selectable import Subquery

from climate.store.tables.leases import claims, reservations

QUEUE = "events"
"""Queue of events without a resource type, and prefix of the queues of resource types."""

ANY_NUMBER = 10**9

Turns = dict[tuple[str, bool], str]
"""Last project that had its turn, by queue, and for ends apart from all other events."""


@dataclass(frozen=True, slots=True)
class Rooms:
    """Number of further events that may be claimed for each queue."""

    each: int = ANY_NUMBER
    """Maximum of claimed and unbegun events per queue."""
    waiting: Mapping[str, int] = field(default_factory=dict)
    """Numbers of claimed and unbegun events, by queue."""
    closed: frozenset[str] = frozenset()
    """Queues that were full and are more than half full still: they are refilled in portions."""
    turns: Turns = field(default_factory=dict)

    def of(self, queue: str) -> int:
        """Return the number of events that may be claimed for a queue."""
        return 0 if queue in self.closed else max(0, self.each - self.waiting.get(queue, 0))

    def full(self, claimed: Iterable[str] = ()) -> frozenset[str]:
        """Return the queues that are full once so many more events are claimed for them."""
        count = dict(self.waiting)
        for queue in claimed:
            count[queue] = count.get(queue, 0) + 1
        return self.closed | {queue for queue, waiting in count.items() if waiting >= self.each}


def rooms(conn: Connection, each: int, full: frozenset[str], turns: Turns) -> Rooms:
    """Return the room of all queues; those that were full stay closed until they are half empty."""
    waiting = unbegun(conn) if each < ANY_NUMBER else {}
    closed = frozenset(queue for queue in full if 2 * waiting.get(queue, 0) > each)
    return Rooms(each, waiting, closed, turns)


def unbegun(conn: Connection) -> dict[str, int]:
    """Return for each queue the number of claimed and unbegun events, sent or not."""
    query = select(claims.c.queue, func.count()).where(claims.c.started_at.is_(None)).group_by(claims.c.queue)
    return {row[0]: row[1] for row in conn.execute(query)}


def parameters(room: Rooms) -> dict[str, object]:
    """Return the parameters of the statement of `within`."""
    known = sorted({*room.waiting, *room.closed, *(queue for queue, _ in room.turns)})
    return {
        "queues": known,
        "rooms": [room.of(queue) for queue in known],
        "after_ends": [room.turns.get((queue, True), "") for queue in known],
        "after_others": [room.turns.get((queue, False), "") for queue in known],
        "full": [queue for queue in known if not room.of(queue)],
        "room_of_others": room.each,
    }


def within(ready: Subquery) -> Subquery:
    """Return the ready events for which their queues have room, by the turns of the projects.

    `ready` has an id, lease_id, project_id, group (0: an end), turn and run_at. An event of several resource types
    waits until each of its queues has room; an end until one of them has, because others wait for its resources.
    """
    placed = _placed(_startable(ready))
    kept = or_(and_(placed.c.group == 0, func.bool_or(placed.c.fits)), func.bool_and(placed.c.fits))
    own = [placed.c[name] for name in ("id", "lease_id", "project_id", "group", "turn", "queues")]
    place = func.max(placed.c.place).label("place")
    return select(*own, place).group_by(*own).having(kept).subquery("within")


def _startable(ready: Subquery) -> Subquery:
    """Return the ready events with their queues, without those that have to wait for a full queue."""
    types = select(func.array_agg((literal(f"{QUEUE}.") + reservations.c.resource_type).distinct()).label("queues"))
    types_of = types.where(reservations.c.lease_id == ready.c.lease_id).lateral("types")
    queues = func.coalesce(types_of.c.queues, func.array_fill(literal(QUEUE, Text), literal_column("ARRAY[1]")))
    full = bindparam("full", type_=ARRAY(Text))
    shut, partly_shut = (queues.bool_op(sign)(full) for sign in ("<@", "&&"))
    may = case((ready.c.group == 0, not_(shut)), else_=not_(partly_shut))
    return select(ready, queues.label("queues")).select_from(ready.join(types_of, true())).where(may).subquery("asked")


def _placed(asked: Subquery) -> Subquery:
    """Return a row for each queue of each event: its place among the candidates, and whether the queue has room."""
    arrays = {"queues": Text, "rooms": Integer, "after_ends": Text, "after_others": Text}
    given = func.unnest(*(bindparam(name, type_=ARRAY(kind)) for name, kind in arrays.items()))
    known = given.table_valued(
        column("queue", Text), column("room", Integer), column("ends", Text), column("others", Text), name="known"
    ).render_derived()
    each = func.unnest(asked.c.queues).table_valued(column("queue", Text), name="each").render_derived()
    after = case((asked.c.group == 0, known.c.ends), else_=known.c.others)
    behind = func.coalesce(asked.c.project_id <= after, False)
    order = (asked.c.group, asked.c.turn, behind, asked.c.project_id, asked.c.run_at, asked.c.id)
    place = func.row_number().over(partition_by=each.c.queue, order_by=order)
    fits = place <= func.coalesce(known.c.room, bindparam("room_of_others", type_=Integer))
    rows = asked.join(each, true()).outerjoin(known, known.c.queue == each.c.queue)
    return select(asked, place.label("place"), fits.label("fits")).select_from(rows).subquery("placed")


def take_turns(turns: Turns, claimed: Iterable[tuple[str, bool, str]]) -> None:
    """Record for each queue the last project that had its turn, from (queue, is_end, project) in order."""
    for queue, is_end, project in claimed:
        turns[queue, is_end] = project
