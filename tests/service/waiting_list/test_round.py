"""The round gives each released resource once, in the order of the list, and may die at any moment."""

import os
import signal
import subprocess
import sys
from dataclasses import replace
from datetime import timedelta
from functools import partial
from random import Random
from threading import Event as Signal
from typing import Any

import pytest
from sqlalchemy import Engine, event, text

from climate.context import Climate
from climate.domain.errors import ClimateError, NotFound
from climate.domain.lease import Lease
from climate.domain.period import Period
from climate.domain.planning.waiting_list import Entry, Rule
from climate.domain.status import HoldState
from climate.service.leases import broken_leases, leases
from climate.service.waiting_list import places
from climate.service.waiting_list import round as waiting_round
from climate.store.leases import waiting_list
from climate.store.leases.leases import Listing
from tests.campaign import cases
from tests.conftest import ADMIN, MEMBER, STRANGER, Clock
from tests.domain.planning.test_waiting_list import Cluster, follow_the_rule
from tests.scenarios.test_races import at_once, nothing_is_promised_twice
from tests.scenarios.test_statement_counts import cost, counted
from tests.service.lease_actions import get, held, hosts_wanted, make, run_due
from tests.service.leases.test_broken_leases import OF_A_NEWER_RELEASE
from tests.service.waiting_list.test_entries import ALL, queue, story_is_whole


def waiting(climate: Climate) -> list[Lease]:
    return [lease for lease in leases.listed(climate, ADMIN, Listing()) if lease.waits]


def test_sixteen_who_free_and_queue_at_once_give_each_host_once(climate: Climate, clock: Clock) -> None:
    blockers = [make(climate, clock) for _ in range(ALL)]
    acts = [partial(leases.delete, climate, MEMBER, one.id) for one in blockers[:4]]
    acts += [partial(queue, climate, clock, hosts_wanted(2)) for _ in range(8)]
    acts += [partial(waiting_round.run_round, climate) for _ in range(4)]
    results = at_once(*acts)
    assert not [one for one in results if isinstance(one, ClimateError)]
    waiting_round.run_round(climate)
    made = [one for one in results if isinstance(one, Lease) and one.name == "w"]
    assert len(made) == 8
    got = [lease for lease in (get(climate, one) for one in made) if not lease.waits]
    assert len(got) == 2, "four hosts were released, and each of the leases wants two"
    assert sum(len(held(lease)) for lease in got) == 4
    assert nothing_is_promised_twice(climate)
    story_is_whole(climate)


def test_a_lease_that_is_granted_and_deleted_at_once_is_gone_and_holds_nothing(climate: Climate, clock: Clock) -> None:
    for _ in range(5):
        blocker = make(climate, clock, hosts_wanted(ALL))
        lease = queue(climate, clock, hosts_wanted(ALL))
        leases.delete(climate, MEMBER, blocker.id)
        acts = [partial(waiting_round.run_round, climate), partial(leases.delete, climate, MEMBER, lease.id)]
        assert not [one for one in at_once(*acts) if isinstance(one, ClimateError)]
        with pytest.raises(NotFound):
            get(climate, lease)
        leases.delete(climate, MEMBER, make(climate, clock, hosts_wanted(ALL)).id)
    story_is_whole(climate)


def test_a_wait_that_ends_while_it_is_granted_ends_in_one_of_both_ways(climate: Climate, clock: Clock) -> None:
    blocker = make(climate, clock, hosts_wanted(ALL))
    lease = queue(climate, clock)
    leases.delete(climate, MEMBER, blocker.id)
    clock.forward(hours=1)
    assert waiting_round.run_round(climate) == [], "the lease was granted after its wait"
    run_due(climate)
    with pytest.raises(NotFound):
        get(climate, lease)
    assert nothing_is_promised_twice(climate)


def test_a_release_that_commits_while_a_lease_joins_the_line_is_not_missed(climate: Climate, clock: Clock) -> None:
    """The lease saw no free host, and the release no lease in the line."""
    blocker = make(climate, clock, hosts_wanted(ALL))
    is_refused, is_released = Signal(), Signal()

    def before(conn: object, cursor: object, sql: str, *rest: object) -> None:
        if "INSERT INTO waiting_marks (lease_id" in sql:
            is_refused.set()
            assert is_released.wait(60)

    def release() -> Lease:
        assert is_refused.wait(60)
        gone = leases.delete(climate, MEMBER, blocker.id)
        is_released.set()
        return gone

    event.listen(climate.engine, "before_cursor_execute", before)
    lease, _ = at_once(partial(queue, climate, clock), release)
    assert waiting_round.run_round(climate) == [lease.id]


