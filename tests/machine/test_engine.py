"""The whole engine under whatever may happen: Hypothesis looks for an order of events that breaks a promise."""

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import TypeVar
from uuid import UUID

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)
from sqlalchemy import Engine

from climate.cloud import CloudError, Refused
from climate.domain.errors import ClimateError, NotEnoughHosts
from climate.domain.events.event_transitions import AdditionalEvent
from climate.domain.lease import Lease
from climate.domain.period import Period
from climate.domain.status import HoldState, LeaseStatus
from climate.service.events import event_dispatch, events
from climate.service.leases import confirmation, lease_servers, leases, update
from climate.service.leases.leases import LeaseRequest
from climate.service.leases.update import Changes
from tests.conftest import ADMIN, MEMBER
from tests.machine.invariants import at_any_moment, when_all_is_quiet
from tests.machine.world import WorkerDied, World, empty, on_database
from tests.service.lease_actions import listed_events

T = TypeVar("T")
MINUTES = st.sampled_from([1, 5, 10, 30, 60, 90])
VERBS = st.sampled_from(
    [
        *("lend", "take_back", "close", "wake", "delete_server", "snapshot", "suspend", "servers_in", "server"),
        *("lend_address", "take_back_addresses"),
    ]
)
COUNTS = st.integers(1, 3)


