"""The end of a lease as it was agreed: with grace or at once, prolonged in time, by whose terms."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import Engine, text

from climate.cloud import Refused
from climate.cloud.fake import FakeCloud
from climate.context import Climate
from climate.domain.errors import Conflict, InvalidInput
from climate.domain.lease import Lease
from climate.domain.status import DONE, UNDONE, LeaseStatus
from climate.service.events import events
from climate.service.host_operations import recycling
from climate.service.hosts import inventory
from climate.service.journal import consistency_check
from climate.service.leases import lease_servers, leases, update
from climate.service.leases.leases import LeaseRequest
from climate.service.leases.update import Changes
from tests.conftest import ADMIN, MEMBER, Clock
from tests.service.host_operations.test_recycling import following
from tests.service.lease_actions import (
    ADJUST,
    BEFORE_END,
    CLOSE,
    END,
    event,
    get,
    held,
    hosts_wanted,
    make,
    reservation,
    run_due,
)

MINUTE = timedelta(minutes=1)
GRACE = 600


def change(climate: Climate, lease: Lease, **what: Any) -> Lease:
    return update.update(climate, MEMBER, lease.id, Changes(**what))


def terms(lease: Lease, **what: Any) -> list[dict[str, Any]]:
    return [{"id": reservation(lease), **what}]


def told(engine: Engine) -> list[str]:
    with engine.connect() as conn:
        return list(conn.scalars(text("SELECT kind FROM notices WHERE audience = 'people' ORDER BY id")))


@pytest.fixture
def lease(climate: Climate, clock: Clock) -> Lease:
    """An hour with a host and ten minutes of grace, which has started."""
    made = make(climate, clock, hosts_wanted(1, grace_period=GRACE), start=0, hours=1)
    run_due(climate)
    return made


@pytest.fixture
def server(cloud: FakeCloud, lease: Lease) -> str:
    (number,) = held(lease)
    return cloud.boot("project", f"h{number}")


def in_grace(climate: Climate, clock: Clock, minutes: float = 1) -> None:
    clock.time += timedelta(hours=1, minutes=minutes)
    run_due(climate)


def test_its_hosts_are_shown_as_held_also_in_the_grace(climate: Climate, clock: Clock, lease: Lease) -> None:
    (number,) = held(lease)
    in_grace(climate, clock, 9)
    assert [one.lease_id for one in inventory.allocation(climate, ADMIN, str(number))[1]] == [lease.id]
    in_grace(climate, clock)
    assert inventory.allocation(climate, ADMIN, str(number))[1] == []


def test_what_is_said_of_the_end_names_the_grace(climate: Climate, clock: Clock, engine: Engine, lease: Lease) -> None:
    change(climate, lease, before_end=clock.time + 30 * MINUTE)
    for _ in range(2):
        clock.time += 30 * MINUTE
        run_due(climate)
    with engine.connect() as conn:
        said = {row.kind: row.message for row in conn.execute(text("SELECT kind, message FROM notices"))}
    before, grace = said["lease.before_end"], said["lease.grace"]
    assert "13:00:00 UTC; nothing new can be booted then, and at 2030-01-01 13:10:00 UTC its servers" in before
    assert "unless it is prolonged before 2030-01-01 13:10:00 UTC, then its servers" in grace


def test_servers_go_on_and_nothing_is_booted(
    climate: Climate, clock: Clock, cloud: FakeCloud, engine: Engine, lease: Lease, server: str
) -> None:
    in_grace(climate, clock, 9)
    assert (get(climate, lease).status, event(climate, lease, CLOSE).status) == (LeaseStatus.ACTIVE, DONE)
    assert cloud.server(server)
    with pytest.raises(Refused):
        cloud.boot("project", f"h{min(held(lease))}")
    with pytest.raises(Conflict, match="in its grace period until 2030-01-01 13:10:00 UTC"):
        lease_servers.admit(climate, MEMBER, reservation(lease))
    assert told(engine) == ["lease.grace"]
    clock.time += MINUTE
    run_due(climate)
    assert (get(climate, lease).status, cloud.server(server)) == (LeaseStatus.TERMINATED, None)
    assert told(engine) == ["lease.grace", "lease.ended"]
    assert consistency_check.differences(climate) == []


def test_its_hosts_are_promised_to_nobody_else_until_the_grace_is_over(
    climate: Climate, clock: Clock, lease: Lease
) -> None:
    (number,) = held(lease)
    with pytest.raises(Conflict):
        following(climate, clock, number, minutes=69)
    next_one = following(climate, clock, number, minutes=70)
    clock.time = lease.period.end + 10 * MINUTE
    run_due(climate)
    assert get(climate, next_one).status is LeaseStatus.ACTIVE


def test_it_can_be_prolonged_within_the_grace(
    climate: Climate, clock: Clock, cloud: FakeCloud, lease: Lease, server: str
) -> None:
    in_grace(climate, clock)
    later = change(climate, lease, end=lease.period.end + timedelta(hours=1))
    assert (later.event(CLOSE).status, later.event(CLOSE).due_at) == (UNDONE, later.period.end)
    assert later.event(END).due_at == later.period.end + timedelta(seconds=GRACE)
    run_due(climate)
    assert event(climate, lease, ADJUST).carried_out
    assert cloud.server(server)
    assert cloud.boot("project", f"h{min(held(lease))}"), "it is open again"
    assert lease_servers.admit(climate, MEMBER, reservation(lease)).id == lease.id
    clock.time = later.period.end
    run_due(climate)
    assert cloud.is_closed(reservation(lease))
    clock.forward(seconds=GRACE)
    run_due(climate)
    assert (get(climate, lease).status, cloud.server(server)) == (LeaseStatus.TERMINATED, None)


def test_not_into_what_is_promised(climate: Climate, clock: Clock, lease: Lease) -> None:
    following(climate, clock, min(held(lease)), minutes=100)
    in_grace(climate, clock)
    before = get(climate, lease)
    with pytest.raises(Conflict, match="this one can last until 2030-01-01 13:30:00 UTC at most"):
        change(climate, lease, end=lease.period.end + timedelta(hours=1))
    assert get(climate, lease) == before
    assert change(climate, lease, end=lease.period.end + 30 * MINUTE).period.end == lease.period.end + 30 * MINUTE


def test_not_when_the_grace_is_over(climate: Climate, clock: Clock, lease: Lease) -> None:
    clock.time = lease.period.end + timedelta(seconds=GRACE)
    with pytest.raises(InvalidInput, match="can only be renamed"):
        change(climate, lease, end=clock.time + MINUTE)


@pytest.mark.parametrize("what", [{"end_now": True}, {"before_end": None, "reservations": True}, {"end": 0.0}])
def test_the_grace_itself_is_not_prolonged(climate: Climate, clock: Clock, lease: Lease, what: dict[str, Any]) -> None:
    """Or `end now`, said once a minute, would keep the servers for ever."""
    in_grace(climate, clock, 0.5)
    given = {**what, **({"reservations": terms(lease, before_end="")} if "reservations" in what else {})}
    given |= {"end": clock.time} if "end" in what else {}
    with pytest.raises(InvalidInput, match="ends for good at 2030-01-01 13:10:00 UTC"):
        change(climate, lease, **given)
    assert change(climate, lease, name="renamed").event(END).due_at == lease.period.end + 10 * MINUTE


def test_ending_now_begins_the_grace(
    climate: Climate, clock: Clock, lease: Lease, server: str, cloud: FakeCloud
) -> None:
    clock.forward(minutes=5)
    cut = change(climate, lease, end_now=True)
    assert (cut.event(CLOSE).due_at, cut.event(END).due_at) == (clock.time, clock.time + 10 * MINUTE)
    run_due(climate)
    assert cloud.is_closed(reservation(lease))
    assert cloud.server(server)


def test_deleting_skips_the_grace(climate: Climate, clock: Clock, lease: Lease, server: str, cloud: FakeCloud) -> None:
    in_grace(climate, clock)
    leases.delete(climate, MEMBER, lease.id)
    run_due(climate)
    assert cloud.server(server) is None
    assert leases.history(climate, ADMIN, lease.id)[-1].fact.at == clock.time


def test_who_wakes_late_closes_late_or_not_at_all(
    climate: Climate, clock: Clock, lease: Lease, engine: Engine, cloud: FakeCloud
) -> None:
    in_grace(climate, clock, 20)
    close = event(climate, lease, CLOSE)
    assert (close.status, close.outcome) == (DONE, "SKIPPED")
    assert get(climate, lease).status is LeaseStatus.TERMINATED
    assert told(engine) == ["lease.ended"]


def test_a_close_that_is_given_up_does_not_keep_the_end(
    climate: Climate, clock: Clock, lease: Lease, cloud: FakeCloud
) -> None:
    cloud.failures["close"] = Refused("never")
    in_grace(climate, clock)
    failed = event(climate, lease, CLOSE)
    assert (failed.status, failed.reason) == ("ERROR", "never")
    cloud.failures.clear()
    events.requeue(climate, ADMIN, failed.id)
    run_due(climate)
    assert event(climate, lease, CLOSE).status is DONE
    clock.forward(minutes=9)
    run_due(climate)
    assert get(climate, lease).status is LeaseStatus.TERMINATED


def test_a_lease_that_never_started_has_nothing_to_prolong(climate: Climate, clock: Clock, engine: Engine) -> None:
    lease = make(climate, clock, hosts_wanted(1, grace_period=GRACE), start=0, hours=1)
    in_grace(climate, clock)
    assert get(climate, lease).status is LeaseStatus.ERROR
    with pytest.raises(InvalidInput, match="can only be renamed"):
        change(climate, lease, end=clock.time + timedelta(hours=1))
    clock.forward(minutes=9)
    run_due(climate)
    assert get(climate, lease).status is LeaseStatus.TERMINATED
    assert told(engine) == ["lease.missed"]


def test_grace_given_and_taken_while_the_lease_runs(climate: Climate, clock: Clock) -> None:
    lease = make(climate, clock, hosts_wanted(1), start=0, hours=1)
    run_due(climate)
    given = change(climate, lease, reservations=terms(lease, grace_period=GRACE))
    assert (given.event(CLOSE).due_at, given.event(END).due_at - given.period.end) == (given.period.end, 10 * MINUTE)
    taken = change(climate, lease, reservations=terms(lease, grace_period=0))
    assert taken.event(END).due_at == taken.period.end
    clock.time = taken.period.end
    run_due(climate)
    assert get(climate, lease).status is LeaseStatus.TERMINATED
    assert consistency_check.differences(climate) == []


def test_a_lease_ends_as_a_whole(climate: Climate, clock: Clock) -> None:
    """The hosts of all its reservations are kept for the longest grace, so the next lease is not late."""
    lease = make(climate, clock, hosts_wanted(1, grace_period=GRACE), hosts_wanted(1), start=0, hours=1)
    ends = {hold.during.end for r in lease.reservations for hold in r.holds}
    assert ends == {lease.period.end + 10 * MINUTE} == {lease.event(END).due_at}
    wish = [{"id": str(lease.reservations[1].id), "grace_period": 2 * GRACE}]
    longer = update.update(climate, MEMBER, lease.id, Changes(reservations=wish))
    assert {hold.during.end for r in longer.reservations for hold in r.holds} == {longer.event(END).due_at}
    assert longer.event(END).due_at == lease.period.end + 20 * MINUTE


@pytest.mark.parametrize("policy", ["terminate", "recycle", "release"])
@pytest.mark.parametrize("grace", [0, GRACE])
def test_terms_of_the_settings_are_those_of_leases_that_do_not_say(
    climate: Climate, clock: Clock, policy: str, grace: int
) -> None:
    settings = replace(climate.settings, host_on_end=policy, grace_period=grace, recycle_deadline="move")
    lease = make(replace(climate, settings=settings), clock, hosts_wanted(1), hosts_wanted(1, on_end="recycle"))
    said = [{name: r.spec[name] for name in ("on_end", "grace_period", "recycle_deadline")} for r in lease.reservations]
    common = {"grace_period": grace, "recycle_deadline": "move"}
    assert said == [{"on_end": policy, **common}, {"on_end": "recycle", **common}]


def test_terms_of_the_pool_come_before_those_of_the_settings(climate: Climate, clock: Clock, engine: Engine) -> None:
    with engine.begin() as conn:
        values = {"now": clock.time}
        conn.execute(text("INSERT INTO pool_terms VALUES ('reservation', NULL, 'release', 60, NULL, :now)"), values)
    settings = replace(climate.settings, host_on_end="recycle", host_on_end_choices="", max_grace_period=0)
    lease = make(replace(climate, settings=settings), clock, hosts_wanted(1))
    assert (lease.reservations[0].spec["on_end"], lease.reservations[0].spec["grace_period"]) == ("release", 60)
    again = make(replace(climate, settings=settings), clock, hosts_wanted(1, on_end="release", grace_period=60))
    assert again.reservations[0].spec["on_end"] == "release", "what is usual may also be said"


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"on_end": "release"}, "on_end may be recycle, terminate here, not release"),
    ({"grace_period": 86401}, "grace_period may be 86400 seconds at most here, not 86401"),
]


@pytest.mark.parametrize(("asked", "said"), REFUSED)
def test_terms_that_are_not_left_to_owners(climate: Climate, clock: Clock, asked: dict[str, Any], said: str) -> None:
    strict = replace(climate, settings=replace(climate.settings, host_on_end_choices="terminate, recycle"))
    with pytest.raises(InvalidInput, match=said):
        make(strict, clock, hosts_wanted(1, **asked))
    lease = make(strict, clock, hosts_wanted(1))
    with pytest.raises(InvalidInput, match=said):
        change(strict, lease, reservations=terms(lease, **asked))
    by_admin = update.update(strict, ADMIN, lease.id, Changes(reservations=terms(lease, **asked)))
    assert {name: by_admin.reservations[0].spec[name] for name in asked} == asked
    assert change(strict, lease, end=lease.period.end + MINUTE), "what an admin has granted stays"


# What is done ahead of the end.


@pytest.mark.parametrize(
    ("word", "done"),
    [("notify", (0, 1)), ("email", (0, 1)), ("default", (0, 1)), ("snapshot", (1, 1)), ("", (0, 0))],
)
def test_before_end(
    climate: Climate, clock: Clock, cloud: FakeCloud, engine: Engine, word: str, done: tuple[int, int]
) -> None:
    start = clock.time
    order = LeaseRequest(
        "l", start, start + timedelta(hours=1), start + 40 * MINUTE, [hosts_wanted(1, before_end=word)]
    )
    lease = leases.create(climate, MEMBER, order)
    run_due(climate)
    cloud.boot("project", f"h{min(held(lease))}")
    clock.forward(minutes=40)
    run_due(climate)
    assert event(climate, lease, BEFORE_END).carried_out
    assert (len(cloud.images), told(engine).count("lease.before_end")) == done


def test_before_end_is_changed_by_an_update_even_where_no_host_is_free(
    climate: Climate, clock: Clock, cloud: FakeCloud
) -> None:
    """The peer ignores it (reservation.md 1.2 H12)."""
    start = clock.time
    order = LeaseRequest("l", start, start + timedelta(hours=1), start + 40 * MINUTE, [hosts_wanted(2)])
    lease = leases.create(climate, MEMBER, order)
    make(climate, clock, hosts_wanted(6), start=0, hours=1)
    run_due(climate)
    changed = change(climate, lease, reservations=terms(lease, before_end="snapshot", on_end="recycle"))
    spec = changed.reservations[0].spec
    assert (spec["before_end"], spec["on_end"], held(changed)) == ("snapshot", "recycle", held(lease))
    cloud.boot("project", f"h{min(held(lease))}")
    clock.forward(minutes=40)
    run_due(climate)
    assert len(cloud.images) == 1


def test_who_changes_words_only_keeps_the_hosts_that_there_are(climate: Climate, clock: Clock) -> None:
    others = make(climate, clock, hosts_wanted(6))
    lease = make(climate, clock, hosts_wanted(1, 8))
    leases.delete(climate, MEMBER, others.id)
    changed = change(climate, lease, reservations=terms(lease, before_end="snapshot", recycle_deadline="move"))
    assert held(changed) == held(lease)
    assert len(held(change(climate, lease, reservations=terms(lease, max=7)))) == 7


def test_it_moves_with_the_lease_and_is_repeated_when_the_lease_is_prolonged(
    climate: Climate, clock: Clock, cloud: FakeCloud, engine: Engine
) -> None:
    start = clock.time
    wanted = hosts_wanted(1, before_end="snapshot", grace_period=GRACE)
    lease = leases.create(climate, MEMBER, LeaseRequest("l", start, start + 60 * MINUTE, start + 40 * MINUTE, [wanted]))
    run_due(climate)
    cloud.boot("project", f"h{min(held(lease))}")
    for minutes in (40, 20, 1):
        clock.forward(minutes=minutes)
        run_due(climate)
    longer = change(climate, lease, end=start + 120 * MINUTE)
    assert longer.before_end == start + 100 * MINUTE
    own = change(climate, lease, before_end=start + 90 * MINUTE)
    assert own.before_end == start + 90 * MINUTE
    clock.time = start + 90 * MINUTE
    run_due(climate)
    assert (len(cloud.images), told(engine)) == (2, ["lease.before_end", "lease.grace", "lease.before_end"])


# Every policy, with grace and without, and with a lease that follows or none.


@pytest.mark.parametrize("follows", [False, True])
@pytest.mark.parametrize("grace", [0, GRACE])
@pytest.mark.parametrize("policy", ["terminate", "recycle", "release"])
def test_every_end(climate: Climate, clock: Clock, cloud: FakeCloud, policy: str, grace: int, follows: bool) -> None:
    lease = make(climate, clock, hosts_wanted(1, on_end=policy, grace_period=grace), start=0, hours=1)
    run_due(climate)
    (number,) = held(lease)
    server = cloud.boot("project", f"h{number}")
    next_one = following(climate, clock, number, minutes=90) if follows else None
    clock.time = lease.event(END).due_at - timedelta(seconds=1)
    run_due(climate)
    assert cloud.server(server)
    clock.forward(seconds=1)
    run_due(climate)
    recycling.run_round(climate)
    assert (cloud.server(server) is None) == (policy == "terminate")
    if next_one:
        clock.time = next_one.period.start - 2 * MINUTE
        recycling.run_round(climate)
        clock.time = next_one.period.start
        run_due(climate)
        start = event(climate, next_one, "start_lease")  # type: ignore[arg-type]
        assert (get(climate, next_one).status, start.outcome) == (LeaseStatus.ACTIVE, "OK")
        assert cloud.server(server) is None
        assert get(climate, next_one).degraded is False
    assert consistency_check.differences(climate) == []