def test_a_mark_wakes_the_rounds_only_while_a_lease_waits(climate: Climate, clock: Clock, engine: Engine) -> None:
    blocker = make(climate, clock, hosts_wanted(ALL))
    with counted(engine) as seen:
        leases.delete(climate, MEMBER, blocker.id)
    assert not [sql for sql in seen if "pg_notify" in sql]
    with engine.connect() as conn:
        assert conn.scalar(text("SELECT count(*) FROM waiting_marks")) == 0
    blocker = make(climate, clock, hosts_wanted(ALL))
    queue(climate, clock)
    with counted(engine) as seen:
        leases.delete(climate, MEMBER, blocker.id)
    assert [sql for sql in seen if "pg_notify" in sql]


def test_what_an_ending_lease_pays_is_the_same_for_any_length_of_the_line(climate: Climate, clock: Clock) -> None:
    unlimited = replaced(climate, waiting_per_project=-1)
    first, second, third = (make(climate, clock, hosts_wanted(2)) for _ in range(3))
    alone = cost(climate.engine, lambda: leases.delete(climate, MEMBER, first.id))
    make(climate, clock, hosts_wanted(2)), make(climate, clock, hosts_wanted(2))
    queue(unlimited, clock, hosts_wanted(ALL))
    one = cost(climate.engine, lambda: leases.delete(climate, MEMBER, second.id))
    for _ in range(30):
        queue(unlimited, clock, hosts_wanted(ALL))
    many = cost(climate.engine, lambda: leases.delete(climate, MEMBER, third.id))
    assert (one - alone, many - one) == (1, 0), "one statement more, which wakes the rounds"


def test_a_round_reads_the_line_and_each_sort_of_resources_once(climate: Climate, clock: Clock) -> None:
    unlimited = replaced(climate, waiting_per_project=-1)
    blocker = make(climate, clock, hosts_wanted(ALL - 1))
    for _ in range(5):
        queue(unlimited, clock, hosts_wanted(ALL))
    few = cost(climate.engine, lambda: waiting_round.run_round(climate))
    for _ in range(40):
        queue(unlimited, clock, hosts_wanted(ALL))
    waiting_round.run_round(climate)
    leases.delete(climate, MEMBER, blocker.id)
    make(climate, clock, hosts_wanted(1))
    assert cost(climate.engine, lambda: waiting_round.run_round(climate)) == few


def replaced(climate: Climate, **values: Any) -> Climate:
    return replace(climate, settings=replace(climate.settings, **values))


def test_projects_with_less_use_come_first(climate: Climate, clock: Clock, engine: Engine) -> None:
    blocker = make(climate, clock, hosts_wanted(ALL))
    old, new = queue(climate, clock, hosts_wanted(5)), queue(climate, clock, hosts_wanted(5), caller=STRANGER)
    used = Period(clock.time - timedelta(hours=30), clock.time - timedelta(hours=20))
    with engine.begin() as conn:
        conn.execute(
            text("""
                INSERT INTO lease_usage (lease_id, reservation_id, project_id, user_id, host, during)
                VALUES (:id, :id, :project, 'u', 1, tstzrange(:start, :end))
            """),
            {"id": old.id, "project": MEMBER.project_id, "start": used.start, "end": used.end},
        )
    assert places.of(climate, [old, new]) == {new.id: places.Place(1), old.id: places.Place(2)}
    by_age = replaced(climate, waiting_share_days=0)
    assert places.of(by_age, [old, new]) == {old.id: places.Place(1), new.id: places.Place(2)}
    leases.delete(climate, ADMIN, blocker.id)
    assert waiting_round.run_round(climate) == [new.id]


def test_the_whole_line_is_tried_once_a_minute_and_no_more_while_nobody_waits(climate: Climate, clock: Clock) -> None:
    make(climate, clock, hosts_wanted(ALL))
    lease = queue(climate, clock)
    waiting_round.run_round(climate)

    def due() -> bool:
        with climate.engine.connect() as conn:
            return bool(waiting_list.due(conn, clock.time).ids)

    assert not due()
    clock.forward(seconds=61)
    assert due()
    waiting_round.run_round(climate)
    assert not due()
    leases.delete(climate, MEMBER, lease.id)
    clock.forward(seconds=61)
    waiting_round.run_round(climate)
    clock.forward(hours=1)
    assert not due()


def model(known: list[Lease]) -> Cluster:
    """The slow world of the rule's own tests, with what the leases hold."""
    world = Cluster({host: [] for host in range(1, ALL + 1)})
    for lease in known:
        if lease.hold_state is not HoldState.RELEASED:
            for hold in (hold for one in lease.reservations for hold in one.holds):
                world.taken[hold.host].append(hold.during)
    return world


