"""Further projects boot on a lease, viewers see it, extenders prolong it; for all others it does not exist."""

from datetime import timedelta
from itertools import product

import pytest

from climate.cloud.fake import FakeCloud
from climate.context import Climate
from climate.domain.errors import Forbidden, LimitExceeded, NotFound
from climate.domain.facts import LeaseCreated
from climate.domain.lease import Lease
from climate.domain.limits import Limit
from climate.domain.policy import Caller
from climate.domain.sharing.sharing import Sharing, SharingChanged
from climate.service.admission import limits
from climate.service.journal import consistency_check
from climate.service.leases import host_visibility, lease_servers, leases, update
from climate.service.leases.leases import LeaseRequest
from climate.service.leases.update import Changes
from climate.service.sharing import access
from climate.store.leases.leases import Listing
from tests.conftest import ADMIN, MEMBER, STRANGER, Clock
from tests.service.lease_actions import get, hosts_wanted, reservation, run_due

ROLES = frozenset({"member"})
GUEST = Caller("guest-user", "guest", ROLES, "req-guest")
VIEWER = Caller("viewer", "elsewhere", ROLES, "req-viewer")
EXTENDER = Caller("extender", "elsewhere", ROLES, "req-extender")
SHARING = Sharing(("guest",), ("viewer",), ("extender",))
BY_ACCESS = (GUEST, VIEWER, EXTENDER)


def shared(climate: Climate, clock: Clock, sharing: Sharing = SHARING, hours: float = 2) -> Lease:
    order = LeaseRequest(
        "lease", None, clock.time + timedelta(hours=hours), reservations=[hosts_wanted()], sharing=sharing
    )
    return leases.create(climate, MEMBER, order)


def end(clock: Clock, hours: float) -> Changes:
    return Changes(end=clock.time + timedelta(hours=hours))


def test_each_sees_the_lease_and_only_the_own_part_of_its_sharing(climate: Climate, clock: Clock) -> None:
    lease = shared(climate, clock)
    own = {GUEST: Sharing(projects=("guest",)), VIEWER: Sharing(viewers=("viewer",))}
    own |= {EXTENDER: Sharing(extenders=("extender",)), MEMBER: SHARING, ADMIN: SHARING}
    for caller, known in own.items():
        assert leases.get(climate, caller, lease.id).sharing == known
        assert [one.sharing for one in leases.listed(climate, caller, Listing())] == [known]
        assert leases.get(climate, caller, lease.id, at=clock.time).sharing == known
        created = leases.history(climate, caller, lease.id)[0].fact
        assert isinstance(created, LeaseCreated)
        assert created.sharing == known
    assert leases.listed(climate, STRANGER, Listing()) == []
    for read in (leases.get, leases.history):
        with pytest.raises(NotFound):
            read(climate, STRANGER, lease.id)


def test_a_list_of_the_own_project_leaves_shared_leases_out(climate: Climate, clock: Clock) -> None:
    shared(climate, clock)
    assert leases.listed(climate, GUEST, Listing(project_id="guest")) == []


def test_pages_of_own_and_shared_leases_are_in_one_order(climate: Climate, clock: Clock) -> None:
    made = []
    for number in range(4):
        owner = (MEMBER, GUEST)[number % 2]
        sharing = Sharing(("guest",)) if owner is MEMBER else Sharing()
        order = LeaseRequest(f"n{number}", None, clock.time + timedelta(hours=1), sharing=sharing)
        made.append(leases.create(climate, owner, order).id)
        clock.forward(seconds=1)
    pages = leases.listed(climate, GUEST, Listing(limit=2))
    pages += leases.listed(climate, GUEST, Listing(limit=2, marker=pages[-1].id))
    assert [lease.id for lease in pages] == made


def test_nobody_but_owners_changes_or_deletes_it(climate: Climate, clock: Clock) -> None:
    lease = shared(climate, clock)
    wishes = (Changes(name="x"), Changes(sharing=Sharing(("evil",))), Changes(end_now=True), end(clock, 1))
    for caller, changes in product(BY_ACCESS, wishes):
        with pytest.raises(Forbidden):
            update.update(climate, caller, lease.id, changes)
        with pytest.raises(Forbidden, match="This lease is shared with you"):
            leases.delete(climate, caller, lease.id)
    for caller in (GUEST, VIEWER):
        with pytest.raises(Forbidden, match="may see it"):
            update.update(climate, caller, lease.id, end(clock, 3))
    with pytest.raises(NotFound):
        update.update(climate, STRANGER, lease.id, end(clock, 3))
    with pytest.raises(NotFound):
        leases.delete(climate, STRANGER, lease.id)
    assert get(climate, lease).version == lease.version