class Machine(RuleBasedStateMachine):
    """Users, an operator, pollers, workers, a cloud and the clock, each doing what they please."""

    engine: Engine

    known = Bundle("known")

    def __init__(self) -> None:
        super().__init__()
        empty(self.engine)
        self.world = World(self.engine)
        self.climate, self.clock, self.cloud = self.world.climate, self.world.clock, self.world.cloud
        self.confirmed: dict[UUID, tuple[str, Lease]] = {}

    # Users.

    @rule(
        target=known,
        start=st.sampled_from([0, 0, 5, 30, 90]),
        length=MINUTES,
        least=COUNTS,
        more=st.integers(0, 2),
        before=st.booleans(),
    )
    def ask_for_hosts(self, start: int, length: int, least: int, more: int, before: bool) -> object:
        begin = self._now() + timedelta(minutes=start)
        period = Period(begin, begin + timedelta(minutes=length))
        wanted = {"resource_type": "physical:host", "min": least, "max": least + more, "before_end": "snapshot"}
        middle = begin + timedelta(minutes=length) / 2 if before else None
        free = self.world.free(period)
        named = (AdditionalEvent("remind", begin), AdditionalEvent("remind", middle or period.end))
        try:
            lease = self._or_nothing(
                lambda: leases.create(
                    self.climate, MEMBER, LeaseRequest("l", begin, period.end, middle, [wanted], named)
                )
            )
        except NotEnoughHosts:
            assert free < least, "refused although enough were free"
            return multiple()
        assert least <= min(free, least + more) == len(lease.reservations[0].hosts)
        return lease

    @rule(target=known, start=st.sampled_from([0, 0, 5, 30]), least=COUNTS, seconds=st.sampled_from([1, 60, 299]))
    def hold_hosts(self, start: int, least: int, seconds: int) -> object:
        begin = self._now() + timedelta(minutes=start)
        wanted = {"resource_type": "physical:host", "min": least, "max": least}
        order = LeaseRequest("h", begin, begin + timedelta(minutes=30), None, [wanted], hold=timedelta(seconds=seconds))
        try:
            lease = self._or_nothing(lambda: leases.create(self.climate, MEMBER, order))
        except ClimateError:
            return multiple()
        assert (lease.status, lease.hold_state) == (LeaseStatus.HELD, HoldState.HELD)
        return lease

    @rule(lease=known, key=st.sampled_from(["k", "k", "other"]))
    def confirm(self, lease: Lease, key: str) -> None:
        """Never twice, never after the expiry, and always the same answer to the same key."""
        before = self.world.get(lease)
        known = self.confirmed.get(lease.id)
        try:
            answer = self._or_nothing(lambda: confirmation.confirm(self.climate, MEMBER, lease.id, key))
        except ClimateError:
            assert known is None or known[0] != key, "a repeated confirmation was refused"
            assert not (before.held and before.hold_until > self.clock.time and not before.expiry.token)  # type: ignore[operator, union-attr]
            return
        if known is not None:
            assert known == (key, answer)
            return
        assert before.held
        assert before.hold_until is not None
        assert self.clock.time < before.hold_until, "confirmed after its expiry"
        self.confirmed[lease.id] = key, answer

    @rule(
        target=known,
        start=st.sampled_from([0, 5, 30]),
        length=MINUTES,
        on_end=st.sampled_from(["delete", "suspend", "create_image, delete"]),
    )
    def ask_for_a_server(self, start: int, length: int, on_end: str) -> object:
        begin = self._now() + timedelta(minutes=start)
        params = {"start": begin.isoformat(), "end": (begin + timedelta(minutes=length)).isoformat(), "on_end": on_end}
        try:
            return lease_servers.reserve(self.climate, MEMBER, params, self.world.sleeping_server)
        except (ClimateError, CloudError):
            return multiple()

    @rule(lease=known, start=st.none() | MINUTES, end=st.none() | MINUTES, name=st.none() | st.just("other"))
    def move(self, lease: Lease, start: int | None, end: int | None, name: str | None) -> None:
        begin, until = (None if m is None else self._now() + timedelta(minutes=m) for m in (start, end))
        self._change(lease, Changes(name=name, start=begin, end=until))

    @rule(lease=known, least=COUNTS, more=st.integers(0, 2))
    def change_size(self, lease: Lease, least: int, more: int) -> None:
        spec = {"id": str(lease.reservations[0].id), "min": least, "max": least + more}
        if lease.reservations[0].resource_type == "physical:host":
            self._change(lease, Changes(reservations=[spec]))

    @rule(lease=known)
    def end_now(self, lease: Lease) -> None:
        self._change(lease, Changes(end_now=True))

    @rule(lease=known)
    def delete(self, lease: Lease) -> None:
        self._try(lambda: leases.delete(self.climate, MEMBER, lease.id))

    @rule(lease=known)
    def boot_in_the_pool(self, lease: Lease) -> None:
        """A user's server, on a host that is lent to him."""
        pool = str(lease.reservations[0].id)
        for host in sorted(self.world.pools().get(pool, ())):
            try:
                self.cloud.boot("project", host)
            except Refused:
                assert self.cloud.is_closed(pool)

    # The operator, the clock, the pollers.

    @rule(data=st.data())
    def requeue(self, data: st.DataObject) -> None:
        failed = [event.id for _, event in listed_events(self.climate, "ERROR", 100)]
        if failed:
            self._try(lambda: events.requeue(self.climate, ADMIN, data.draw(st.sampled_from(failed))))

    @rule(seconds=st.sampled_from([1, 20, 61, 300, 900, 3600]))
    def time_passes(self, seconds: int) -> None:
        self.clock.forward(seconds=seconds)

    @rule(work=st.booleans())
    def time_passes_to_the_next_event(self, work: bool) -> None:
        self.clock.time += event_dispatch.next_due(self.climate) or timedelta(0)
        self.world.queue += self.world.send()
        while work and self.world.queue:
            self.world.run(self.world.queue.pop(0))

    @rule(copies=st.sampled_from([1, 1, 1, 0, 2]))
    def beat(self, copies: int) -> None:
        self.world.queue += self.world.send() * copies

    @rule()
    def rescue(self) -> None:
        event_dispatch.rescue(self.climate, "other poller")

    # Workers.

    @rule(count=st.integers(1, 4))
    def work(self, count: int) -> None:
        for _ in range(min(count, len(self.world.queue))):
            self.world.run(self.world.queue.pop(0))

    @rule(number=st.integers(0, 3))
    def die_at_a_verb(self, number: int) -> None:
        self._strike(number, _die)

    @rule()
    def die_before_the_record(self) -> None:
        self.world.queue = self.world.queue or self.world.send()
        if self.world.queue:
            with self.world.dying_before_the_record():
                self.world.run(self.world.queue.pop(0))

    @rule(number=st.integers(0, 4), forget=st.booleans())
    def stand_still_at_a_verb(self, number: int, forget: bool) -> None:
        """The event is given to another worker meanwhile; perhaps the lease is even deleted."""
        self.world.queue = self.world.queue or self.world.send()
        message = self.world.queue[0] if self.world.queue else None

        def pause() -> None:
            self.clock.forward(seconds=60)
            event_dispatch.rescue(self.climate, "poller")
            if forget and message:
                lease, _ = next(
                    pair for pair in listed_events(self.climate, None, 1000) if pair[1].id == message.event_id
                )
                self._try(lambda: leases.delete(self.climate, ADMIN, lease.id))
            self.clock.forward(seconds=60)
            self.world.run_all()

        self._strike(number, pause)

    @rule(data=st.data())
    def an_old_message_comes_again(self, data: st.DataObject) -> None:
        if self.world.old:
            self.world.run(data.draw(st.sampled_from(self.world.old)), "late worker")

    # The cloud.

    @rule(broken=st.booleans())
    def cloud_breaks_or_comes_back(self, broken: bool) -> None:
        self.cloud.broken = broken

    @rule(verb=VERBS, error=st.sampled_from([None, CloudError("flaky"), Refused("never")]))
    def verb_fails(self, verb: str, error: CloudError | None) -> None:
        self.cloud.failures.pop(verb, None)
        if error:
            self.cloud.failures[verb] = error

    @rule(verb=VERBS, times=st.integers(1, 2))
    def answers_get_lost(self, verb: str, times: int) -> None:
        self.cloud.unheard[verb] = times

    @rule(gone=st.integers(0, 3), awake=st.integers(0, 2))
    def cloud_is_slow(self, gone: int, awake: int) -> None:
        self.cloud.looks_until_gone, self.cloud.looks_until_awake = gone, awake

    # What must hold.

    @invariant()
    def promises_are_kept(self) -> None:
        at_any_moment(self.world)

    def teardown(self) -> None:
        self.world.heal()
        self.world.come_to_rest()
        lease_servers.sweep(self.climate)
        self.world.look_until_gone()
        when_all_is_quiet(self.world)

    # Means.

    def _now(self) -> datetime:
        return self.clock.time.replace(microsecond=0)

    def _strike(self, number: int, strike: Callable[[], None]) -> None:
        self.world.queue = self.world.queue or self.world.send()
        if self.world.queue:
            self.world.strike_at_verb(number, strike)
            self.world.run(self.world.queue.pop(0))

    def _change(self, lease: Lease, wanted: Changes) -> None:
        self._try(lambda: update.update(self.climate, MEMBER, lease.id, wanted))

    def _try(self, act: Callable[[], object]) -> None:
        """It may be refused, but then it changes nothing."""
        try:
            self._or_nothing(act)
        except ClimateError:
            return

    def _or_nothing(self, act: Callable[[], T]) -> T:
        before = self.world.fingerprint()
        try:
            return act()
        except ClimateError:
            assert self.world.fingerprint() == before  # 10
            raise


def _die() -> None:
    raise WorkerDied


@pytest.fixture(scope="module")
def machine(make_database: Callable[..., str], engine_template: str) -> Iterator[type[Machine]]:
    with on_database(Machine, make_database(engine_template)) as one:
        yield one


def _look(machine: type[Machine], examples: int, steps: int) -> None:
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            print_blob=True,
            phases=(Phase.reuse, Phase.generate, Phase.shrink),
        ),
    )


@pytest.mark.slow
def test_no_order_of_events_breaks_a_promise(machine: type[Machine]) -> None:
    _look(machine, examples=12, steps=40)


@pytest.mark.campaign
@pytest.mark.timeout(3600)
def test_no_order_of_events_breaks_a_promise_in_a_long_search(machine: type[Machine]) -> None:
    _look(machine, examples=300, steps=50)