def entry_of(lease: Lease) -> Entry:
    assert lease.wait_until is not None
    asked = [(one.resource_type, dict(one.spec)) for one in lease.reservations]
    return Entry(lease.id, lease.project_id, lease.user_id, lease.period, lease.wait_until, lease.created_at, asked)


@pytest.mark.parametrize("seed", cases(range(6), range(2)))
def test_random_requests_are_served_as_the_slow_model_says(climate: Climate, clock: Clock, seed: int) -> None:
    chance = Random(seed)
    free = replaced(climate, waiting_per_project=-1, waiting_promises=2)
    granted = 0
    for _ in range(12):
        for _ in range(3):
            start, hours = chance.randrange(5), chance.randrange(1, 5)
            until = None if start and chance.random() < 0.5 else start + chance.randrange(1, 5)
            queue(free, clock, hosts_wanted(chance.randrange(1, 8)), start=start, hours=hours, until=until)
            clock.forward(seconds=1)
        holders = [one for one in leases.listed(climate, ADMIN, Listing()) if held(one)]
        for lease in chance.sample(holders, min(len(holders), chance.randrange(3))):
            leases.delete(climate, ADMIN, lease.id)
        clock.forward(minutes=chance.choice([2, 30, 60]))
        run_due(climate)
        known = leases.listed(climate, ADMIN, Listing())
        world, line = model(known), [entry_of(lease) for lease in known if lease.waits]
        with climate.engine.connect() as conn:
            promised = waiting_list.promised(conn, clock.time)
        found = [leases.get(climate, ADMIN, lease_id) for lease_id in waiting_round.run_round(free)]
        grants = {lease.id: (lease.period, sorted(held(lease))) for lease in found}
        follow_the_rule(line, world, grants, clock.time, Rule(timedelta(hours=1), 2 - promised))
        granted += len(found)
        assert nothing_is_promised_twice(climate)
    assert granted
    story_is_whole(climate)


DIES = """
import os, signal, sys
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from sqlalchemy import event
from climate import plugin
from climate.cloud.fake import FakeCloud
from climate.context import Climate
from climate.service.waiting_list import round
from climate.settings import Settings
from climate.store.engine import connect
from tests.installed_plugins import installed_plugins

url, home, now, last = sys.argv[1:]
engine, left = connect(url), [int(last)]

def die(conn):
    left[0] -= 1
    if left[0] < 0:
        os.kill(os.getpid(), signal.SIGKILL)

event.listen(engine, "commit", die)
climate = Climate(
    engine=engine, cloud=FakeCloud(), plugins=installed_plugins(), settings=Settings(home=Path(home)),
    now=lambda conn: datetime.fromisoformat(now),
)
round.run_round(climate)
"""


@pytest.mark.slow
@pytest.mark.parametrize("last", range(6))
def test_a_round_that_is_killed_before_a_commit_is_repeated(
    climate: Climate, clock: Clock, tmp_path: Any, last: int
) -> None:
    blocker = make(climate, clock, hosts_wanted(ALL))
    line = [queue(climate, clock, hosts_wanted(3)) for _ in range(3)]
    leases.delete(climate, MEMBER, blocker.id)
    url = climate.engine.url.render_as_string(hide_password=False)
    run = [sys.executable, "-c", DIES, url, str(tmp_path), clock.time.isoformat(), str(last)]
    died = subprocess.run(run, check=False, capture_output=True, text=True, timeout=300, env=dict(os.environ))
    assert died.returncode in (-signal.SIGKILL, 0), died.stderr
    waiting_round.run_round(climate)
    assert [get(climate, one).waits for one in line] == [False, False, True]
    assert nothing_is_promised_twice(climate)
    story_is_whole(climate)


def test_a_broken_lease_keeps_no_other_waiting(climate: Climate, clock: Clock, engine: Engine) -> None:
    blocker = make(climate, clock, hosts_wanted(ALL))
    unread, odd, good = (queue(climate, clock, hosts_wanted(count)) for count in (1, 2, 3))
    with engine.begin() as conn:
        conn.execute(text(OF_A_NEWER_RELEASE), {"lease_id": unread.id})
        conn.execute(text("UPDATE reservations SET spec = '[]' WHERE lease_id = :id"), {"id": odd.id})
    leases.delete(climate, MEMBER, blocker.id)
    assert waiting_round.run_round(climate) == [good.id]
    for lease in (unread, odd):
        broken_leases.repair_lease(climate, lease.id, "events")
    clock.forward(minutes=2)
    assert waiting_round.run_round(climate) == [unread.id, odd.id]
