"""Calendar feeds: which leases they show, their limits, and the cost of one."""

from datetime import timedelta
from uuid import UUID

import icalendar
import pytest
from sqlalchemy import select

from climate.context import Climate
from climate.domain.errors import Conflict, Forbidden, NotFound
from climate.domain.lease import Lease
from climate.domain.policy import Caller
from climate.service.calendars import feeds
from climate.service.calendars.feeds import Days, Rendered
from climate.service.leases import leases, update
from climate.service.leases.leases import LeaseRequest
from climate.service.leases.update import Changes
from climate.store.notices.calendar_feeds import Feed, Scope
from climate.store.tables.calendar_feeds_and_mail import calendar_feeds
from tests.api.reservation.test_cost import counted
from tests.conftest import ADMIN, MEMBER, STRANGER, Clock

DAYS = Days(30, 365)


def feed_of(climate: Climate, scope: Scope = Scope.USER, caller: Caller = MEMBER) -> Feed:
    return feeds.create(climate, caller, "mine", scope)[0]


def names(climate: Climate, feed: Feed, days: Days = DAYS) -> list[str]:
    content = feeds.render(climate, feed, days).content or b""
    return [str(one["summary"]) for one in icalendar.Calendar.from_ical(content).walk("VEVENT")]


def events(climate: Climate, feed: Feed) -> dict[str, tuple[str, int]]:
    """Status and SEQUENCE by UID."""
    content = feeds.render(climate, feed, DAYS).content or b""
    read = icalendar.Calendar.from_ical(content).walk("VEVENT")
    return {str(one["uid"]): (str(one["status"]), int(one["sequence"])) for one in read}


def booked(climate: Climate, clock: Clock, name: str, caller: Caller = MEMBER, **start: float) -> Lease:
    begin = clock.time + timedelta(**start or {"hours": 1})
    wanted = [{"resource_type": "physical:host", "min": 1, "max": 1}]
    return leases.create(climate, caller, LeaseRequest(name, begin, begin + timedelta(hours=1), None, wanted))


COLLEAGUE = Caller("colleague", MEMBER.project_id, MEMBER.roles)


def test_a_feed_shows_the_leases_of_its_user_or_its_project(climate: Climate, clock: Clock) -> None:
    booked(climate, clock, "own")
    booked(climate, clock, "of a colleague", COLLEAGUE)
    booked(climate, clock, "of a stranger", STRANGER)
    assert names(climate, feed_of(climate)) == ["own"]
    assert sorted(names(climate, feed_of(climate, Scope.PROJECT))) == ["of a colleague", "own"]


def test_days_limit_a_feed(climate: Climate, clock: Clock) -> None:
    booked(climate, clock, "soon", hours=1)
    booked(climate, clock, "late", days=20)
    feed = feed_of(climate)
    assert names(climate, feed, Days(0, 10)) == ["soon"]
    clock.forward(days=5)
    assert names(climate, feed, Days(0, 30)) == ["late"]
    assert names(climate, feed, Days(5, 30)) == ["soon", "late"]


def test_changes_and_deletions_raise_the_sequence(climate: Climate, clock: Clock) -> None:
    lease, feed = booked(climate, clock, "own"), feed_of(climate)
    uid = f"{lease.id}@climate"
    assert events(climate, feed) == {uid: ("CONFIRMED", 0)}
    update.update(climate, MEMBER, lease.id, Changes(name="other"))
    (_, renamed) = events(climate, feed)[uid]
    leases.delete(climate, MEMBER, lease.id)
    (status, deleted) = events(climate, feed)[uid]
    assert status == "CANCELLED"
    assert 0 < renamed < deleted


def test_an_unchanged_feed_is_not_rendered_again(climate: Climate, clock: Clock) -> None:
    lease, feed = booked(climate, clock, "own"), feed_of(climate)
    first = feeds.render(climate, feed, DAYS)
    clock.forward(minutes=10)
    assert feeds.render(climate, feed, DAYS, f'"other", "{first.tag}"') == Rendered(first.tag, None)
    update.update(climate, MEMBER, lease.id, Changes(name="other"))
    changed = feeds.render(climate, feed, DAYS, f'"{first.tag}"')
    assert changed.content
    assert changed.tag != first.tag


def test_a_feed_costs_one_statement_whatever_it_shows(climate: Climate, clock: Clock) -> None:
    feed, counts = feed_of(climate), []
    for most in (0, 8):
        for place in range(most):
            booked(climate, clock, str(place))
        with counted(climate.engine) as said:
            assert len(names(climate, feed)) == most
        counts.append(len(said))
    assert counts == [1, 1]


def test_secrets_are_long_and_stored_as_hashes(climate: Climate) -> None:
    made = [feeds.create(climate, MEMBER, "mine", Scope.USER) for _ in range(2)]
    secrets = {secret for _, secret in made}
    assert [len(secret) for secret in secrets] == [feeds.SECRET_CHARACTERS] * 2
    with climate.engine.connect() as conn:
        rows = [str(row) for row in conn.execute(select(calendar_feeds))]
    assert not [secret for secret in secrets for row in rows if secret in row]
    assert [feeds.with_secret(climate, secret) for _, secret in made] == [feed for feed, _ in made]


@pytest.mark.parametrize("secret", ["", "A" * 42, "A" * 43, "A" * 44, "é" * 43, "%00" * 14, "../../v1/leases"])
def test_unknown_secrets(climate: Climate, secret: str) -> None:
    feed_of(climate)
    with pytest.raises(NotFound, match="no such calendar"):
        feeds.with_secret(climate, secret)


def test_revoked_feeds_are_unknown(climate: Climate) -> None:
    feed, secret = feeds.create(climate, MEMBER, "mine", Scope.USER)
    feeds.revoke(climate, MEMBER, feed.id)
    with pytest.raises(NotFound, match="no such calendar"):
        feeds.with_secret(climate, secret)
    with pytest.raises(NotFound):
        feeds.revoke(climate, MEMBER, feed.id)


def test_feeds_belong_to_a_user_in_a_project(climate: Climate) -> None:
    own = feed_of(climate)
    elsewhere = Caller(MEMBER.user_id, "project-2", MEMBER.roles)
    for caller in (COLLEAGUE, STRANGER, elsewhere):
        assert feeds.listed(climate, caller, None, None) == []
        with pytest.raises(NotFound):
            feeds.revoke(climate, caller, own.id)
    assert feeds.listed(climate, MEMBER, None, None) == feeds.listed(climate, ADMIN, None, None) == [own]
    assert feeds.listed(climate, MEMBER, own.id, None) == []
    feeds.revoke(climate, ADMIN, own.id)
    assert feeds.listed(climate, ADMIN, None, None) == []


def test_limits(climate: Climate) -> None:
    for _ in range(feeds.FEEDS):
        feed_of(climate)
    with pytest.raises(Conflict, match="maximum"):
        feed_of(climate)
    feed_of(climate, caller=COLLEAGUE)
    with pytest.raises(Forbidden):
        feed_of(climate, caller=Caller("nobody", "project"))
    with pytest.raises(NotFound):
        feeds.revoke(climate, MEMBER, UUID(int=7))
