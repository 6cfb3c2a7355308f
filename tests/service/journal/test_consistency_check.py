"""The journal knows everything: rows can be checked against it, made anew from it, and looked back on."""

from datetime import timedelta

import pytest
from sqlalchemy import Engine, text

from climate.cloud import Refused
from climate.cloud.fake import FakeCloud
from climate.context import Climate
from climate.domain.errors import KeyReused, NotFound
from climate.domain.facts import EventClaimed
from climate.domain.status import EventKind, LeaseStatus
from climate.service import housekeeping
from climate.service.events import event_dispatch
from climate.service.journal import consistency_check
from climate.service.journal.rebuild import rebuild
from climate.service.leases import broken_leases, leases, update
from climate.service.leases.leases import LeaseRequest
from climate.service.leases.update import Changes
from climate.store.idempotency import Key
from climate.store.leases import leases as stored
from climate.store.leases.due_events import Cursor
from climate.store.leases.leases import Listing
from tests.conftest import ADMIN, MEMBER, STRANGER, Clock
from tests.service.lease_actions import hosts_wanted, make, rows, run_due


@pytest.fixture
def busy(climate: Climate, clock: Clock, cloud: FakeCloud) -> Climate:
    """An engine that has been through much: leases of every status."""
    for wanted in (1, 2):
        make(climate, clock, hosts_wanted(wanted), start=0, hours=1)
    run_due(climate)
    leases.delete(climate, MEMBER, make(climate, clock).id)
    update.update(climate, MEMBER, make(climate, clock).id, Changes(name="ü", end=clock.time + timedelta(hours=5)))
    clock.forward(hours=1)
    cloud.failures["lend"] = Refused("no")
    run_due(climate)
    return climate


def test_rows_and_journal_agree(busy: Climate) -> None:
    assert consistency_check.differences(busy) == []
    assert {lease.status for lease in leases.listed(busy, ADMIN, Listing())} == {
        LeaseStatus.TERMINATED,
        LeaseStatus.ERROR,
    }


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        ("UPDATE leases SET name = 'x' WHERE name = 'ü'", "name: rows say 'x'"),
        ("UPDATE leases SET end_date = end_date + interval '1 hour' WHERE name = 'ü'", "end_date"),
        ("UPDATE events SET status = 'UNDONE' WHERE kind = 'start_lease' AND status = 'ERROR'", "events"),
        ("UPDATE reservations SET spec = '{}'", "reservations"),
        ("DELETE FROM allocations WHERE state = 'active'", "allocations"),
        ("UPDATE leases SET gone = NOT gone", "gone"),
    ],
)
def test_damaged_rows_are_found_and_recreated(busy: Climate, engine: Engine, damage: str, says: str) -> None:
    before = rows(engine)
    with engine.begin() as conn:
        assert conn.execute(text(damage)).rowcount
    found = consistency_check.differences(busy)
    assert found
    assert all(says in one.what for one in found)
    assert rebuild(busy).left == ()
    assert consistency_check.differences(busy) == []
    after = rows(engine)
    changed = {name for name in after if name != "allocations" and after[name] != before[name]}
    assert changed == set()


def test_leases_that_are_set_aside_run_again_when_the_rows_are_recreated(
    climate: Climate, clock: Clock, engine: Engine
) -> None:
    lease = make(climate, clock, start=0)
    with engine.begin() as conn:
        conn.execute(text("UPDATE leases SET version = 0"))
    assert event_dispatch.claim(climate, "poller", Cursor()).count == 0
    assert [one.lease_id for one in broken_leases.listed(climate)] == [lease.id]
    rebuild(climate)
    assert broken_leases.listed(climate) == []
    run_due(climate)
    assert leases.get(climate, ADMIN, lease.id).status is LeaseStatus.ACTIVE


def test_lost_rows_and_rows_from_nowhere_are_found(busy: Climate, engine: Engine) -> None:
    with engine.begin() as conn:
        conn.execute(text("ALTER TABLE journal DISABLE TRIGGER USER"))
        conn.execute(text("DELETE FROM journal WHERE stream = (SELECT id FROM leases WHERE name = 'ü')"))
        holed = text("DELETE FROM journal WHERE version = 2 AND kind = 'EventClaimed' RETURNING stream")
        streams = {row.stream for row in conn.execute(holed)}
        conn.execute(text("ALTER TABLE journal ENABLE TRIGGER USER"))
    said = {(one.stream in streams, one.what) for one in consistency_check.differences(busy)}
    assert (False, "has rows but no journal") in said
    assert (True, "versions are not 1..n") in said


