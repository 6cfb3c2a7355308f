"""Notices on their way to a receiver: signed, at least once, in order, again after a while, and not for ever."""

import base64
import hashlib
import hmac
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import Engine, text

from climate import bootstrap
from climate.context import Climate
from climate.domain.notifications import Audience
from climate.service import housekeeping
from climate.service.leases import leases, update
from climate.service.leases.update import Changes
from climate.service.notifications import delivery
from climate.service.notifications.delivery import BATCH, CLAIMED, Notice, deliver, notify
from climate.settings import SettingError, Settings
from climate.store.notices import notifications as stored
from climate.store.notices.notifications import Result
from tests.conftest import MEMBER, Clock
from tests.scenarios.test_races import at_once
from tests.scenarios.test_statement_counts import cost
from tests.service.lease_actions import hosts_wanted, make, settle
from tests.webhook_receiver import Exchange, Receiver, receiving

KEY = bytes(range(32))
SECRET = f"whsec_{base64.b64encode(KEY).decode()}"
ONE, OTHER = UUID(int=1), UUID(int=2)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as one:
        yield one


def to(climate: Climate, receiver: Receiver, **more: Any) -> Climate:
    known = {"notify_url": f"{receiver.url}/hook", "notify_secret": SECRET, "notify_private": True}
    return replace(climate, settings=replace(climate.settings, **{**known, "notify_seconds": 20.0, **more}))


@pytest.fixture
def sending(climate: Climate, receiver: Receiver) -> Climate:
    return to(climate, receiver)


def say(climate: Climate, *messages: str, lease: UUID | None = None, **more: Any) -> None:
    with climate.engine.begin() as conn:
        told = [Notice("lease.grace", message, "project", "user", lease, **more) for message in messages]
        notify(conn, climate.now(conn), *told)


def messages(receiver: Receiver) -> list[str]:
    return [got.body["data"]["message"] for got in receiver.got]


def unsent(engine: Engine) -> list[Any]:
    with engine.connect() as conn:
        query = "SELECT message, next_at, attempts, error FROM notices WHERE next_at IS NOT NULL ORDER BY id"
        return list(conn.execute(text(query)))


def test_what_is_sent_is_signed(sending: Climate, receiver: Receiver, clock: Clock, engine: Engine) -> None:
    say(sending, "soon – over", lease=ONE, body={"end": "x"})
    assert deliver(sending) == 1
    (got,) = receiver.got
    assert (got.method, got.path) == ("POST", "/hook")
    number, stamp = got.headers["webhook-id"], got.headers["webhook-timestamp"]
    signed = hmac.new(KEY, f"{number}.{stamp}.".encode() + got.content, hashlib.sha256).digest()
    assert got.headers["webhook-signature"] == f"v1,{base64.b64encode(signed).decode()}"
    assert int(stamp) == int(clock.time.timestamp())
    assert got.body["type"] == "lease.grace"
    assert got.body["timestamp"] == clock.time.isoformat()
    data = got.body["data"]
    assert (data["message"], data["project_id"], data["lease_id"]) == ("soon – over", "project", str(ONE))
    assert (data["details"], f"notice_{data['id']}") == ({"end": "x"}, number)
    assert unsent(engine) == []
    assert deliver(sending) == 0
    assert len(receiver.got) == 1


@pytest.mark.parametrize("status", [302, 400, 429, 500])
def test_what_did_not_arrive_is_sent_again_later_under_the_same_id(
    sending: Climate, receiver: Receiver, clock: Clock, engine: Engine, status: int
) -> None:
    receiver.answer = lambda exchange: exchange.say(status, b"secret words", Location=f"{receiver.url}/other")
    say(sending, "one")
    assert deliver(sending) == deliver(sending) == 0
    (left,) = unsent(engine)
    assert (left.attempts, left.error) == (1, f"HTTP {status}")
    assert timedelta(0) < left.next_at - clock.time <= timedelta(seconds=5)
    receiver.answer = lambda exchange: exchange.say(200, b"ok")
    clock.forward(seconds=5)
    assert deliver(sending) == 1
    assert [got.path for got in receiver.got] == ["/hook", "/hook"]
    assert len({got.headers["webhook-id"] for got in receiver.got}) == 1
    assert len({got.headers["webhook-timestamp"] for got in receiver.got}) == 2


