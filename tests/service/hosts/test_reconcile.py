"""What the cloud has elsewhere than the books say: put right, or told."""

from datetime import timedelta
from uuid import UUID

import pytest
from sqlalchemy import Engine, select

from climate.cloud import FREEPOOL, CloudError, Refused
from climate.cloud.fake import FakeCloud
from climate.context import Climate
from climate.domain.facts import HostMoved
from climate.domain.hosts.pools import HostPlace, Pool
from climate.domain.status import ERROR
from climate.service.host_operations import failures
from climate.service.hosts import inventory, reconcile
from climate.service.leases import update
from climate.service.leases.update import Changes
from climate.store.hosts import drift as notes
from climate.store.hosts import pool_membership
from climate.store.leases import event_claims
from climate.store.tables.limits_and_notices import notices
from tests.conftest import ADMIN, MEMBER, Clock, cloud_host
from tests.scenarios.test_statement_counts import cost
from tests.service.lease_actions import claim, get, held, hosts_wanted, make, reservation, run, run_due


def place(climate: Climate, number: int) -> HostPlace:
    with climate.engine.connect() as conn:
        return pool_membership.get(conn, number)


def put(climate: Climate, number: int, pool: Pool, reservation_id: UUID | None = None) -> HostPlace:
    """On the books only, as if whoever moved it had died before asking the cloud."""
    with climate.engine.begin() as conn:
        token = event_claims.tokens(conn, 1)[0]
        moved = HostMoved(climate.now(conn), pool, "by a test", token, reservation_id)
        return pool_membership.record(conn, ADMIN, [(pool_membership.get(conn, number, lock=True), [moved])])[0]


def told(climate: Climate) -> list[str]:
    with climate.engine.connect() as conn:
        return list(
            conn.scalars(select(notices.c.message).where(notices.c.kind == "pool.drift").order_by(notices.c.id))
        )


def noted(climate: Climate) -> dict[int, str]:
    with climate.engine.connect() as conn:
        return notes.noted(conn)


@pytest.mark.parametrize(
    "pool", [Pool.MULTI_TENANT, Pool.RECYCLING, Pool.DRAINING, Pool.CLEANING, Pool.MAINTENANCE, Pool.FAILED]
)
def test_the_cloud_follows_the_books_also_when_nobody_asked_it(climate: Climate, cloud: FakeCloud, pool: Pool) -> None:
    moved = put(climate, 3, pool)
    assert reconcile.correct(climate) == 1
    assert {name for name, members in cloud.pools().items() if "h3" in members} == {reconcile.aggregate_of(moved)} - {
        None
    }
    assert (reconcile.correct(climate), told(climate), noted(climate)) == (0, [], {})
    put(climate, 3, Pool.RESERVATION)
    assert reconcile.correct(climate) == 1
    assert "h3" in cloud.pools()[FREEPOOL]


def test_an_allocated_host_comes_back_to_its_lease(climate: Climate, clock: Clock, cloud: FakeCloud) -> None:
    lease = make(climate, clock, hosts_wanted(2), start=0)
    run_due(climate)
    name = f"h{min(held(lease))}"
    cloud.place(name, FREEPOOL, place(climate, min(held(lease))).token)
    assert reconcile.correct(climate) == 1
    assert name in cloud.pools()[reservation(lease)]


def test_a_host_that_an_event_works_on_is_left_to_it(climate: Climate, clock: Clock, cloud: FakeCloud) -> None:
    lease = make(climate, clock, start=0)
    (message,) = claim(climate)
    cloud.unheard = {"lend": 1}
    run(climate, message)
    assert cloud.pools()[reservation(lease)], "the cloud is ahead of the books, and the event is to be tried again"
    assert reconcile.correct(climate) == 0
    clock.forward(minutes=5)
    (message,) = claim(climate)
    cloud.failures = {"lend": CloudError("away")}
    cloud.place(f"h{min(held(lease))}", None, message.token)
    assert reconcile.correct(climate) == 0, "the event is in progress"
    run(climate, message)
    assert reconcile.correct(climate) == 1, "the start waits for a host that the cloud does not have ready"
    assert get(climate, lease).status == "STARTING"


def test_an_end_that_is_tried_again_is_left_to_itself(climate: Climate, clock: Clock, cloud: FakeCloud) -> None:
    lease = make(climate, clock, start=0, hours=1)
    run_due(climate)
    clock.forward(hours=1)
    cloud.unheard = {"take_back": 1}
    (message,) = claim(climate)
    run(climate, message)
    assert (place(climate, min(held(lease))).pool, reconcile.correct(climate)) == (Pool.LENT, 0)


@pytest.mark.parametrize(("verb", "hours"), [("snapshot", 1), ("take_back", 2)])
def test_a_host_that_was_taken_out_is_no_business_of_an_event_that_was_given_up(
    climate: Climate, clock: Clock, cloud: FakeCloud, verb: str, hours: int
) -> None:
    lease = make(climate, clock, hosts_wanted(8, before_end="snapshot"), start=0, hours=2)
    run_due(climate)
    update.update(climate, MEMBER, lease.id, Changes(before_end=clock.time + timedelta(hours=1)))
    cloud.boot("project", "h3")
    cloud.failures = {verb: Refused("no")}
    for _ in range(hours):
        clock.forward(hours=1)
        run_due(climate)
    assert [one.status for one in get(climate, lease).events].count(ERROR) == 1
    cloud.failures = {"place": CloudError("away")}
    failures.fail(climate, ADMIN, "3", "smoke")
    cloud.failures = {}
    assert reconcile.correct(climate) == 1
    assert "h3" in cloud.pools()["failed"]