def test_an_empty_engine_is_healthy(climate: Climate) -> None:
    assert consistency_check.differences(climate) == []
    assert rebuild(climate).left == ()


def test_looking_back(climate: Climate, clock: Clock) -> None:
    lease = make(climate, clock)
    made = clock.time
    clock.forward(minutes=10)
    update.update(climate, MEMBER, lease.id, Changes(name="later"))
    clock.forward(minutes=50)
    run_due(climate)
    clock.forward(minutes=1)
    leases.delete(climate, MEMBER, lease.id)
    run_due(climate)
    assert leases.get(climate, MEMBER, lease.id, at=made) == lease
    assert leases.get(climate, MEMBER, lease.id, at=made + timedelta(minutes=59)).name == "later"
    assert leases.get(climate, MEMBER, lease.id, at=made + timedelta(minutes=60)).status is LeaseStatus.ACTIVE
    for moment in (made - timedelta(seconds=1), clock.time):
        with pytest.raises(NotFound):
            leases.get(climate, MEMBER, lease.id, at=moment)
    with pytest.raises(NotFound):
        leases.get(climate, STRANGER, lease.id, at=made)
    folded, entries = consistency_check.lease_history(climate, lease.id)
    assert folded.gone
    assert [entry.version for entry in entries] == list(range(1, len(entries) + 1))
    assert entries[0].actor == {"user_id": "user", "project_id": "project"}


def test_the_same_key_gives_the_same_lease(climate: Climate, clock: Clock) -> None:
    order = LeaseRequest("l", clock.time, clock.time + timedelta(hours=1), None, [hosts_wanted(8)])
    first = leases.create(climate, MEMBER, order, Key("k", "one"))
    run_due(climate)
    assert leases.create(climate, MEMBER, order, Key("k", "one")) == first, "as it was when it was made"
    with pytest.raises(KeyReused):
        leases.create(climate, MEMBER, order, Key("k", "other"))
    clock.forward(hours=2)
    run_due(climate)
    again = LeaseRequest("l", clock.time, clock.time + timedelta(hours=1), None, [hosts_wanted(8)])
    assert leases.create(climate, STRANGER, again, Key("k", "one")).id != first.id, "each project has its own keys"
    clock.forward(hours=21)
    housekeeping.tidy(climate)
    assert leases.create(climate, MEMBER, order, Key("k", "one")) == first
    clock.forward(hours=2)
    housekeeping.tidy(climate)
    third = LeaseRequest("l", clock.time, clock.time + timedelta(hours=1), None, [hosts_wanted(8)])
    assert leases.create(climate, MEMBER, third, Key("k", "other")).id != first.id


def test_a_refused_request_does_not_use_its_key_up(climate: Climate, clock: Clock) -> None:
    too_many = LeaseRequest("l", clock.time, clock.time + timedelta(hours=1), None, [hosts_wanted(9)])
    with pytest.raises(Exception, match="Not enough hosts"):
        leases.create(climate, MEMBER, too_many, Key("k", "one"))
    fewer = LeaseRequest("l", clock.time, clock.time + timedelta(hours=1), None, [hosts_wanted(8)])
    assert leases.create(climate, MEMBER, fewer, Key("k", "other"))


def test_looking_back_is_safe_however_close_two_facts_are(climate: Climate, clock: Clock) -> None:
    """A poller may have read the clock just before the lease was made that it claims."""
    lease = make(climate, clock, start=0)
    made = clock.time
    clock.forward(milliseconds=-1)
    started = consistency_check.lease_history(climate, lease.id)[0].event(EventKind.START)
    with climate.engine.begin() as conn:
        stored.record(conn, ADMIN, lease, EventClaimed(started.id, clock.time, 7))
    for look in (
        leases.get,
        lambda climate, _, lease_id, at: consistency_check.lease_history(climate, lease_id, at)[0],
    ):
        with pytest.raises(NotFound):
            look(climate, MEMBER, lease.id, clock.time)
        assert look(climate, MEMBER, lease.id, made).status is LeaseStatus.STARTING


def test_a_stream_of_something_else_is_no_lease(busy: Climate) -> None:
    with busy.engine.connect() as conn:
        streams = conn.scalars(text("SELECT DISTINCT stream FROM journal WHERE stream NOT IN (SELECT id FROM leases)"))
        others = list(streams)
    assert others
    for stream in others:
        with pytest.raises(NotFound, match=f"'lease_id': '{stream}'"):
            consistency_check.lease_history(busy, stream)
