"""Another service has the last word on leases: yes, no, and every way of saying neither."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import Engine, text

from climate.context import Climate
from climate.domain.errors import Busy, Forbidden, NotEnoughHosts, NotFound, NoVerdict
from climate.domain.lease import Lease
from climate.domain.limits import Limit
from climate.service.admission import enforcement, limits
from climate.service.hosts import inventory
from climate.service.leases import leases, update
from climate.service.leases.leases import LeaseRequest
from climate.service.leases.update import Changes
from climate.service.notifications.delivery import Listing, deliver, listed
from climate.store.idempotency import Key
from tests.conftest import ADMIN, MEMBER, STRANGER, Clock
from tests.scenarios.test_races import at_once
from tests.scenarios.test_statement_counts import cost
from tests.service.capacity_factory import servers
from tests.service.lease_actions import held, hosts_wanted, make, rows, settle
from tests.webhook_receiver import Exchange, Receiver, receiving

TOKEN = "kept-out-of-sight"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as one:
        yield one


def asking(climate: Climate, receiver: Receiver, **more: Any) -> Climate:
    known = {"enforcement_url": f"{receiver.url}/v1/", "enforcement_token": TOKEN, "enforcement_seconds": 20.0}
    return replace(climate, settings=replace(climate.settings, **{**known, **more}))


@pytest.fixture
def asked(climate: Climate, receiver: Receiver) -> Climate:
    return asking(climate, receiver)


def paths(receiver: Receiver) -> list[str]:
    return [got.path for got in receiver.got]


def test_a_new_lease_is_asked_about_with_its_hosts(asked: Climate, receiver: Receiver, clock: Clock) -> None:
    lease = make(asked, clock, hosts_wanted(2, resource_properties='["==", "$gpu_count", "2"]'))
    (got,) = receiver.got
    assert (got.method, got.path) == ("POST", "/v1/check-create")
    assert got.headers["X-Auth-Token"] == TOKEN
    assert set(got.body) == {"context", "lease"}
    assert got.body["context"]["user_id"] == MEMBER.user_id
    assert got.body["context"]["project_id"] == MEMBER.project_id
    assert set(got.body["context"]) == {"user_id", "project_id", "auth_url", "region_name"}
    told = got.body["lease"]
    assert (told["start_date"], told["end_date"]) == ("2030-01-01T13:00:00.000000", "2030-01-01T15:00:00.000000")
    (reservation,) = told["reservations"]
    assert (reservation["resource_type"], reservation["min"], reservation["max"]) == ("physical:host", 2, 2)
    assert [host["extra"] for host in reservation["allocations"]] == [{"gpu_count": "2"}] * 2
    assert len(held(lease)) == 2


@pytest.mark.parametrize("affinity", [None, False, True])
def test_slots_are_asked_about_once_although_each_plan_has_ids_of_its_own(
    asked: Climate, receiver: Receiver, clock: Clock, affinity: bool | None
) -> None:
    lease = make(asked, clock, {**servers(2), "affinity": affinity})
    (got,) = receiver.got
    (reservation,) = got.body["lease"]["reservations"]
    assert (reservation["resource_type"], reservation["amount"]) == ("virtual:instance", 2)
    assert sum(hold.slots for hold in lease.reservations[0].holds) == 2


def test_a_change_is_asked_about_with_the_lease_as_it_is(asked: Climate, receiver: Receiver, clock: Clock) -> None:
    lease = make(asked, clock)
    update.update(asked, MEMBER, lease.id, Changes(name="only the name"))
    update.update(asked, MEMBER, lease.id, Changes(end=lease.period.end + timedelta(hours=1)))
    assert paths(receiver) == ["/v1/check-create", "/v1/check-update"]
    body = receiver.got[-1].body
    assert (body["current_lease"]["end_date"], body["lease"]["end_date"]) == (
        "2030-01-01T15:00:00.000000",
        "2030-01-01T16:00:00.000000",
    )
    assert body["lease"]["lease_id"] == body["current_lease"]["lease_id"] == str(lease.id)


def test_a_no_is_handed_on_in_its_words_and_nothing_is_kept(
    asked: Climate, climate: Climate, receiver: Receiver, clock: Clock, engine: Engine
) -> None:
    lease = make(climate, clock)
    before = rows(engine)
    receiver.answer = lambda exchange: exchange.say(403, '{"message": "no money\\nleft: ß"}'.encode())
    with pytest.raises(Forbidden, match=r"^no moneyleft: ß$"):
        make(asked, clock)
    with pytest.raises(Forbidden, match="no money"):
        update.update(asked, MEMBER, lease.id, Changes(end=lease.period.end + timedelta(hours=1)))
    assert rows(engine) == before


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{", b'{"message": 7}', b'{"message": ""}', b"\xff", b"[" * 50_000, b'{"message": "\x00"}']
)
def test_a_no_without_words_is_a_no(asked: Climate, receiver: Receiver, clock: Clock, body: bytes) -> None:
    receiver.answer = lambda exchange: exchange.say(403, body)
    with pytest.raises(Forbidden, match="rejected this lease"):
        make(asked, clock)


def test_a_long_no_is_cut(asked: Climate, receiver: Receiver, clock: Clock) -> None:
    receiver.answer = lambda exchange: exchange.say(403, b'{"message": "%s"}' % (b"x" * 9999))
    with pytest.raises(Forbidden) as raised:
        make(asked, clock)
    assert str(raised.value) == "x" * 500


NEITHER = {
    "hangs": Exchange.hang,
    "drips": Exchange.drip,
    "breaks off": lambda e: e.raw(b""),
    "garbage": lambda e: e.raw(b"\x00\xff" * 99),
    "too long": lambda e: e.say(403, b"x" * 10**6),
    "200": lambda e: e.say(200, b"{}"),
    "302": lambda e: e.say(302, Location="/v1/yes"),
    "401": lambda e: e.say(401),
    "500": lambda e: e.say(500, TOKEN.encode()),
}


@pytest.mark.parametrize("name", NEITHER)
def test_neither_yes_nor_no_is_no_unless_the_operator_wants_it_otherwise(
    climate: Climate, receiver: Receiver, clock: Clock, engine: Engine, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    receiver.answer = NEITHER[name]
    seconds = 0.6 if name in ("hangs", "drips") else 20.0
    closed = asking(climate, receiver, enforcement_seconds=seconds)
    before = rows(engine)
    with pytest.raises(NoVerdict) as raised:
        make(closed, clock)
    assert rows(engine) == before
    assert paths(receiver) == ["/v1/check-create"]
    assert make(asking(climate, receiver, enforcement_seconds=seconds, enforcement_open=True), clock)
    assert TOKEN not in caplog.text + str(raised.value) + repr(closed.settings)


def test_nothing_is_locked_and_no_transaction_open_while_it_thinks(
    asked: Climate, climate: Climate, receiver: Receiver, clock: Clock, engine: Engine
) -> None:
    """Half of the equal hosts each; of unequal ones those that are left are others, and are asked about again."""
    limits.put(climate, ADMIN, MEMBER.project_id, {Limit.LEASES: 50})
    wanted = hosts_wanted(2, resource_properties='["==", "$gpu_count", "2"]')
    before: list[Lease] = []

    def answer(exchange: Exchange) -> None:
        assert engine.pool.checkedout() == 0  # type: ignore[attr-defined]
        with engine.connect() as conn:
            assert conn.scalar(text("SELECT count(*) FROM pg_locks WHERE locktype IN ('advisory', 'tuple')")) == 0
        before.append(make(climate, clock, wanted, start=1))
        exchange.say(204)

    receiver.answer = answer
    assert make(asked, clock, wanted, start=1)
    assert len(before) == 1


def test_what_became_another_is_asked_about_again(
    asked: Climate, climate: Climate, receiver: Receiver, clock: Clock
) -> None:
    """There is a host with a GPU less, meanwhile: what is granted is not what was agreed to."""
    wanted = hosts_wanted(1, 4, resource_properties='["==", "$gpu_count", "2"]')

    def answer(exchange: Exchange) -> None:
        if len(receiver.got) == 1:
            make(climate, clock, hosts_wanted(2, resource_properties='["==", "$gpu_count", "2"]'))
        exchange.say(204)

    receiver.answer = answer
    lease = make(asked, clock, wanted)
    told = [len(got.body["lease"]["reservations"][0]["allocations"]) for got in receiver.got]
    assert told == [4, 2]
    assert len(held(lease)) == 2


def test_what_is_gone_meanwhile_is_refused_as_ever(
    asked: Climate, climate: Climate, receiver: Receiver, clock: Clock
) -> None:
    def answer(exchange: Exchange) -> None:
        make(climate, clock, hosts_wanted(1))
        exchange.say(204)

    receiver.answer = answer
    with pytest.raises(NotEnoughHosts):
        make(asked, clock, hosts_wanted(8))


def test_what_keeps_changing_is_given_up(asked: Climate, climate: Climate, receiver: Receiver, clock: Clock) -> None:
    def answer(exchange: Exchange) -> None:
        make(climate, clock, hosts_wanted(1))
        exchange.say(204)

    receiver.answer = answer
    with pytest.raises(Busy, match="kept changing"):
        make(asked, clock, hosts_wanted(1, 8))
    assert len(receiver.got) == enforcement.ROUNDS


def test_which_of_equal_hosts_it_is_does_not_matter(
    asked: Climate, climate: Climate, receiver: Receiver, clock: Clock
) -> None:
    def answer(exchange: Exchange) -> None:
        if len(receiver.got) < 3:  # takes the very host that was asked about
            (host,) = exchange.got.body["lease"]["reservations"][0]["allocations"]
            make(climate, clock, hosts_wanted(1, hypervisor_properties=f'["==", "$id", "{host["id"]}"]'))
        exchange.say(204)

    receiver.answer = answer
    assert make(asked, clock, hosts_wanted(1, resource_properties='["==", "$gpu_count", "2"]'))
    assert paths(receiver) == ["/v1/check-create"]


def test_a_lease_from_now_on_may_begin_a_little_later_than_asked_about(
    asked: Climate, receiver: Receiver, clock: Clock
) -> None:
    def answer(exchange: Exchange) -> None:
        clock.forward(seconds=5)
        exchange.say(204)

    receiver.answer = answer
    order = LeaseRequest("l", None, clock.time + timedelta(hours=1), None, [hosts_wanted()])
    lease = leases.create(asked, MEMBER, order)
    assert lease.period.start == clock.time
    assert paths(receiver) == ["/v1/check-create"]


def test_limits_come_first_and_trials_are_not_asked_about(asked: Climate, receiver: Receiver, clock: Clock) -> None:
    order = LeaseRequest("l", clock.time, clock.time + timedelta(hours=1), None, [hosts_wanted()])
    leases.create(asked, MEMBER, order, dry_run=True)
    limits.put(asked, ADMIN, MEMBER.project_id, {Limit.LEASES: 0})
    with pytest.raises(Forbidden, match="Limit leases"):
        leases.create(asked, MEMBER, order)
    assert receiver.got == []


def test_a_request_that_is_repeated_is_asked_about_once(asked: Climate, receiver: Receiver, clock: Clock) -> None:
    order = LeaseRequest("l", clock.time, clock.time + timedelta(hours=1), None, [hosts_wanted()])
    first = leases.create(asked, MEMBER, order, Key("k", "f"))
    receiver.answer = lambda exchange: exchange.say(403)
    assert leases.create(asked, MEMBER, order, Key("k", "f")).id == first.id
    assert paths(receiver) == ["/v1/check-create"]


def test_many_at_once_are_promised_nothing_twice(asked: Climate, receiver: Receiver, clock: Clock) -> None:
    results = at_once(*[lambda: make(asked, clock, hosts_wanted(3))] * 6)
    made = [one for one in results if isinstance(one, Lease)]
    assert 1 <= len(made) <= 2
    assert len({number for lease in made for number in held(lease)}) == 3 * len(made)
    assert {type(one) for one in results} <= {Lease, NotEnoughHosts, Busy}


def test_the_end_is_reported_and_reported_again_until_it_is_heard(
    asked: Climate, receiver: Receiver, clock: Clock, engine: Engine
) -> None:
    ran = make(asked, clock, start=0, hours=1)
    settle(asked, clock, hours=2)
    given_up = make(asked, clock)
    leases.delete(asked, MEMBER, given_up.id)
    leases.delete(asked, MEMBER, ran.id)  # it had ended before
    receiver.got.clear()
    receiver.answer = lambda exchange: exchange.say(500)
    deliver(asked)
    clock.forward(minutes=1)
    receiver.answer = lambda exchange: exchange.say(204)
    deliver(asked)
    assert sorted(got.body["lease"]["lease_id"] for got in receiver.got) == sorted([str(ran.id), str(given_up.id)] * 2)
    assert paths(receiver) == ["/v1/on-end"] * 4
    assert receiver.got[0].body["context"]["user_id"] == MEMBER.user_id
    assert receiver.got[0].headers["X-Auth-Token"] == TOKEN
    assert {kept.notice.kind for kept in listed(asked, ADMIN, Listing())} <= {"lease.ended"}
    clock.forward(hours=9)
    assert deliver(asked) == 0


def test_the_cost(asked: Climate, climate: Climate, clock: Clock, engine: Engine) -> None:
    """Twice what comes before the first write, and the hosts' properties; nothing where nobody is asked."""
    without = cost(engine, lambda: make(climate, clock, start=1, hours=0.5))
    few = cost(engine, lambda: make(asked, clock, start=2, hours=0.5))
    for place in range(5):
        make(climate, clock, start=10 + place, hours=0.5)
    assert cost(engine, lambda: make(asked, clock, hosts_wanted(6), start=3, hours=0.5)) == few <= 2 * without + 1


def test_a_stranger_learns_nothing_of_a_lease_by_it(asked: Climate, receiver: Receiver, clock: Clock) -> None:
    lease = make(asked, clock)
    receiver.got.clear()
    with pytest.raises(NotFound):
        update.update(asked, STRANGER, lease.id, Changes(end=lease.period.end + timedelta(hours=1)))
    assert receiver.got == []
    assert inventory.listed(asked, ADMIN)