def test_the_pauses_grow_and_the_tries_end(receiver: Receiver, climate: Climate, clock: Clock, engine: Engine) -> None:
    sending = to(climate, receiver, notify_tries=12)
    receiver.answer = lambda exchange: exchange.say(503)
    say(sending, "one")
    pauses = []
    while left := unsent(engine):
        clock.time = max(clock.time, left[0].next_at)
        deliver(sending)
        pauses += [after.next_at - clock.time for after in unsent(engine)]
    assert len(receiver.got) == 12
    assert pauses == sorted(pauses)
    assert pauses[-1] <= timedelta(hours=1)
    with engine.connect() as conn:
        assert conn.execute(text("SELECT attempts, error FROM notices")).one() == (12, "HTTP 503")


def test_who_is_gone_is_asked_no_more(sending: Climate, receiver: Receiver, engine: Engine) -> None:
    receiver.answer = lambda exchange: exchange.say(410)
    say(sending, "one")
    assert deliver(sending) == 0
    assert unsent(engine) == []


def test_those_of_a_lease_come_in_their_order(
    sending: Climate, receiver: Receiver, clock: Clock, engine: Engine
) -> None:
    def answer(exchange: Exchange) -> None:
        exchange.say(500 if exchange.got.body["data"]["message"] == "one 0" and len(receiver.got) < 9 else 204)

    receiver.answer = answer
    say(sending, *[f"one {place}" for place in range(3)], lease=ONE)
    say(sending, *[f"other {place}" for place in range(3)], lease=OTHER)
    say(sending, *[f"none {place}" for place in range(3)])
    assert deliver(sending) == 6
    assert [row.message for row in unsent(engine)] == ["one 0", "one 1", "one 2"]
    clock.forward(minutes=1)
    receiver.answer = lambda exchange: exchange.say(204)
    assert deliver(sending) == 3
    sent = messages(receiver)
    assert sent[-3:] == ["one 0", "one 1", "one 2"]
    assert [message for message in sent if message.startswith("other")] == ["other 0", "other 1", "other 2"]


def test_two_workers_do_not_send_the_same(sending: Climate, receiver: Receiver) -> None:
    say(sending, *map(str, range(60)))
    assert sum(at_once(*[lambda: deliver(sending)] * 3)) == 60
    assert sorted(messages(receiver), key=int) == list(map(str, range(60)))


def test_what_a_worker_had_claimed_when_it_died_is_sent_by_another(
    sending: Climate, receiver: Receiver, clock: Clock, engine: Engine
) -> None:
    say(sending, "one")
    with engine.begin() as conn:
        (claimed,) = stored.claim(conn, list(Audience), clock.time, clock.time + CLAIMED, 9)
    assert deliver(sending) == 0
    clock.time += CLAIMED
    receiver.answer = lambda exchange: exchange.say(500)
    assert deliver(sending) == 0
    with engine.begin() as conn:  # it was only asleep, and comes too late to say that all is well
        stored.settle(conn, [Result(claimed.id, claimed.attempts, None, "")])
    receiver.answer = lambda exchange: exchange.say(204)
    clock.forward(hours=1)
    assert deliver(sending) == 1
    assert unsent(engine) == []


def test_one_message_that_hangs_keeps_only_itself(receiver: Receiver, climate: Climate, engine: Engine) -> None:
    sending = to(climate, receiver, notify_seconds=3.0)
    receiver.answer = lambda e: e.hang() if e.got.body["data"]["message"] == "3" else e.say(204)
    say(sending, *map(str, range(10)))
    assert deliver(sending) == 9
    (left,) = unsent(engine)
    assert (left.message, left.error) == ("3", "no answer within 3 s")


def test_no_transaction_is_open_meanwhile_and_the_cost_is_by_the_batch(
    sending: Climate, receiver: Receiver, engine: Engine
) -> None:
    seen: list[int] = []

    def answer(exchange: Exchange) -> None:
        seen.append(engine.pool.checkedout())  # type: ignore[attr-defined]
        exchange.say(204)

    receiver.answer = answer
    say(sending, "one")
    few = cost(engine, lambda: deliver(sending))
    say(sending, *map(str, range(BATCH)))
    assert cost(engine, lambda: deliver(sending)) == few
    assert seen == [0] * (BATCH + 1)


def test_a_private_address_is_not_posted_to_unless_that_is_allowed(
    receiver: Receiver, climate: Climate, engine: Engine
) -> None:
    sending = to(climate, receiver, notify_private=False)
    say(sending, "one")
    assert deliver(sending) == 0
    assert receiver.got == []
    assert "private" in unsent(engine)[0].error


