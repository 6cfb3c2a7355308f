"""Which sub-leases are refused, and whose hosts the others get."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from climate.cloud.fake import FakeCloud
from climate.context import Climate
from climate.domain.errors import ClimateError, Conflict, Forbidden, InvalidInput, InvalidPeriod, NotFound
from climate.domain.lease import Lease
from climate.domain.planning.waiting_list import Wait
from climate.domain.policy import Caller
from climate.domain.sharing.sharing import Sharing
from climate.service.journal import consistency_check
from climate.service.leases import leases, update
from climate.service.leases.leases import LeaseRequest
from climate.service.leases.update import Changes
from climate.service.subleases import create
from climate.service.waiting_list import entries
from climate.store.idempotency import Key
from tests.conftest import ADMIN, MEMBER, STRANGER, Clock
from tests.service.lease_actions import get, held, hosts_wanted, rows, run_due
from tests.service.subleases.steps import ALL, give, ordered, parent, tick

Make = Callable[[Climate, Clock], Lease]


def running(climate: Climate, clock: Clock) -> Lease:
    lease = parent(climate, clock)
    run_due(climate)
    return lease


def preemptible(climate: Climate, clock: Clock) -> Lease:
    return parent(climate, clock, hosts_wanted(4, preemptible=True))


def of_two(climate: Climate, clock: Clock) -> Lease:
    return parent(climate, clock, hosts_wanted(2), hosts_wanted(2))


def held_only(climate: Climate, clock: Clock) -> Lease:
    begin = clock.time + timedelta(hours=1)
    order = LeaseRequest("l", begin, begin + timedelta(hours=24), None, [hosts_wanted(2)], hold=timedelta(minutes=5))
    return leases.create(climate, MEMBER, order)


def waiting(climate: Climate, clock: Clock) -> Lease:
    parent(climate, clock, hosts_wanted(ALL))
    begin = clock.time + timedelta(hours=1)
    order = LeaseRequest("l", begin, begin + timedelta(hours=20), None, [hosts_wanted(2)])
    return entries.create(climate, MEMBER, order, Wait(None))


def a_sub_lease(climate: Climate, clock: Clock) -> Lease:
    lease = give(climate, clock, running(climate, clock), project_id="third")
    tick(climate, clock)
    return lease


REFUSED: dict[str, tuple[Make, dict[str, object], type[ClimateError], str]] = {
    "more hosts than it has": (running, {"hosts": 5}, Conflict, "5 wanted, the lease .* can give 4"),
    "an unknown name": (running, {"host_names": ("nowhere",)}, InvalidInput, "nowhere is no host of the lease"),
    "its own project": (running, {"project_id": MEMBER.project_id}, InvalidInput, "has the hosts already"),
    "an end after its own": (running, {"hours": 25}, InvalidInput, "must lie within its parent"),
    "an end in the past": (running, {"hours": -1}, InvalidPeriod, "End date must be later"),
    "a start in the past": (running, {"start": -1}, InvalidPeriod, "Start date must be later"),
    "a grace period beyond its own": (
        running,
        {"hours": 24, "terms": {"grace_period": 60}},
        InvalidInput,
        "no later than its parent",
    ),
    "hosts that do not return": (running, {"terms": {"on_end": "release"}}, InvalidInput, "return to its parent"),
    "a preemptible lease": (preemptible, {}, InvalidInput, "preemptible"),
    "an unnamed one of two reservations": (of_two, {}, InvalidInput, "name one as reservation_id"),
    "a held lease": (held_only, {"start": 2}, Conflict, "held and not confirmed"),
    "a lease that waits": (waiting, {"start": 2}, Conflict, "in the waiting list"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_given_is_refused_and_changes_nothing(climate: Climate, clock: Clock, case: str) -> None:
    make, asked, error, text = REFUSED[case]
    lease = make(climate, clock)
    before = rows(climate.engine)
    with pytest.raises(error, match=text):
        give(climate, clock, lease, **asked)
    assert rows(climate.engine) == before


def test_a_sub_lease_has_no_sub_leases(climate: Climate, clock: Clock) -> None:
    lease = a_sub_lease(climate, clock)
    with pytest.raises(InvalidInput, match="sub-lease itself"):
        give(climate, clock, lease, Caller("u", "third", MEMBER.roles), hosts=1, hours=1)


def test_others_than_owners_give_nothing(climate: Climate, clock: Clock) -> None:
    lease = running(climate, clock)
    with pytest.raises(NotFound):
        give(climate, clock, lease, STRANGER, project_id="third")
    shared = Sharing(extenders=(STRANGER.user_id,))
    update.update(climate, MEMBER, lease.id, Changes(sharing=shared))
    with pytest.raises(Forbidden):
        give(climate, clock, lease, STRANGER, project_id="third")
    assert give(climate, clock, lease, ADMIN).project_id == STRANGER.project_id


def test_hosts_without_servers_are_given_first(climate: Climate, clock: Clock, cloud: FakeCloud) -> None:
    lease = running(climate, clock)
    used = sorted(held(lease))[:2]
    for host in used:
        cloud.boot("project", f"h{host}")
    assert held(give(climate, clock, lease, start=3)) == held(lease) - set(used)


def test_hosts_with_servers_are_not_taken_without_a_warning(climate: Climate, clock: Clock, cloud: FakeCloud) -> None:
    lease = running(climate, clock)
    cloud.boot("project", f"h{min(held(lease))}")
    with pytest.raises(Conflict, match="of which 1 have servers"):
        give(climate, clock, lease, hosts=4)
    assert len(held(give(climate, clock, lease, hosts=4, start=1))) == 4


def test_hosts_can_be_named(climate: Climate, clock: Clock) -> None:
    lease = running(climate, clock)
    host = max(held(lease))
    assert held(give(climate, clock, lease, host_names=(f"h{host}",))) == {host}
    with pytest.raises(Conflict, match="can give 0"):
        give(climate, clock, lease, host_names=(f"h{host}",), start=5)


def test_a_reservation_can_be_named(climate: Climate, clock: Clock) -> None:
    lease = of_two(climate, clock)
    second = lease.reservations[1]
    assert held(give(climate, clock, lease, reservation_id=second.id)) == set(second.hosts)


def test_a_key_gives_once(climate: Climate, clock: Clock) -> None:
    lease, key = running(climate, clock), Key("key", "print")
    first = create.create(climate, MEMBER, lease.id, ordered(clock), key)
    again = create.create(climate, MEMBER, lease.id, ordered(clock), key)
    assert first.id == again.id
    assert len(get(climate, lease).reservations[0].sublets) == 2


def test_a_dry_run_gives_nothing(climate: Climate, clock: Clock) -> None:
    lease = running(climate, clock)
    before = rows(climate.engine)
    made = create.create(climate, MEMBER, lease.id, ordered(clock), dry_run=True)
    assert len(held(made)) == 2
    assert rows(climate.engine) == before


def test_what_is_created_belongs_to_the_other_project(climate: Climate, clock: Clock) -> None:
    lease = running(climate, clock)
    made = give(climate, clock, lease, user_id=STRANGER.user_id, terms={"on_end": "recycle"})
    assert (made.project_id, made.user_id) == (STRANGER.project_id, STRANGER.user_id)
    assert made.reservations[0].spec["on_end"] == "recycle"
    assert leases.get(climate, STRANGER, made.id).id == made.id
    with pytest.raises(NotFound):
        leases.get(climate, STRANGER, lease.id)
    assert leases.get(climate, MEMBER, made.id).id == made.id
    assert [one.id for one in leases.listed(climate, STRANGER, leases.Listing())] == [made.id]
    assert consistency_check.differences(climate) == []


def test_hosts_of_a_pool_that_releases_them_recycle(climate: Climate, clock: Clock) -> None:
    climate = replace(climate, settings=replace(climate.settings, host_on_end="release"))
    lease = running(climate, clock)
    assert lease.reservations[0].spec["on_end"] == "release"
    assert give(climate, clock, lease).reservations[0].spec["on_end"] == "recycle"