def test_an_extender_moves_the_end_to_a_later_time(climate: Climate, clock: Clock) -> None:
    lease = shared(climate, clock)
    longer = update.update(climate, EXTENDER, lease.id, end(clock, 3))
    assert longer.period.end == clock.time + timedelta(hours=3)
    assert longer.sharing == Sharing(extenders=("extender",)), "the answer shows no others"
    assert leases.history(climate, MEMBER, lease.id)[-1].actor == {"user_id": "extender", "project_id": "elsewhere"}


def test_limits_of_the_leases_project_hold_for_extenders(climate: Climate, clock: Clock) -> None:
    lease = shared(climate, clock)
    limits.put(climate, ADMIN, "project", {Limit.HOST_HOURS: 2})
    with pytest.raises(LimitExceeded):
        update.update(climate, EXTENDER, lease.id, end(clock, 30))


def test_owners_and_administrators_change_the_sharing(climate: Climate, clock: Clock) -> None:
    lease = shared(climate, clock)
    clock.forward(minutes=1)
    before = clock.time
    other = Sharing(viewers=("other-user",))
    clock.forward(minutes=1)
    changed = update.update(climate, ADMIN, lease.id, Changes(sharing=other))
    assert changed.sharing == other
    entry = leases.history(climate, MEMBER, lease.id)[-1]
    assert entry.fact == SharingChanged(clock.time, other, SHARING)
    assert entry.actor["user_id"] == "admin-user"
    assert leases.get(climate, MEMBER, lease.id, at=before).sharing == SHARING
    assert leases.get(climate, STRANGER, lease.id).id == lease.id
    for caller in BY_ACCESS:
        with pytest.raises(NotFound):
            leases.get(climate, caller, lease.id)
        with pytest.raises(NotFound):
            leases.get(climate, caller, lease.id, at=before)
    again = update.update(climate, MEMBER, lease.id, Changes(sharing=other))
    assert again.version == changed.version, "nothing is recorded where nothing changes"
    assert consistency_check.differences(climate) == []


def test_members_of_further_projects_boot_on_it(climate: Climate, clock: Clock, cloud: FakeCloud) -> None:
    lease = shared(climate, clock)
    run_due(climate)
    pool = reservation(lease)
    for caller in (MEMBER, GUEST):
        assert lease_servers.admit(climate, caller, pool).id == lease.id
    for caller in (VIEWER, EXTENDER):
        with pytest.raises(Forbidden, match="not with your project"):
            lease_servers.admit(climate, caller, pool)
    for caller in (STRANGER, ADMIN):
        with pytest.raises(NotFound):
            lease_servers.admit(climate, caller, pool)
    assert cloud.projects(pool) == ("project", "guest")


def test_each_project_sees_its_own_servers_on_the_hosts(climate: Climate, clock: Clock, cloud: FakeCloud) -> None:
    lease = shared(climate, clock)
    run_due(climate)
    (host,) = cloud.pools()[reservation(lease)]
    own, theirs = cloud.boot("project", host), cloud.boot("guest", host)

    def seen(caller: Caller) -> set[str]:
        (shown,) = host_visibility.listed(climate, caller, lease.id)
        return {server.id for server in shown.servers or ()}

    assert (seen(MEMBER), seen(GUEST), seen(VIEWER)) == ({own}, {theirs}, set())
    assert seen(ADMIN) == {own, theirs}


def test_the_end_covers_the_servers_of_all_projects(climate: Climate, clock: Clock, cloud: FakeCloud) -> None:
    lease = shared(climate, clock)
    run_due(climate)
    (host,) = cloud.pools()[reservation(lease)]
    servers = [cloud.boot("project", host), cloud.boot("guest", host)]
    update.update(climate, MEMBER, lease.id, Changes(sharing=Sharing()))
    run_due(climate)
    assert all(map(cloud.server, servers)), "servers of a project that was removed stay until the end"
    clock.forward(hours=2)
    for _ in range(5):
        run_due(climate)
        clock.forward(minutes=1)
    assert not any(map(cloud.server, servers))


def test_a_lease_is_seen_by_nobody_else_once_it_is_gone(climate: Climate, clock: Clock) -> None:
    lease = shared(climate, clock)
    leases.delete(climate, MEMBER, lease.id)
    assert access.shared(climate, VIEWER, lease.id) is None