def test_what_somebody_asked_of_the_cloud_and_never_wrote_down_is_undone(climate: Climate, cloud: FakeCloud) -> None:
    """The cloud refuses the token of the books: a later one was used there."""
    before = put(climate, 3, Pool.MAINTENANCE)
    cloud.place("h3", FREEPOOL, before.token + 10)
    with climate.engine.begin() as conn:
        event_claims.tokens(conn, 20)
    assert reconcile.correct(climate) == 1
    after = place(climate, 3)
    assert "h3" in cloud.pools()["maintenance"]
    assert (after.pool, after.reason, after.version) == (before.pool, before.reason, before.version + 1)
    assert after.token > before.token + 10


def test_a_host_that_moved_meanwhile_is_not_placed_where_it_was(climate: Climate, cloud: FakeCloud) -> None:
    put(climate, 3, Pool.MAINTENANCE)
    moved = []

    def move(verb: str) -> None:
        if verb == "place" and not moved:
            moved.append(put(climate, 3, Pool.FAILED))
            reconcile.send_moves(climate, moved)

    cloud.watch = move
    reconcile.correct(climate)
    assert "h3" in cloud.pools()["failed"]
    assert place(climate, 3).version == moved[0].version


def test_a_token_is_not_outdone_while_an_event_begins(climate: Climate, clock: Clock, cloud: FakeCloud) -> None:
    make(climate, clock, hosts_wanted(8), start=1)
    before = place(climate, 3)
    with climate.engine.begin() as conn:
        later = event_claims.tokens(conn, 1)[0]
    cloud.place("h3", None, later)
    begun = []

    def begin(verb: str) -> None:
        if verb == "place" and not begun:
            clock.forward(hours=1)
            begun.extend(claim(climate))

    cloud.watch = begin
    assert (reconcile.correct(climate), len(begun)) == (1, 1)
    assert place(climate, 3) == before


def test_what_cannot_be_corrected_is_reported_once(climate: Climate, clock: Clock, cloud: FakeCloud) -> None:
    cloud.set_hosts([host for host in cloud.hosts.values() if host.name != "h3"])
    for _ in range(3):
        assert reconcile.correct(climate) == 1
        clock.forward(minutes=2)
    assert told(climate) == ["The cloud does not have host h3 in the pool reservation: there is no host h3"]
    assert noted(climate) == {3: "there is no host h3"}
    cloud.set_hosts([*cloud.hosts.values(), cloud_host("h3")])
    assert reconcile.correct(climate) == 1
    assert noted(climate) == {}
    assert reconcile.correct(climate) == 0


def test_servers_keep_a_host_out_of_the_reservation_pool(climate: Climate, cloud: FakeCloud) -> None:
    put(climate, 3, Pool.MULTI_TENANT)
    reconcile.correct(climate)
    server = cloud.boot("p", "h3")
    put(climate, 3, Pool.RESERVATION)
    reconcile.correct(climate)
    assert noted(climate) == {3: "servers are still on h3"}
    cloud.delete_server(server, 1)
    reconcile.correct(climate)
    assert ("h3" in cloud.pools()[FREEPOOL], noted(climate)) == (True, {})


def test_one_hosts_trouble_does_not_keep_the_others_from_theirs(climate: Climate, cloud: FakeCloud) -> None:
    for number in (2, 3, 4):
        put(climate, number, Pool.FAILED)
    cloud.set_hosts([host for host in cloud.hosts.values() if host.name != "h3"])
    assert reconcile.correct(climate) == 3
    assert {"h2", "h4"} == cloud.pools()["failed"]


def test_a_cloud_that_is_away_is_nobodys_fault(climate: Climate, cloud: FakeCloud) -> None:
    put(climate, 3, Pool.FAILED)
    cloud.failures = {"place": CloudError("away")}
    assert reconcile.correct(climate) == 1
    assert (told(climate), noted(climate)) == ([], {})
    cloud.broken = True
    with pytest.raises(CloudError):
        reconcile.correct(climate)
    cloud.broken, cloud.failures = False, {}
    assert reconcile.correct(climate) == 1, "it was let go of"


def test_hosts_that_nobody_registered_are_turned_out(climate: Climate, cloud: FakeCloud) -> None:
    cloud.set_hosts([*cloud.hosts.values(), *(cloud_host(name) for name in ("n1", "n2", "n3"))])
    cloud.enrol("n1", 1)
    cloud.place("n2", "recycling", 1)
    cloud.lend("somebody-elses", "p", [], 1)
    cloud.place("n3", "somebody-elses", 1)
    reconcile.correct(climate)
    assert {name for members in cloud.pools().values() for name in members if name.startswith("n")} == {"n3"}


def test_two_workers_do_not_place_a_host_twice(climate: Climate, clock: Clock, cloud: FakeCloud) -> None:
    put(climate, 3, Pool.FAILED)
    found = []

    def another(verb: str) -> None:
        if verb == "place" and not found:
            found.append(0)
            found[0] = reconcile.correct(climate)

    cloud.watch = another
    assert reconcile.correct(climate) == 1
    assert found == [0]
    assert [target for verb, target in cloud.calls if verb == "place"] == ["h3"]


def test_statements_do_not_grow_with_the_hosts(climate: Climate, engine: Engine, cloud: FakeCloud) -> None:
    def drifted(*numbers: int) -> int:
        for number in numbers:
            put(climate, number, Pool.FAILED)
        cloud.failures = {"place": Refused("somebody else's")}
        return cost(engine, lambda: reconcile.correct(climate))

    assert drifted(1) == drifted(2, 3, 4, 5, 6)


def test_a_removed_host_is_not_asked_for(climate: Climate, cloud: FakeCloud) -> None:
    inventory.remove(climate, ADMIN, "3")
    assert (reconcile.correct(climate), cloud.calls[-1][0]) == (0, "pools")
