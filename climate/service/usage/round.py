"""Round that computes host hours from the journal, and samples on which leased hosts servers run."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import groupby
from uuid import UUID

from sqlalchemy import Connection

from climate.context import Climate
from climate.database.connections import reading
from climate.domain.host_hours import HostUse, stretches
from climate.domain.lease import Lease, fold
from climate.service.transaction import run
from climate.service.usage import idle_leases
from climate.store.journal import journal
from climate.store.journal.row_differences import UNREADABLE
from climate.store.usage import host_hours

PAUSE = timedelta(minutes=1)
"""Time between two rounds, and between two samples of running servers."""

LONGEST_GAP = 2 * PAUSE
"""Time before a sample that counts at most: what happened while no worker looked is not known."""

MOST_PORTIONS = 50
"""Portions of the journal in one round; the next round follows at once if more is left."""


def run_round(climate: Climate) -> int:
    """Compute the host hours of the leases that changed, take a sample, and look for idle leases.

    Return the number of leases that changed.
    """
    count, is_left = _compute(climate)
    with reading(climate.engine) as conn:
        now = climate.now(conn)
        names = host_hours.in_use(conn, now)
    busy = climate.cloud.busy_hosts(list(names)) if names else frozenset()
    run(climate, _finish, climate, [names[name] for name in busy if name in names], now if is_left else now + PAUSE)
    idle_leases.run_round(climate)
    return count


def recompute(climate: Climate) -> int:
    """Compute the host hours of all leases whose facts are in the journal anew; return their number."""
    run(climate, host_hours.proceed, 0)
    count, is_left = _compute(climate)
    while is_left:
        more, is_left = _compute(climate)
        count += more
    return count


def _compute(climate: Climate) -> tuple[int, bool]:
    """Compute portions; return the number of leases, and whether more are left."""
    done, position = 0, None
    for _ in range(MOST_PORTIONS):
        portion = run(climate, _portion, climate, position)
        if portion is None:
            return done, False
        done += len(portion.leases)
        position = portion.last
        if not portion.is_full:
            return done, False
    return done, True


def _portion(conn: Connection, climate: Climate, position: int | None) -> host_hours.Portion | None:
    """Compute the leases of one portion after a position; None if another process computes."""
    state = host_hours.lock_state(conn)
    if state is None:
        return None
    portion = host_hours.after(conn, state.position if position is None else position, climate.now(conn))
    host_hours.replace(conn, _computed(conn, portion.leases))
    if portion.settled > state.position:
        host_hours.proceed(conn, portion.settled)
    return portion


def _computed(conn: Connection, leases: Sequence[UUID]) -> dict[UUID, tuple[Lease, Sequence[HostUse]]]:
    """Return the stretches of leases without those whose facts cannot be read: `climate journal check` names these."""
    try:
        return _read_and_computed(conn, leases)
    except UNREADABLE:
        if len(leases) == 1:
            return {}
    return {key: value for lease_id in leases for key, value in _computed(conn, [lease_id]).items()}


def _read_and_computed(conn: Connection, leases: Sequence[UUID]) -> dict[UUID, tuple[Lease, Sequence[HostUse]]]:
    result: dict[UUID, tuple[Lease, Sequence[HostUse]]] = {}
    for lease_id, entries in groupby(journal.read_many(conn, leases), key=lambda entry: entry.stream):
        facts = journal.of_lease(entries)
        result[lease_id] = fold(facts), stretches(facts)
    return result


def _finish(conn: Connection, climate: Climate, busy: Sequence[int], next_at: datetime) -> None:
    """Record the sample, unless another process has just taken one."""
    state = host_hours.lock_state(conn)
    if state is None:
        return
    now = climate.now(conn)
    since = max(state.sampled_at, now - LONGEST_GAP) if state.sampled_at else now - PAUSE
    if since < now:
        host_hours.sample(conn, busy, since, now, missed=since != state.sampled_at)
    host_hours.set_next_round(conn, next_at)
