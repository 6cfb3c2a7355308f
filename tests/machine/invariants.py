"""What must hold of the engine at any moment, and once all is quiet (the numbers are those of the design)."""

from collections import Counter
from collections.abc import Iterable

from sqlalchemy import Engine, text

from climate.cloud import FREEPOOL
from climate.domain.lease import Lease
from climate.domain.status import CANCELLED, DONE, IN_PROGRESS, UNDONE, EventKind, HoldState, LeaseStatus
from climate.service.journal import consistency_check
from tests.machine.world import HOSTS, World

OVERLAPS = """
    SELECT count(*) FROM allocations a JOIN allocations b ON a.host = b.host AND a.id < b.id AND a.during && b.during
    WHERE a.state IN ('held', 'active') AND b.state IN ('held', 'active')
"""
UNCLAIMED = """
    SELECT count(*) FROM events e FULL JOIN claims c ON c.event_id = e.id
    WHERE (e.status = 'IN_PROGRESS') <> (c.event_id IS NOT NULL)
    OR e.shares = '[]' AND e.token <> c.token
    OR e.shares <> '[]' AND c.token IS NOT NULL
        AND NOT e.shares @> jsonb_build_array(jsonb_build_object('token', c.token))
"""
STATUSES = "SELECT id, status FROM leases"
STATES = """
    SELECT reservation_id, array_agg(DISTINCT state)
    FROM (
        SELECT reservation_id, state FROM allocations UNION ALL SELECT reservation_id, state FROM floating_allocations
    ) AS held
    GROUP BY reservation_id
"""


def at_any_moment(world: World) -> None:
    known = world.leases()
    assert count(world.engine, OVERLAPS) == 0  # 2
    the_engine_is_sound(world, known)
    every_host_is_in_one_pool(world, known)
    effects_happen_once(world, known)
    holds_are_confirmed_or_gone(world, known)


def holds_are_confirmed_or_gone(world: World, known: Iterable[Lease]) -> None:
    """Of a lease that was held, the cloud has heard nothing before it was confirmed; an expired one is over."""
    lent = {target for verb, target, _ in world.cloud.effects if verb == "lend"}
    for lease in known:
        expiry = lease.expiry
        if expiry is None or (expiry.status is DONE and expiry.outcome == CANCELLED):
            continue
        assert not [event for event in lease.events if event is not expiry and event.token], "begun, but not confirmed"
        assert not {str(r.id) for r in lease.reservations} & lent
        assert lease.gone or lease.held


def the_engine_is_sound(world: World, known: Iterable[Lease]) -> None:
    """1, 4, 5, 9: what the engine has written down agrees with itself."""
    assert consistency_check.differences(world.climate) == []  # 1, 9
    assert count(world.engine, UNCLAIMED) == 0  # 5
    with world.engine.connect() as conn:
        assert {row.id: row.status for row in conn.execute(text(STATUSES))} == {
            one.id: one.status for one in known
        }  # 4
        states = {row[0]: row[1] for row in conn.execute(text(STATES))}
    for lease in known:
        running = [event for event in lease.events if event.status is IN_PROGRESS]
        assert len(running) <= 1  # 5
        for r in lease.reservations:
            assert states.get(r.id, [lease.hold_state_of(r)]) == [lease.hold_state_of(r)]


def every_host_is_in_one_pool(world: World, known: Iterable[Lease]) -> None:
    """3, 7: the cloud lends what leases in force hold, and nothing else."""
    pools = world.pools()
    assert sorted(host for hosts in pools.values() for host in hosts) == sorted(HOSTS)
    may_have = {
        str(r.id): {HOSTS[number - 1] for number in r.hosts}
        for lease in known
        for r in lease.reservations
        if lease.hold_state_of(r) is HoldState.ACTIVE
    }
    for pool, hosts in pools.items():
        assert pool == FREEPOOL or hosts <= may_have[pool], "a pool is lent to no lease, or more of it than is held"
    for lease in known:
        if lease.status is LeaseStatus.ACTIVE and all(
            e.status is UNDONE for e in lease.events if e.kind != "start_lease"
        ):
            for r in lease.reservations:
                assert (
                    _ever_adjusted(lease)
                    or r.resource_type != "physical:host"
                    or pools[str(r.id)] == may_have[str(r.id)]
                )


def _ever_adjusted(lease: Lease) -> bool:
    return any(event.kind is EventKind.ADJUST for event in lease.events)


def effects_happen_once(world: World, known: Iterable[Lease]) -> None:
    """8: under one token never twice, and over all tokens once for each time it was wanted."""
    assert world.cloud.doubled() == []
    total: Counter[tuple[str, str]] = Counter()
    for (verb, target, _), times in world.cloud.effects.items():
        total[verb, target] += times
    adjusted = {str(r.id) for lease in known if _ever_adjusted(lease) for r in lease.reservations}
    for (verb, target), times in total.items():
        assert times == 1 or (verb == "lend" and target in adjusted), f"{verb} of {target} took effect {times} times"


def when_all_is_quiet(world: World) -> None:
    """6: everything was done or given up with a reason; everything is back."""
    at_any_moment(world)
    every_lease_is_over(world)
    assert world.pools() == {FREEPOOL: set(HOSTS)}
    assert count(world.engine, "SELECT count(*) FROM allocations WHERE state <> 'released'") == 0
    assert count(world.engine, "SELECT count(*) FROM claims") == 0
    lent = {target for verb, target, _ in world.cloud.effects if verb == "lend"}
    assert lent == {target for verb, target, _ in world.cloud.effects if verb == "take_back"}
    assert not [server for server in world.cloud.sleeping() if server.project_id == "project"]


def every_lease_is_over(world: World) -> None:
    for lease in world.leases():
        assert lease.gone or lease.status is LeaseStatus.TERMINATED, lease
        assert lease.event(EventKind.END).status is DONE
        assert not [event for event in lease.events if event.status in (UNDONE, IN_PROGRESS)]
        assert all(event.reason for event in lease.events if event.status == "ERROR")


def count(engine: Engine, question: str) -> int:
    with engine.connect() as conn:
        return int(conn.execute(text(question)).scalar_one())
