"""Other projects on a running lease are admitted by an event, which outlasts the worker; others learn of it."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from icalendar import Calendar
from sqlalchemy import select

from climate.cloud import Refused
from climate.cloud.fake import FakeCloud
from climate.context import Climate
from climate.domain.errors import Busy, Conflict, InvalidInput
from climate.domain.hosts.timeline import SpanKind
from climate.domain.lease import Lease, fold
from climate.domain.notifications import Topic
from climate.domain.sharing.sharing import Sharing
from climate.service.calendars import feeds
from climate.service.calendars.feeds import Days
from climate.service.events import event_dispatch
from climate.service.hosts import timeline
from climate.service.journal import changes as journal_changes
from climate.service.journal.changes import Follower
from climate.service.leases import leases, update
from climate.service.leases.leases import LeaseRequest
from climate.service.leases.update import Changes
from climate.service.notifications import delivery, mail
from climate.service.sharing import changes as sharing_changes
from climate.service.waiting_list import entries
from climate.settings import Settings
from climate.store.notices.calendar_feeds import Scope
from climate.store.tables.limits_and_notices import notices
from tests.conftest import ADMIN, MEMBER, STRANGER, Clock
from tests.domain.lease_factory import created
from tests.service import lease_actions
from tests.service.lease_actions import ADJUST, begin, event, get, hosts_wanted, make, reservation, run_due
from tests.service.sharing.test_access import EXTENDER, GUEST, SHARING, VIEWER, shared

GUESTS = Sharing(projects=("guest",))


def share(climate: Climate, lease: Lease, sharing: Sharing) -> Lease:
    return update.update(climate, MEMBER, lease.id, Changes(sharing=sharing))


def test_a_pending_lease_is_started_for_all_its_projects(climate: Climate, clock: Clock, cloud: FakeCloud) -> None:
    lease = make(climate, clock)
    share(climate, lease, GUESTS)
    clock.forward(hours=1)
    run_due(climate)
    assert cloud.projects(reservation(lease)) == ("project", "guest")


def test_a_running_lease_admits_and_refuses_projects_by_an_event(
    climate: Climate, clock: Clock, cloud: FakeCloud
) -> None:
    lease = make(climate, clock, start=0)
    run_due(climate)
    (host,) = cloud.pools()[reservation(lease)]
    share(climate, lease, GUESTS)
    with pytest.raises(Refused):
        cloud.boot("guest", host)
    run_due(climate)
    cloud.boot("guest", host)
    share(climate, lease, Sharing())
    run_due(climate)
    with pytest.raises(Refused):
        cloud.boot("guest", host)
    assert get(climate, lease).status == "ACTIVE"


def test_users_are_shared_with_without_an_event(climate: Climate, clock: Clock) -> None:
    lease = make(climate, clock, start=0)
    begin(climate)
    changed = share(climate, lease, Sharing(viewers=("viewer",)))
    assert changed.sharing.viewers == ("viewer",)
    with pytest.raises(Busy):
        share(climate, lease, GUESTS)


def test_a_worker_that_dies_in_between_is_followed_by_another(climate: Climate, clock: Clock, cloud: FakeCloud) -> None:
    lease = make(climate, clock, start=0)
    run_due(climate)
    share(climate, lease, GUESTS)
    begin(climate)
    clock.forward(minutes=2)
    assert event_dispatch.rescue(climate, "poller") == 1
    lease_actions.settle(climate, clock, hours=0.1)
    assert cloud.projects(reservation(lease)) == ("project", "guest")
    assert event(climate, lease, ADJUST).status == "DONE"
    assert cloud.doubled() == []


def test_a_start_that_is_tried_again_admits_the_projects_that_joined_meanwhile(
    climate: Climate, clock: Clock, cloud: FakeCloud
) -> None:
    """The step of lending was done before; other projects make it another step."""
    lease = make(climate, clock, hosts_wanted(), hosts_wanted(), start=0)
    lent = []

    def fail_second(verb: str) -> None:
        lent.extend([verb] if verb == "lend" else [])
        cloud.broken = len(lent) == 2

    cloud.watch = fail_second
    for message in lease_actions.claim(climate):
        lease_actions.run(climate, message)
    cloud.watch, cloud.broken = None, False
    share(climate, lease, GUESTS)
    lease_actions.settle(climate, clock, hours=0.2)
    assert {cloud.projects(str(one.id)) for one in lease.reservations} == {("project", "guest")}


def test_an_ending_lease_is_not_opened_again(climate: Climate, clock: Clock, cloud: FakeCloud) -> None:
    climate = replace(climate, settings=replace(climate.settings, max_grace_period=3600))
    lease = make(climate, clock, hosts_wanted(grace_period=1800), start=0, hours=1)
    run_due(climate)
    clock.forward(hours=1, minutes=1)
    run_due(climate)
    assert cloud.is_closed(reservation(lease))
    share(climate, lease, GUESTS)
    run_due(climate)
    assert cloud.is_closed(reservation(lease))


@pytest.mark.parametrize(
    ("settings", "projects", "said"),
    [
        ({}, ("project",), "is that of the lease"),
        ({"cloud": "openstack"}, tuple(f"{number:032}" for number in range(8)), "8 projects are too many"),
    ],
)
def test_projects_that_cannot_be(settings: Mapping[str, str], projects: tuple[str, ...], said: str) -> None:
    lease = fold([created()])
    with pytest.raises(InvalidInput, match=said):
        sharing_changes.check(Settings(**settings), lease, Sharing(projects))  # type: ignore[arg-type]


def test_accounts_that_nobody_knows_are_refused(climate: Climate, clock: Clock) -> None:
    known = replace(climate, unknown_accounts=lambda projects, users: ({"nope"} & {*projects}, {"who"} & {*users}))
    for sharing, said in (
        (Sharing(projects=("nope",)), "no project has the id nope"),
        (Sharing(viewers=("who",)), "no user has the id who"),
        (Sharing(extenders=("who",)), "no user has the id who"),
    ):
        with pytest.raises(InvalidInput, match=said):
            shared(known, clock, sharing)
        with pytest.raises(InvalidInput, match=said):
            share(known, make(climate, clock), sharing)


def test_a_lease_that_waits_is_shared_once_it_is_granted(climate: Climate, clock: Clock) -> None:
    make(climate, clock, hosts_wanted(8), start=0, hours=1)
    order = LeaseRequest("l", None, clock.time + timedelta(minutes=30), reservations=[hosts_wanted(8)], sharing=SHARING)
    lease = entries.create(climate, MEMBER, order, entries.Wait(clock.time + timedelta(hours=9)))
    assert lease.waits
    assert leases.get(climate, VIEWER, lease.id).sharing == Sharing(viewers=("viewer",))


@given(before=st.sets(st.sampled_from("abc")), after=st.sets(st.sampled_from("abc")))
def test_nothing_is_recorded_for_the_same_sharing(before: set[str], after: set[str]) -> None:
    lease = replace(fold([created()]), sharing=Sharing(viewers=tuple(sorted(before))))
    facts = sharing_changes.facts(Settings(), lease, Sharing(viewers=tuple(sorted(after))), lease.created_at)
    assert len(facts) == (before != after)


def test_parts_elsewhere_are_not_for_other_projects(climate: Climate) -> None:
    lease = fold([created()])
    one = replace(lease.reservations[0], parts=(object(),))  # type: ignore[arg-type]
    with pytest.raises(Conflict, match="child zones or cells"):
        sharing_changes.check(Settings(), replace(lease, reservations=(one,)), GUESTS)


def test_the_calendar_shows_the_lease_to_those_who_may_see_it(climate: Climate, clock: Clock) -> None:
    lease = shared(climate, clock)

    def kinds(caller: object) -> set[tuple[SpanKind, object]]:
        rows = timeline.read(climate, caller, timeline.TimelineWindow()).rows  # type: ignore[arg-type]
        return {(span.kind, span.lease_id) for row in rows for span in row.spans}

    for caller in (GUEST, VIEWER, EXTENDER, MEMBER, ADMIN):
        assert (SpanKind.LEASE, lease.id) in kinds(caller)
    assert kinds(STRANGER) == {(SpanKind.BUSY, None)}


def test_changes_are_streamed_to_those_who_may_see_it(climate: Climate, clock: Clock) -> None:
    follower = Follower(climate)
    follower.read()
    lease = shared(climate, clock)
    found = follower.read()
    for caller in (GUEST, VIEWER, EXTENDER):
        assert {one.lease_id for one in journal_changes.notices(found, caller)} == {lease.id}
    assert {one.lease_id for one in journal_changes.notices(found, STRANGER)} == {None}


def test_feeds_have_the_leases_that_are_shared(climate: Climate, clock: Clock) -> None:
    lease = shared(climate, clock)

    def uids(caller: object, scope: Scope) -> list[str]:
        feed, _ = feeds.create(climate, caller, "mine", scope)  # type: ignore[arg-type]
        content = feeds.render(climate, feed, Days(30, 365)).content or b""
        return [str(one["uid"]) for one in Calendar.from_ical(content).walk("VEVENT")]

    for caller, scope in ((GUEST, Scope.PROJECT), (VIEWER, Scope.USER), (EXTENDER, Scope.USER)):
        (uid,) = uids(caller, scope)
        assert str(lease.id) in uid
    for caller, scope in ((GUEST, Scope.USER), (VIEWER, Scope.PROJECT), (STRANGER, Scope.PROJECT)):
        assert uids(caller, scope) == []


def test_all_who_may_see_it_are_told(climate: Climate, clock: Clock) -> None:
    lease = shared(climate, clock)
    for caller in (MEMBER, GUEST, VIEWER, EXTENDER):
        told = [(one.notice.kind, one.notice.lease_id) for one in delivery.listed(climate, caller, delivery.Listing())]
        assert told == [("lease.shared", lease.id)]
    (shown,) = delivery.listed(climate, VIEWER, delivery.Listing())
    assert shown.notice.message == "Lease lease is shared with 1 project and 2 users"
    assert delivery.listed(climate, STRANGER, delivery.Listing()) == []
    share(climate, lease, Sharing())
    assert delivery.listed(climate, VIEWER, delivery.Listing()) == []


def test_users_get_the_mail_that_they_asked_for(climate: Climate, clock: Clock) -> None:
    for caller in (VIEWER, EXTENDER, STRANGER):
        mail.set_preferences(climate, caller, list(Topic))
    mailing = replace(climate, settings=replace(climate.settings, smtp_url="smtp://127.0.0.1:9", mail_from="a@b.c"))
    with climate.engine.begin() as conn:
        mail._remind(conn, mailing)
    shared(climate, clock, hours=2)
    run_due(climate)
    clock.forward(hours=1, minutes=1)
    with climate.engine.begin() as conn:
        mail._remind(conn, mailing)
    clock.forward(hours=1)
    run_due(climate)
    with climate.engine.connect() as conn:
        sent = conn.execute(select(notices.c.user_id, notices.c.kind).where(notices.c.audience == "mail")).all()
    assert {(row.user_id, row.kind) for row in sent} >= {
        ("viewer", "lease.reminder.end_1h"),
        ("extender", "lease.reminder.end_1h"),
    }
    assert not [row for row in sent if row.user_id == STRANGER.user_id]
