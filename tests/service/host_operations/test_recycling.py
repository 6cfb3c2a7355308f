"""Hosts that recycle go home when their last server is gone; what was promised wins, and nothing is deleted sooner."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from sqlalchemy import Engine, event, text

from climate.cloud import FREEPOOL, CloudError, Fenced, NotYet, Refused
from climate.cloud.fake import FakeCloud, host
from climate.context import Climate
from climate.domain.hosts.pools import DeadlineAction, HostPlace, Pool
from climate.domain.lease import Lease
from climate.domain.status import EventKind, LeaseStatus
from climate.service.host_operations import cleaning, pools, recycling
from climate.service.host_operations.recycling import UpcomingAction
from climate.service.journal import consistency_check
from climate.service.leases import leases
from climate.service.leases.leases import LeaseRequest
from climate.store.hosts import pool_membership
from tests.conftest import ADMIN, MEMBER, Clock
from tests.service.host_rounds import told
from tests.service.lease_actions import get, held, hosts_wanted, make, reservation, run_due

MINUTE = timedelta(minutes=1)


def place_of(climate: Climate, number: int) -> HostPlace:
    with climate.engine.connect() as conn:
        return pool_membership.get(conn, number)


def pool_of(climate: Climate, number: int) -> Pool:
    return place_of(climate, number).pool


def in_cloud(cloud: FakeCloud, number: int) -> str | None:
    return next((pool for pool, hosts in cloud.pools().items() if f"h{number}" in hosts), None)


def ended(climate: Climate, clock: Clock, cloud: FakeCloud, **terms: object) -> tuple[Lease, int, str]:
    """A lease of one host that is just over, that host, and a server that was on it."""
    lease = make(climate, clock, hosts_wanted(1, **{"on_end": "recycle", **terms}), start=0, hours=1)
    run_due(climate)
    (number,) = held(lease)
    server = cloud.boot("project", f"h{number}")
    clock.forward(hours=1)
    run_due(climate)
    assert get(climate, lease).status is LeaseStatus.TERMINATED
    return lease, number, server


def following(climate: Climate, clock: Clock, number: int, minutes: int, count: int = 1) -> Lease:
    """A lease that has to take that host, so many minutes from now."""
    start = clock.time + minutes * MINUTE
    wanted = hosts_wanted(count, hypervisor_properties=f'["==", "$hypervisor_hostname", "h{number}"]')
    return leases.create(climate, MEMBER, LeaseRequest("next", start, start + timedelta(hours=1), None, [wanted]))


def spread(climate: Climate, clock: Clock, number: int, minutes: int, alike: str) -> Lease:
    """A lease of one of two hosts, which took that one."""
    start = clock.time + minutes * MINUTE
    either = f'["in", "$hypervisor_hostname", ["h{number}", "{alike}"]]'
    order = LeaseRequest(
        "next", start, start + timedelta(hours=1), None, [hosts_wanted(1, hypervisor_properties=either)]
    )
    blocker = following(climate, clock, int(alike[1:]), minutes)
    lease = leases.create(climate, MEMBER, order)
    leases.delete(climate, MEMBER, blocker.id)
    assert held(lease) == {number}
    return lease


def test_it_goes_home_when_its_last_server_is_gone(climate: Climate, clock: Clock, cloud: FakeCloud) -> None:
    _, number, server = ended(climate, clock, cloud)
    assert (pool_of(climate, number), in_cloud(cloud, number)) == (Pool.RECYCLING, "recycling")
    with pytest.raises(Refused):
        cloud.boot("project", f"h{number}")
    clock.forward(hours=99)
    assert recycling.run_round(climate) == 0
    assert cloud.server(server), "nothing is deleted while nobody needs the host"
    cloud.delete_server(server, 1 << 60)
    assert recycling.run_round(climate) == 1
    assert (pool_of(climate, number), in_cloud(cloud, number)) == (Pool.RESERVATION, FREEPOOL)
    assert recycling.run_round(climate) == 0
    assert consistency_check.differences(climate) == []


def test_what_it_waits_for_can_be_seen(climate: Climate, clock: Clock, cloud: FakeCloud) -> None:
    lease, number, server = ended(climate, clock, cloud, recycle_deadline="move")
    (seen,) = pools.hosts_of(climate, ADMIN, Pool.RECYCLING)
    assert (seen.place.host, seen.place.since, seen.lease) == (number, clock.time, (lease.id, "project"))
    assert ([one.id for one in seen.servers or ()], seen.ahead) == ([server], None)
    following(climate, clock, number, minutes=60)
    (seen,) = pools.hosts_of(climate, ADMIN, Pool.RECYCLING)
    assert seen.ahead == UpcomingAction(clock.time + 58 * MINUTE, DeadlineAction.MOVE)
    cloud.broken = True
    (seen,) = pools.hosts_of(climate, ADMIN, Pool.RECYCLING)
    assert (seen.servers, seen.ahead) == (None, UpcomingAction(clock.time + 58 * MINUTE, DeadlineAction.MOVE))


def test_the_next_lease_wins_but_not_before_the_deadline(climate: Climate, clock: Clock, cloud: FakeCloud) -> None:
    _, number, server = ended(climate, clock, cloud)
    cloud.looks_until_gone = 2
    lease = following(climate, clock, number, minutes=60)
    clock.time += 58 * MINUTE - timedelta(seconds=1)
    assert recycling.run_round(climate) == 0
    assert cloud.server(server)
    assert ("delete_server", server) not in cloud.calls
    clock.forward(seconds=1)
    while not recycling.run_round(climate):
        assert pool_of(climate, number) is Pool.RECYCLING
    clock.time = lease.period.start
    run_due(climate)
    assert get(climate, lease).status is LeaseStatus.ACTIVE
    assert cloud.server(server) is None
    assert consistency_check.differences(climate) == []


def test_the_lead_leaves_time_for_cleaning(cleaned: Climate, clock: Clock, cloud: FakeCloud) -> None:
    _, number, _ = ended(cleaned, clock, cloud)
    lease = following(cleaned, clock, number, minutes=60)
    clock.time += 48 * MINUTE
    assert recycling.run_round(cleaned) == 1
    place = place_of(cleaned, number)
    assert (place.pool, place.until, in_cloud(cloud, number)) == (Pool.CLEANING, clock.time + 10 * MINUTE, "cleaning")
    assert cleaning.run_round(cleaned) == 0
    clock.time += 10 * MINUTE
    assert cleaning.run_round(cleaned) == 1
    clock.time = lease.period.start
    run_due(cleaned)
    assert get(cleaned, lease).status is LeaseStatus.ACTIVE
    assert get(cleaned, lease).event(EventKind.START).outcome == "OK"


def test_the_next_lease_is_moved_where_that_was_agreed(climate: Climate, clock: Clock, cloud: FakeCloud) -> None:
    _, number, server = ended(climate, clock, cloud, recycle_deadline="move")
    other = number % 8 + 1
    lease = spread(climate, clock, number, 60, f"h{other}")
    clock.time += 58 * MINUTE
    assert recycling.run_round(climate) == 0
    assert held(get(climate, lease)) == {other}
    assert cloud.server(server)
    clock.time = lease.period.start
    assert recycling.run_round(climate) == 0
    run_due(climate)
    assert get(climate, lease).status is LeaseStatus.ACTIVE
    assert cloud.server(server), "the host is not needed any more"


def roomy(climate: Climate, cloud: FakeCloud) -> None:
    """An ordinary host, to which servers can move."""
    cloud.set_hosts([*cloud.hosts.values(), host("ordinary")])


def test_servers_are_moved_to_another_host_where_that_was_agreed(
    climate: Climate, clock: Clock, cloud: FakeCloud
) -> None:
    _, number, server = ended(climate, clock, cloud, recycle_deadline="move")
    roomy(climate, cloud)
    lease = following(climate, clock, number, minutes=60)
    cloud.looks_until_moved = 3
    clock.time += 58 * MINUTE - timedelta(seconds=1)
    assert recycling.run_round(climate) == 0
    assert ("move_server", server) not in cloud.calls
    clock.forward(seconds=1)
    while not recycling.run_round(climate):
        assert (pool_of(climate, number), held(get(climate, lease))) == (Pool.RECYCLING, {number})
    clock.time = lease.period.start
    run_due(climate)
    moved = cloud.server(server)
    assert moved is not None
    assert (moved.host, get(climate, lease).status) == ("ordinary", LeaseStatus.ACTIVE)
    assert cloud.doubled() == []
    assert consistency_check.differences(climate) == []


@pytest.mark.parametrize("trouble", [CloudError("away"), NotYet("busy"), Fenced("late")])
def test_a_move_is_reported_once_when_it_has_begun(
    climate: Climate, clock: Clock, cloud: FakeCloud, trouble: Exception
) -> None:
    _, number, _ = ended(climate, clock, cloud, recycle_deadline="move")
    roomy(climate, cloud)
    following(climate, clock, number, minutes=60)
    clock.time += 58 * MINUTE
    cloud.failures = {"move_server": trouble}
    assert [recycling.run_round(climate), recycling.run_round(climate)] == [0, 0]
    assert [message for message in told(climate, "host.recycling") if "are moved" in message] == []
    cloud.failures, cloud.looks_until_moved = {}, 8
    while not recycling.run_round(climate):
        assert pool_of(climate, number) is Pool.RECYCLING
    moved = [message for message in told(climate, "host.recycling") if "are moved" in message]
    assert len(moved) == 2, "one for administrators, one for whoever leased the host"


def test_a_server_that_cannot_move_is_deleted_alone(climate: Climate, clock: Clock, cloud: FakeCloud) -> None:
    _, number, goes = ended(climate, clock, cloud, recycle_deadline="move")
    cloud.set_hosts([*cloud.hosts.values(), host("elsewhere")])
    stays = cloud.boot("project", "elsewhere")
    cloud.change(stays, "PAUSED")
    cloud.migrate(stays, f"h{number}")
    lease = following(climate, clock, number, minutes=60)
    clock.time += 58 * MINUTE
    while not recycling.run_round(climate):
        assert pool_of(climate, number) is Pool.RECYCLING
    assert (cloud.server(stays), cloud.server(goes) is not None) == (None, True)
    clock.time = lease.period.start
    run_due(climate)
    assert get(climate, lease).status is LeaseStatus.ACTIVE


def test_the_next_lease_waits_half_of_the_lead_for_servers_that_move(
    climate: Climate, clock: Clock, cloud: FakeCloud
) -> None:
    _, number, server = ended(climate, clock, cloud, recycle_deadline="move")
    roomy(climate, cloud)
    alike = number % 8 + 1
    lease = spread(climate, clock, number, minutes=5, alike=f"h{alike}")
    cloud.looks_until_moved = 10**6
    clock.forward(seconds=300 - 120)
    recycling.run_round(climate)
    assert held(get(climate, lease)) == {number}, "they may leave yet"
    clock.forward(seconds=60)
    recycling.run_round(climate)
    assert held(get(climate, lease)) == {alike}
    assert cloud.server(server), "the host is not needed any more"


def test_where_there_is_no_other_host_the_servers_go(climate: Climate, clock: Clock, cloud: FakeCloud) -> None:
    _, number, server = ended(climate, clock, cloud, recycle_deadline="move")
    lease = following(climate, clock, number, minutes=60)
    clock.time += 58 * MINUTE
    assert recycling.run_round(climate) == 1
    assert cloud.server(server) is None
    clock.time = lease.period.start
    run_due(climate)
    assert get(climate, lease).status is LeaseStatus.ACTIVE


def test_the_next_lease_does_not_wait_for_servers_that_cannot_be_deleted(
    climate: Climate, clock: Clock, cloud: FakeCloud
) -> None:
    _, number, server = ended(climate, clock, cloud)
    alike = number % 8 + 1
    lease = spread(climate, clock, number, minutes=5, alike=f"h{alike}")
    cloud.looks_until_gone = 10**6
    clock.forward(seconds=300 - 120)
    recycling.run_round(climate)
    assert held(get(climate, lease)) == {number}, "they may go yet"
    clock.forward(seconds=60)
    recycling.run_round(climate)
    assert held(get(climate, lease)) == {alike}
    clock.time = lease.period.start
    run_due(climate)
    assert (get(climate, lease).status, get(climate, lease).degraded) == (LeaseStatus.ACTIVE, False)
    assert cloud.server(server) is not None
    assert pool_of(climate, number) is Pool.RECYCLING


def test_a_released_host_goes_with_its_servers(climate: Climate, clock: Clock, cloud: FakeCloud) -> None:
    _, number, server = ended(climate, clock, cloud, on_end="release")
    assert (pool_of(climate, number), in_cloud(cloud, number)) == (Pool.MULTI_TENANT, None)
    assert cloud.server(server)
    assert cloud.boot("other-project", f"h{number}"), "it is everybody's"


def test_a_released_host_that_is_promised_recycles_until_it_is_not(
    climate: Climate, clock: Clock, cloud: FakeCloud
) -> None:
    lease = make(climate, clock, hosts_wanted(2, on_end="release"), start=0, hours=1)
    run_due(climate)
    kept, free = sorted(held(lease))
    servers = [cloud.boot("project", f"h{number}") for number in (kept, free)]
    promised = following(climate, clock, kept, minutes=90)
    clock.forward(hours=1)
    run_due(climate)
    assert [pool_of(climate, number) for number in (kept, free)] == [Pool.RECYCLING, Pool.MULTI_TENANT]
    assert [in_cloud(cloud, number) for number in (kept, free)] == ["recycling", None]
    assert set(cloud.pools()) == {FREEPOOL, "recycling"}
    assert recycling.run_round(climate) == 0
    leases.delete(climate, MEMBER, promised.id)
    assert recycling.run_round(climate) == 1
    assert (pool_of(climate, kept), in_cloud(cloud, kept)) == (Pool.MULTI_TENANT, None)
    assert all(cloud.server(server) for server in servers)
    assert consistency_check.differences(climate) == []


def test_a_promise_wins_over_a_release_too(climate: Climate, clock: Clock, cloud: FakeCloud) -> None:
    lease = make(climate, clock, hosts_wanted(1, on_end="release"), start=0, hours=1)
    run_due(climate)
    (number,) = held(lease)
    server = cloud.boot("project", f"h{number}")
    lease = following(climate, clock, number, minutes=90)
    clock.forward(hours=1)
    run_due(climate)
    clock.time = lease.period.start - 2 * MINUTE
    assert recycling.run_round(climate) == 1
    clock.time = lease.period.start
    run_due(climate)
    assert (get(climate, lease).status, cloud.server(server)) == (LeaseStatus.ACTIVE, None)


def test_a_host_is_promised_last_while_it_recycles(climate: Climate, clock: Clock, cloud: FakeCloud) -> None:
    _, number, _ = ended(climate, clock, cloud)
    assert number not in held(make(climate, clock, hosts_wanted(7), start=0))
    assert held(make(climate, clock, hosts_wanted(1), start=0)) == {number}


def test_one_hosts_trouble_does_not_keep_the_others_from_home(climate: Climate, clock: Clock, cloud: FakeCloud) -> None:
    lease = make(climate, clock, hosts_wanted(3, on_end="recycle"), start=0, hours=1)
    run_due(climate)
    clock.forward(hours=1)
    run_due(climate)
    first = min(held(lease))
    watch = cloud.watch
    seen = []

    def look(verb: str) -> None:
        assert watch
        watch(verb)
        seen.append(verb)
        if verb == "servers_on" and seen.count(verb) == 1:
            raise CloudError("away")

    cloud.watch = look
    assert recycling.run_round(climate) == 2
    assert pool_of(climate, first) is Pool.RECYCLING
    assert recycling.run_round(climate) == 1


@pytest.mark.parametrize("policy", ["recycle", "terminate"])
def test_one_servers_trouble_does_not_keep_the_others(
    climate: Climate, clock: Clock, cloud: FakeCloud, policy: str
) -> None:
    lease = make(climate, clock, hosts_wanted(1, on_end=policy), start=0, hours=1)
    run_due(climate)
    (number,) = held(lease)
    servers = [cloud.boot("project", f"h{number}") for _ in range(3)]
    watch = cloud.watch
    seen = []

    def look(verb: str) -> None:
        assert watch
        watch(verb)
        seen.append(verb)
        if verb == "delete_server" and seen.count(verb) == 1:
            raise CloudError("locked")

    cloud.watch = look
    clock.forward(hours=1)
    run_due(climate)
    if policy == "recycle":
        following(climate, clock, number, minutes=1)
        recycling.run_round(climate)
    assert [cloud.server(one) is None for one in servers] == [False, True, True]


def test_who_moved_the_host_meanwhile_wins(climate: Climate, clock: Clock, cloud: FakeCloud, engine: Engine) -> None:
    """The cloud is ahead of the books then; the round that mends what has drifted puts it where the books say."""
    _, number, server = ended(climate, clock, cloud)
    cloud.delete_server(server, 1 << 60)
    watch = cloud.watch

    def look(verb: str) -> None:
        assert watch
        watch(verb)
        if verb == "place":
            with engine.begin() as conn:
                conn.execute(text("UPDATE hosts SET version = version + 1 WHERE id = :id"), {"id": number})

    cloud.watch = look
    assert recycling.run_round(climate) == 0
    assert pool_of(climate, number) is Pool.RECYCLING


def test_it_takes_the_same_statements_for_any_number_of_hosts(
    climate: Climate, clock: Clock, cloud: FakeCloud, engine: Engine
) -> None:
    counts = []
    for count in (1, 4):
        lease = make(climate, clock, hosts_wanted(count, on_end="recycle"), start=0, hours=1)
        run_due(climate)
        clock.forward(hours=1)
        run_due(climate)
        seen: list[str] = []
        listen: Callable[..., None] = lambda *executed, seen=seen: seen.append(executed[2])  # noqa: E731
        event.listen(engine, "before_cursor_execute", listen)
        assert recycling.run_round(climate) == count
        event.remove(engine, "before_cursor_execute", listen)
        counts.append(len(seen))
        assert {pool_of(climate, number) for number in held(lease)} == {Pool.RESERVATION}
    assert counts[0] == counts[1] <= 14


def test_owner_and_admins_are_notified(climate: Climate, clock: Clock, cloud: FakeCloud, engine: Engine) -> None:
    lease, number, _ = ended(climate, clock, cloud)
    following(climate, clock, number, minutes=1)
    recycling.run_round(climate)
    with engine.connect() as conn:
        told = conn.execute(
            text("SELECT kind, project_id, lease_id FROM notices WHERE audience = 'people' ORDER BY id")
        )
        rows = [tuple(row) for row in told]
    assert rows == [
        ("lease.ended", "project", lease.id),
        ("host.recycling", None, None),
        ("host.recycling", None, None),
        ("host.recycling", "project", lease.id),
    ]


def test_a_lease_whose_start_failed_leaves_nothing_to_recycle(climate: Climate, clock: Clock, cloud: FakeCloud) -> None:
    lease = make(climate, clock, hosts_wanted(1, on_end="recycle"), start=0, hours=1)
    cloud.unheard["lend"] = 99
    for _ in range(12):
        run_due(climate)
        clock.forward(minutes=4)
    (number,) = held(lease)
    server = cloud.boot("project", f"h{number}")
    assert in_cloud(cloud, number) == reservation(lease)
    clock.time = lease.period.end
    run_due(climate)
    assert get(climate, lease).status is LeaseStatus.TERMINATED, "W12"
    assert (pool_of(climate, number), in_cloud(cloud, number)) == (Pool.RESERVATION, FREEPOOL)
    assert cloud.server(server) is None


def test_terms_of_a_newer_release_keep_no_other_host(
    climate: Climate, clock: Clock, cloud: FakeCloud, engine: Engine
) -> None:
    odd, stays, _ = ended(climate, clock, cloud)
    _, leaves, server = ended(climate, clock, cloud)
    spec = 'UPDATE reservations SET spec = spec || \'{"recycle_deadline": "politely"}\' WHERE lease_id = :id'
    with engine.begin() as conn:
        conn.execute(text(spec), {"id": odd.id})
    cloud.delete_server(server, 1 << 60)
    assert recycling.run_round(climate) == 1
    assert (pool_of(climate, stays), pool_of(climate, leaves)) == (Pool.RECYCLING, Pool.RESERVATION)
    seen = pools.hosts_of(climate, ADMIN, Pool.RECYCLING)
    assert [(one.place.host, one.ahead) for one in seen] == [(stays, None)]
