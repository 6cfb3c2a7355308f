"""Leases of floating addresses beside all others, under whatever may happen to the engine."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import invariant, multiple, rule

from climate.domain.errors import NotEnoughAddresses
from climate.domain.lease import Lease
from climate.domain.period import Period
from climate.domain.status import HoldState
from climate.service.leases import leases
from climate.service.leases.leases import LeaseRequest
from climate.service.leases.update import Changes
from tests.conftest import MEMBER
from tests.machine.invariants import count
from tests.machine.test_engine import MINUTES, Machine, _look
from tests.machine.world import on_database
from tests.service.floating_ip_factory import NETWORK, OUTSIDE, addresses_wanted, registered

KNOWN = 4
OVERLAPS = """
    SELECT count(*) FROM floating_allocations a JOIN floating_allocations b
    ON a.number = b.number AND a.reservation_id < b.reservation_id AND a.during && b.during
    WHERE a.state IN ('held', 'active') AND b.state IN ('held', 'active')
"""


class Addresses(Machine):
    """The same, with a network outside of which four addresses can be reserved."""

    def __init__(self) -> None:
        super().__init__()
        self.cloud.external = {NETWORK: OUTSIDE}

    @rule(
        target=Machine.known,
        start=st.sampled_from([0, 0, 5, 30]),
        length=MINUTES,
        amount=st.integers(1, 3),
        grace=st.sampled_from([0, 0, 600]),
    )
    def ask_for_addresses(self, start: int, length: int, amount: int, grace: int) -> object:
        begin = self._now() + timedelta(minutes=start)
        period = Period(begin, begin + timedelta(minutes=length))
        free = self._free(period.longer(timedelta(seconds=grace)))
        wanted = addresses_wanted(amount, grace_period=grace)
        try:
            lease = self._or_nothing(
                lambda: leases.create(self.climate, MEMBER, LeaseRequest("a", begin, period.end, None, [wanted]))
            )
        except NotEnoughAddresses:
            assert free < amount, "refused although enough were free"
            return multiple()
        assert len(lease.reservations[0].addresses) == amount <= free
        return lease

    @rule(lease=Machine.known, amount=st.integers(1, KNOWN))
    def change_amount(self, lease: Lease, amount: int) -> None:
        if lease.reservations[0].resource_type == "virtual:floatingip":
            spec = {"id": str(lease.reservations[0].id), "amount": amount}
            self._change(lease, Changes(reservations=[spec]))

    @invariant()
    def addresses_are_lent_to_whom_they_are_promised(self) -> None:
        assert count(self.engine, OVERLAPS) == 0
        may_have = {
            str(r.id): {hold.address for hold in r.addresses}
            for lease in self.world.leases()
            if lease.hold_state is HoldState.ACTIVE
            for r in lease.reservations
        }
        for address, known in self.cloud.addresses.items():
            assert known.pool is not None
            assert address in may_have.get(known.pool, ()), "it is lent to no lease, or not one that is promised"

    def teardown(self) -> None:
        super().teardown()
        assert self.cloud.addresses == {}
        assert count(self.engine, "SELECT count(*) FROM floating_allocations WHERE state <> 'released'") == 0

    def _free(self, period: Period) -> int:
        """How many addresses nobody holds in that time, by the leases themselves."""
        held: Any = (
            hold
            for lease in self.world.leases()
            if lease.hold_state is not HoldState.RELEASED
            for r in lease.reservations
            for hold in r.addresses
        )
        return KNOWN - len({hold.number for hold in held if hold.during.overlaps(period)})


@pytest.fixture(scope="module")
def machine(make_database: Callable[..., str], engine_template: str) -> Iterator[type[Addresses]]:
    with on_database(Addresses, make_database(engine_template), lambda climate: registered(climate, KNOWN)) as one:
        yield one


@pytest.mark.slow
def test_no_order_of_events_breaks_a_promise_of_addresses(machine: type[Addresses]) -> None:
    _look(machine, examples=6, steps=40)


@pytest.mark.campaign
@pytest.mark.timeout(3600)
def test_no_order_of_events_breaks_a_promise_of_addresses_in_a_long_search(machine: type[Addresses]) -> None:
    _look(machine, examples=60, steps=50)
