"""Leases that wait: without resources until some are free, in their order, and gone when their time is over."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import Engine

from climate.cloud.fake import FakeCloud
from climate.context import Climate
from climate.domain.errors import Conflict, Forbidden, InvalidInput, LimitExceeded, NotEnoughHosts, NotFound, NoVerdict
from climate.domain.lease import Lease
from climate.domain.limits import Limit
from climate.domain.planning.waiting_list import Wait
from climate.domain.policy import Caller
from climate.domain.status import LeaseStatus
from climate.service.admission import limits
from climate.service.hosts import reservable
from climate.service.journal import consistency_check
from climate.service.journal.rebuild import rebuild
from climate.service.leases import leases, update
from climate.service.leases.leases import LeaseRequest
from climate.service.leases.update import Changes
from climate.service.notifications import delivery
from climate.service.waiting_list import entries, places
from climate.service.waiting_list import round as waiting_round
from climate.store.idempotency import Key
from climate.store.leases.leases import Listing
from tests.conftest import ADMIN, MEMBER, Clock
from tests.service.lease_actions import START, get, held, hosts_wanted, kinds, make, reservation, rows, run_due
from tests.webhook_receiver import Got, receiving

ALL = 8
"""Hosts of the fixture."""


def queue(
    climate: Climate,
    clock: Clock,
    *wanted: dict[str, Any],
    start: float | None = 1,
    hours: float = 2,
    until: float | None = None,
    caller: Caller = MEMBER,
    **more: Any,
) -> Lease:
    """A lease that may wait, `start` hours from now, None for one from now on; `until` hours from now."""
    begin = None if start is None else clock.time + timedelta(hours=start)
    end = (begin or clock.time) + timedelta(hours=hours)
    order = LeaseRequest("w", begin, end, None, wanted or [hosts_wanted()])
    wait = Wait(None if until is None else clock.time + timedelta(hours=until))
    return entries.create(climate, caller, order, wait, **more)


def story_is_whole(climate: Climate) -> None:
    """The rows are what the facts say, and they can be made anew from the facts alone."""
    assert consistency_check.differences(climate) == []
    before = leases.listed(climate, ADMIN, Listing())
    rebuild(climate)
    assert consistency_check.differences(climate) == []
    assert leases.listed(climate, ADMIN, Listing()) == before


def notices(climate: Climate, *kinds: str) -> list[str]:
    return [one.notice.kind for one in delivery.listed(climate, ADMIN, delivery.Listing()) if one.notice.kind in kinds]


def test_what_fits_is_an_ordinary_lease(climate: Climate, clock: Clock) -> None:
    lease = queue(climate, clock)
    assert (lease.waits, len(held(lease)), lease.wait_over) == (False, 1, None)


def test_a_lease_waits_without_resources_and_gets_them_when_another_is_deleted(climate: Climate, clock: Clock) -> None:
    first = make(climate, clock, hosts_wanted(ALL))
    lease = queue(climate, clock, hosts_wanted(2))
    assert (lease.status, lease.waits, lease.wait_until, held(lease)) == (
        LeaseStatus.PENDING,
        True,
        lease.period.start,
        set(),
    )
    assert waiting_round.run_round(climate) == []
    assert places.estimated(climate, lease) == places.Place(1, fits_from=first.period.end)
    story_is_whole(climate)
    leases.delete(climate, MEMBER, first.id)
    assert waiting_round.run_round(climate) == [lease.id]
    got = get(climate, lease)
    assert (got.waits, len(held(got)), got.period, got.reservations[0].id) == (
        False,
        2,
        lease.period,
        lease.reservations[0].id,
    )
    assert kinds(climate, lease) == ["LeaseCreated", "LeaseGranted"]
    assert notices(climate, "lease.granted") == ["lease.granted"]
    story_is_whole(climate)
    clock.forward(hours=1)
    run_due(climate)
    assert get(climate, lease).status is LeaseStatus.ACTIVE
    story_is_whole(climate)


def test_nothing_of_a_lease_starts_while_it_waits(climate: Climate, clock: Clock, cloud: FakeCloud) -> None:
    make(climate, clock, hosts_wanted(ALL), start=0, hours=10)
    lease = queue(climate, clock, start=1, until=5)
    clock.forward(hours=1)
    run_due(climate)
    waiting_round.run_round(climate)
    assert get(climate, lease).event(START).token == 0
    assert reservation(lease) not in cloud.pools()
    assert get(climate, lease).waits


def test_a_wait_ends_with_the_start_and_a_notice(climate: Climate, clock: Clock) -> None:
    make(climate, clock, hosts_wanted(ALL))
    lease = queue(climate, clock)
    clock.forward(hours=1)
    run_due(climate)
    with pytest.raises(NotFound):
        get(climate, lease)
    assert kinds(climate, lease) == [
        *("LeaseCreated", "EventClaimed", "WaitExpired", *["EventSkipped"] * 2, "LeaseDeleted")
    ]
    assert notices(climate, "lease.not_granted", "lease.missed") == ["lease.not_granted"]
    story_is_whole(climate)


def test_a_lease_whose_period_moves_begins_when_it_gets_its_resources(climate: Climate, clock: Clock) -> None:
    blocker = make(climate, clock, hosts_wanted(ALL), start=0, hours=10)
    lease = queue(climate, clock, hosts_wanted(ALL), start=None, hours=2, until=5)
    assert lease.waits
    clock.forward(hours=3)
    run_due(climate)
    assert waiting_round.run_round(climate) == []
    leases.delete(climate, MEMBER, blocker.id)
    run_due(climate)
    assert waiting_round.run_round(climate) == [lease.id]
    got = get(climate, lease)
    assert (got.period.start, got.period.end) == (clock.time, clock.time + timedelta(hours=2))
    assert kinds(climate, lease) == ["LeaseCreated", "LeaseGranted", "LeaseRescheduled"]
    run_due(climate)
    assert get(climate, lease).status is LeaseStatus.ACTIVE
    clock.forward(hours=2)
    run_due(climate)
    assert get(climate, lease).status is LeaseStatus.TERMINATED
    story_is_whole(climate)


def test_after_the_patience_a_moving_lease_is_promised_a_later_period(climate: Climate, clock: Clock) -> None:
    make(climate, clock, hosts_wanted(1), start=0, hours=4)
    lease = queue(climate, clock, hosts_wanted(ALL), start=None, hours=2, until=6)
    clock.forward(minutes=59)
    assert waiting_round.run_round(climate) == []
    clock.forward(minutes=2)
    assert waiting_round.run_round(climate) == [lease.id]
    got = get(climate, lease)
    assert got.period.start == lease.created_at + timedelta(hours=4)
    with pytest.raises(NotEnoughHosts):
        make(climate, clock, start=3.5)
    story_is_whole(climate)


def test_a_fixed_period_is_protected_from_those_behind_it_after_the_patience(climate: Climate, clock: Clock) -> None:
    first, second = (make(climate, clock, hosts_wanted(4), start=5) for _ in range(2))
    large = queue(climate, clock, hosts_wanted(6), start=5)
    small = queue(climate, clock, hosts_wanted(1), start=6)
    assert waiting_round.run_round(climate) == []
    clock.forward(minutes=61)
    leases.delete(climate, MEMBER, first.id)
    assert waiting_round.run_round(climate) == [], "the small lease took a host for which the large one waits"
    leases.delete(climate, MEMBER, second.id)
    assert waiting_round.run_round(climate) == [large.id, small.id]
    story_is_whole(climate)


def test_before_the_patience_what_fits_goes_ahead(climate: Climate, clock: Clock) -> None:
    first = make(climate, clock, hosts_wanted(4), start=5)
    make(climate, clock, hosts_wanted(4), start=5)
    queue(climate, clock, hosts_wanted(6), start=5)
    small = queue(climate, clock, hosts_wanted(1), start=6)
    leases.delete(climate, MEMBER, first.id)
    assert waiting_round.run_round(climate) == [small.id]


def test_the_line_is_served_by_age_within_a_project(climate: Climate, clock: Clock) -> None:
    blocker = make(climate, clock, hosts_wanted(ALL))
    line = [queue(climate, clock, hosts_wanted(3)) for _ in range(4)]
    assert places.of(climate, line) == {lease.id: places.Place(n) for n, lease in enumerate(line, 1)}
    leases.delete(climate, MEMBER, blocker.id)
    assert waiting_round.run_round(climate) == [line[0].id, line[1].id]
    assert places.of(climate, [get(climate, one) for one in line]) == {
        line[2].id: places.Place(1),
        line[3].id: places.Place(2),
    }


def test_a_deleted_lease_leaves_the_line(climate: Climate, clock: Clock) -> None:
    blocker = make(climate, clock, hosts_wanted(ALL))
    lease = queue(climate, clock)
    leases.delete(climate, MEMBER, lease.id)
    assert places.of(climate, [lease]) == {}
    leases.delete(climate, MEMBER, blocker.id)
    assert waiting_round.run_round(climate) == []
    assert kinds(climate, lease)[-1] == "LeaseDeleted"
    assert notices(climate, "lease.granted", "lease.not_granted") == []
    story_is_whole(climate)


def test_a_shortened_lease_serves_the_line(climate: Climate, clock: Clock) -> None:
    blocker = make(climate, clock, hosts_wanted(ALL), start=1, hours=6)
    lease = queue(climate, clock, start=4, hours=2)
    waiting_round.run_round(climate)
    update.update(climate, MEMBER, blocker.id, Changes(end=clock.time + timedelta(hours=4)))
    assert waiting_round.run_round(climate) == [lease.id]


def test_a_host_that_comes_back_serves_the_line(climate: Climate, clock: Clock) -> None:
    reservable.open_to_promises(climate, ADMIN, "1", reservable=False)
    make(climate, clock, hosts_wanted(ALL - 1))
    lease = queue(climate, clock)
    waiting_round.run_round(climate)
    reservable.open_to_promises(climate, ADMIN, "1", reservable=True)
    assert waiting_round.run_round(climate) == [lease.id]
    assert held(get(climate, lease)) == {1}


def test_a_lease_that_can_never_fit_is_refused(climate: Climate, clock: Clock, engine: Engine) -> None:
    before = rows(engine)
    with pytest.raises(NotEnoughHosts, match="9 wanted, 8 match"):
        queue(climate, clock, hosts_wanted(ALL + 1))
    with pytest.raises(NotEnoughHosts, match="0 match"):
        queue(climate, clock, hosts_wanted(1, hypervisor_properties='["==", "$vcpus", "9999"]'))
    assert rows(engine) == before


@pytest.mark.parametrize(
    ("start", "until", "reason"),
    [
        (None, None, "wait.until is required"),
        (0, None, "wait.until is required"),
        (1, -1, "must be later than the current date"),
        (1, 0, "must be later than the current date"),
        (1, 24 * 732, "731 days ahead at most"),
        (24 * 800, None, "731 days ahead at most"),
    ],
)
def test_useless_waits_are_refused(
    climate: Climate, clock: Clock, engine: Engine, start: float | None, until: float | None, reason: str
) -> None:
    make(climate, clock, hosts_wanted(ALL), start=0, hours=4)
    before = rows(engine)
    with pytest.raises(InvalidInput, match=reason):
        queue(climate, clock, start=start, until=until)
    assert rows(engine) == before


def test_what_cannot_wait_is_refused(climate: Climate, clock: Clock) -> None:
    order = LeaseRequest("w", None, clock.time + timedelta(hours=1), None, [hosts_wanted()], hold=timedelta(minutes=1))
    with pytest.raises(InvalidInput, match="hold_seconds"):
        entries.create(climate, MEMBER, order, Wait(clock.time + timedelta(hours=2)))
    with pytest.raises(InvalidInput, match="wait needs reservations"):
        entries.create(climate, MEMBER, replace(order, hold=None, reservations=[]), Wait())
    with pytest.raises(InvalidInput, match="zone and wait exclude each other"):
        queue(climate, clock, hosts_wanted(zone="child"))
    with pytest.raises(InvalidInput, match="not supported"):
        queue(climate, clock, {"resource_type": "no:such"})
    sleeping = {"resource_type": "virtual:instance", "resource_id": "12a3"}
    with pytest.raises(InvalidInput, match="cannot wait"):
        queue(climate, clock, sleeping)
    with pytest.raises(Forbidden):
        queue(climate, clock, caller=replace(MEMBER, roles=frozenset({"reader"})))


def test_only_the_name_changes_while_it_waits(climate: Climate, clock: Clock) -> None:
    make(climate, clock, hosts_wanted(ALL))
    lease = queue(climate, clock)
    assert update.update(climate, MEMBER, lease.id, Changes(name="n")).name == "n"
    with pytest.raises(Conflict, match="in the waiting list until 2030-01-01 13:00:00 UTC"):
        update.update(climate, MEMBER, lease.id, Changes(end=clock.time + timedelta(hours=5)))
    story_is_whole(climate)


def test_the_number_of_waiting_leases_is_limited(climate: Climate, clock: Clock) -> None:
    few = replace(climate, settings=replace(climate.settings, waiting_per_project=2))
    make(few, clock, hosts_wanted(ALL))
    for _ in range(2):
        queue(few, clock)
    with pytest.raises(LimitExceeded) as refused:
        queue(few, clock)
    assert refused.value.details == {"limit": {"name": "waiting_leases", "value": 2, "used": 2, "asked": 1}}
    assert queue(few, clock, caller=replace(ADMIN, project_id=MEMBER.project_id)).waits
    limits.put(few, ADMIN, MEMBER.project_id, {Limit.WAITING_LEASES: 4})
    assert queue(few, clock).waits
    used = {one.limit: (one.used, one.value) for one in limits.of(few, MEMBER)}
    assert used[Limit.WAITING_LEASES] == (4, 4)


def test_a_limit_holds_for_what_the_line_gives(climate: Climate, clock: Clock) -> None:
    blocker = make(climate, clock, hosts_wanted(ALL))
    lease, other = queue(climate, clock, hosts_wanted(4)), queue(climate, clock, hosts_wanted(2))
    limits.put(climate, ADMIN, MEMBER.project_id, {Limit.HOSTS_AT_ONCE: 3})
    leases.delete(climate, MEMBER, blocker.id)
    assert waiting_round.run_round(climate) == [other.id]
    assert get(climate, lease).waits
    limits.put(climate, ADMIN, MEMBER.project_id, {Limit.HOSTS_AT_ONCE: 6})
    assert waiting_round.run_round(climate) == []
    clock.forward(seconds=61)
    assert waiting_round.run_round(climate) == [lease.id]


def asked(got: Got) -> int:
    """The number of hosts that the approval service was asked about."""
    return int(got.body["lease"]["reservations"][0]["min"])


def test_a_lease_without_a_verdict_keeps_no_other_from_its_resources(climate: Climate, clock: Clock) -> None:
    blocker = make(climate, clock, hosts_wanted(ALL))
    first, second = queue(climate, clock, hosts_wanted(2)), queue(climate, clock, hosts_wanted(3))
    leases.delete(climate, MEMBER, blocker.id)
    with receiving() as service:
        service.answer = lambda exchange: exchange.say(500 if asked(exchange.got) == 2 else 204)
        url = {"enforcement_url": service.url, "enforcement_seconds": 20.0}
        asking = replace(climate, settings=replace(climate.settings, **url))
        with pytest.raises(NoVerdict):
            waiting_round.run_round(asking)
        assert waiting_round.run_round(asking) == [second.id]
        assert [asked(got) for got in service.got] == [2, 3]
        service.answer = lambda exchange: exchange.say(204)
        clock.forward(seconds=61)
        assert waiting_round.run_round(asking) == [first.id]
    story_is_whole(climate)


def test_a_repeated_request_has_the_same_lease(climate: Climate, clock: Clock) -> None:
    blocker = make(climate, clock, hosts_wanted(ALL))
    key = Key("k", "f")
    lease = queue(climate, clock, key=key)
    assert queue(climate, clock, key=key).id == lease.id
    leases.delete(climate, MEMBER, blocker.id)
    waiting_round.run_round(climate)
    assert queue(climate, clock, key=key) == lease


def test_a_dry_run_keeps_nothing(climate: Climate, clock: Clock, engine: Engine) -> None:
    make(climate, clock, hosts_wanted(ALL))
    before = rows(engine)
    lease = queue(climate, clock, dry_run=True)
    assert (lease.waits, places.estimated(climate, lease).number) == (True, 1)  # type: ignore[union-attr]
    assert rows(engine) == before


def test_several_reservations_are_granted_together(climate: Climate, clock: Clock) -> None:
    blocker = make(climate, clock, hosts_wanted(ALL))
    lease = queue(climate, clock, hosts_wanted(3), hosts_wanted(4))
    leases.delete(climate, MEMBER, blocker.id)
    assert waiting_round.run_round(climate) == [lease.id]
    got = get(climate, lease)
    assert [len(one.hosts) for one in got.reservations] == [3, 4]
    assert [one.id for one in got.reservations] == [one.id for one in lease.reservations]
    story_is_whole(climate)


def test_one_lease_at_a_time_is_promised_a_later_period(climate: Climate, clock: Clock) -> None:
    make(climate, clock, hosts_wanted(1), start=0, hours=4)
    line = [queue(climate, clock, hosts_wanted(ALL), start=None, hours=2, until=12) for _ in range(2)]
    clock.forward(minutes=61)
    assert waiting_round.run_round(climate) == [line[0].id]
    clock.forward(minutes=61)
    assert waiting_round.run_round(climate) == []
    leases.delete(climate, MEMBER, line[0].id)
    assert waiting_round.run_round(climate) == [line[1].id]
