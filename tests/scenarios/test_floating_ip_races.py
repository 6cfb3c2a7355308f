"""Many at once for few floating addresses, on a real Postgres: none is promised twice, none is refused without need."""

from datetime import timedelta

import pytest
from psycopg.errors import DeadlockDetected, ExclusionViolation
from sqlalchemy import Engine, event, text
from sqlalchemy.exc import IntegrityError

from climate.context import Climate
from climate.domain.errors import Conflict, NotEnoughAddresses, NotEnoughHosts, NotFound
from climate.domain.lease import Lease
from climate.service import floating_ips
from climate.service.journal import consistency_check
from climate.service.leases import leases, update
from climate.service.leases.update import Changes
from tests.conftest import ADMIN, MEMBER, Clock
from tests.scenarios.test_races import at_once, kinds_of
from tests.service.floating_ip_factory import addresses_wanted, allocated, promised_twice, registered
from tests.service.lease_actions import hosts_wanted, make

WRITERS = 12


@pytest.fixture
def clashes(engine: Engine) -> list[str]:
    """What the last guards have had to refuse: the constraint, and whoever sees that two wait for each other."""
    seen: list[str] = []

    def note(context: object) -> None:
        error = getattr(context, "original_exception", None)
        if isinstance(error, ExclusionViolation | DeadlockDetected):
            seen.append(str(error))

    event.listen(engine, "handle_error", note)
    return seen


def test_one_address_left_and_two_who_want_it(climate: Climate, clock: Clock, clashes: list[str]) -> None:
    registered(climate, 3)
    make(climate, clock, addresses_wanted(2))
    results = at_once(*[lambda: make(climate, clock, addresses_wanted(1))] * 2)
    assert kinds_of(results) == {Lease, NotEnoughAddresses}
    assert (promised_twice(climate), clashes) == ([], [])


def test_as_many_addresses_as_writers(climate: Climate, clock: Clock, clashes: list[str]) -> None:
    registered(climate, WRITERS)
    results = at_once(*[lambda: make(climate, clock, addresses_wanted(1))] * WRITERS)
    assert kinds_of(results) == {Lease}
    assert len({address for lease in results for address in allocated(lease)}) == WRITERS
    assert (promised_twice(climate), clashes) == ([], [])


def test_more_writers_than_addresses(climate: Climate, clock: Clock, clashes: list[str]) -> None:
    registered(climate, 7)
    results = at_once(*[lambda: make(climate, clock, addresses_wanted(2))] * WRITERS)
    assert len([one for one in results if isinstance(one, Lease)]) == 3
    assert kinds_of(results) == {Lease, NotEnoughAddresses}
    assert (promised_twice(climate), clashes) == ([], [])
    assert consistency_check.differences(climate) == []


def test_hosts_and_addresses_in_any_order(climate: Climate, clock: Clock, clashes: list[str]) -> None:
    registered(climate, 5)
    parts = (hosts_wanted(2), addresses_wanted(1))
    orders = [parts if place % 2 else parts[::-1] for place in range(WRITERS)]
    results = at_once(*[lambda wanted=wanted: make(climate, clock, *wanted) for wanted in orders])
    assert len([one for one in results if isinstance(one, Lease)]) == 4, "there are 8 hosts"
    assert kinds_of(results) == {Lease, NotEnoughHosts}
    assert (promised_twice(climate), clashes) == ([], [])


def test_two_leases_grow_towards_one_address(climate: Climate, clock: Clock) -> None:
    registered(climate, 3)
    both = [make(climate, clock, addresses_wanted(1)) for _ in range(2)]

    def grow(lease: Lease) -> Lease:
        wanted = Changes(reservations=[{"id": str(lease.reservations[0].id), "amount": 2}])
        return update.update(climate, MEMBER, lease.id, wanted)

    results = at_once(*[lambda one=one: grow(one) for one in both])
    assert kinds_of(results) == {Lease, NotEnoughAddresses}
    assert promised_twice(climate) == []


def test_an_address_is_removed_while_it_is_booked(climate: Climate, clock: Clock) -> None:
    for place in range(8):
        known = registered(climate, 1, first=10 + place)[0]
        results = at_once(
            lambda: make(climate, clock, addresses_wanted(1)),
            lambda wanted=known: floating_ips.remove(climate, ADMIN, str(wanted.id)),
        )
        booked = isinstance(results[0], Lease)
        assert isinstance(results[0], Lease | NotEnoughAddresses)
        assert isinstance(results[1], Conflict) == booked
        if booked:
            leases.delete(climate, MEMBER, results[0].id)
            floating_ips.remove(climate, ADMIN, str(known.id))
    assert floating_ips.listed(climate, ADMIN) == []
    with pytest.raises(NotFound):
        floating_ips.remove(climate, ADMIN, str(known.id))


def test_the_last_guard_is_the_database(climate: Climate, clock: Clock, engine: Engine) -> None:
    registered(climate, 1)
    make(climate, clock, addresses_wanted(1), start=1, hours=1)
    later = make(climate, clock, addresses_wanted(1), start=2, hours=1)
    earlier = text("""
        UPDATE floating_allocations SET during = tstzrange(lower(during) - :by, upper(during))
        WHERE reservation_id = :id""")
    with pytest.raises(IntegrityError, match="one_reservation_at_a_time"), engine.begin() as conn:
        conn.execute(earlier, {"by": timedelta(seconds=1), "id": later.reservations[0].id})
    with pytest.raises(IntegrityError, match="during_is_bounded"), engine.begin() as conn:
        conn.execute(text("UPDATE floating_allocations SET during = 'empty'"))