def test_without_an_address_nothing_waits_to_be_sent(climate: Climate, receiver: Receiver, engine: Engine) -> None:
    say(climate, "one")
    assert deliver(climate) == 0
    assert unsent(engine) == []
    assert deliver(to(climate, receiver)) == 0


def test_the_life_of_a_lease_is_reported_as_by_the_peer(
    sending: Climate, receiver: Receiver, clock: Clock, engine: Engine
) -> None:
    settings = replace(sending.settings, minutes_before_end=30, cleaning_time=0)
    sending = replace(sending, settings=settings)
    lease = make(sending, clock, hosts_wanted(2), start=0, hours=2)
    settle(sending, clock, hours=1.75)
    update.update(sending, MEMBER, lease.id, Changes(end=lease.period.end + timedelta(hours=2)))
    settle(sending, clock, hours=3)
    leases.delete(sending, MEMBER, lease.id)
    while deliver(sending):
        pass
    told = [got.body for got in receiver.got if got.body["data"]["message"] == got.body["type"]]
    assert [body["type"] for body in told] == [
        "lease.create",
        "lease.event.start_lease",
        "lease.event.before_end_lease",
        "lease.update",
        "lease.event.before_end_lease.stop",
        "lease.event.before_end_lease",
        "lease.event.end_lease",
        "lease.delete",
    ]
    assert {body["data"]["details"]["lease_id"] for body in told} == {str(lease.id)}
    assert told[0]["data"]["details"]["reservations"][0]["resource_type"] == "physical:host"
    assert unsent(engine) == []
    shown = {kept.notice.kind for kept in delivery.listed(sending, MEMBER, delivery.Listing())}
    assert shown <= {"lease.before_end", "lease.ended"}


def test_telling_costs_a_create_one_statement(sending: Climate, climate: Climate, clock: Clock, engine: Engine) -> None:
    without = cost(engine, lambda: make(climate, clock, start=1, hours=0.5))
    assert cost(engine, lambda: make(sending, clock, start=2, hours=0.5)) == without + 1


def test_a_refused_or_tried_change_is_reported_to_nobody(sending: Climate, receiver: Receiver, clock: Clock) -> None:
    lease = make(sending, clock)
    deliver(sending)
    update.update(sending, MEMBER, lease.id, Changes(name="x"), dry_run=True)
    leases.delete(sending, MEMBER, lease.id, dry_run=True)
    assert deliver(sending) == 0


def test_old_notices_are_forgotten(climate: Climate, clock: Clock, engine: Engine) -> None:
    say(climate, "old")
    clock.forward(days=climate.settings.notice_days - 1)
    say(climate, "new")
    housekeeping.tidy(climate)
    assert len(unsent(engine)) == 2
    clock.forward(days=2)
    housekeeping.tidy(climate)
    assert [row.message for row in unsent(engine)] == ["new"]


def test_the_secret_is_shown_nowhere(
    receiver: Receiver, climate: Climate, caplog: pytest.LogCaptureFixture, engine: Engine
) -> None:
    sending = to(climate, receiver)
    receiver.answer = lambda exchange: exchange.say(500, SECRET.encode())
    say(sending, "one")
    deliver(sending)
    with engine.connect() as conn:
        kept = str(conn.execute(text("SELECT * FROM notices")).all())
    assert SECRET not in repr(sending.settings) + caplog.text + kept
    assert "HTTP 500" in kept


@pytest.mark.parametrize(
    "wrong",
    [
        {"notify_url": "https://a.example"},
        {"notify_url": "https://a.example", "notify_secret": "whsec_short"},
        {"notify_url": "https://a.example", "notify_secret": SECRET.removeprefix("whsec_")},
        {"notify_url": "ftp://a.example", "notify_secret": SECRET},
        {"notify_url": "https://me:password@a.example", "notify_secret": SECRET},
        {"enforcement_url": "a.example"},
    ],
)
def test_settings_that_cannot_be_used_are_found_at_the_start(wrong: dict[str, str]) -> None:
    with pytest.raises(SettingError, match=r"CLIMATE_(NOTIFY|ENFORCEMENT)_(URL|SECRET)") as raised:
        bootstrap.check(replace(Settings(), **wrong))  # type: ignore[arg-type]
    assert "password@" not in str(raised.value)
    assert SECRET not in str(raised.value)
    bootstrap.check(replace(Settings(), notify_url="https://a.example/x", notify_secret=SECRET))
