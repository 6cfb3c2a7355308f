"""Many at once for a pool of storage, on a real Postgres: never more is promised than it has."""

from psycopg.errors import DeadlockDetected
from sqlalchemy import Engine, event

from climate.cloud.fake import FakeCloud
from climate.context import Climate
from climate.domain.errors import Conflict, NotEnoughHosts, NotEnoughStorage
from climate.domain.lease import Lease
from climate.service import storage_pools
from climate.service.journal import consistency_check
from tests.conftest import ADMIN, Clock
from tests.scenarios.test_races import at_once, kinds_of
from tests.service.capacity_factory import all_leases
from tests.service.lease_actions import hosts_wanted, make
from tests.service.storage_factory import overruns, pool, storage_wanted

WRITERS = 12


def test_more_writers_than_there_is_room_for(climate: Climate, clock: Clock) -> None:
    pool(climate, 100)
    for start in (1, 10, 20, 30):
        results = at_once(*[lambda start=start: make(climate, clock, storage_wanted(30), start=start)] * WRITERS)
        assert kinds_of(results) == {Lease, NotEnoughStorage}
        assert len([one for one in results if isinstance(one, Lease)]) == 3
    assert overruns(climate, all_leases(climate)) == []
    assert consistency_check.differences(climate) == []


def test_hosts_and_storage_in_any_order(climate: Climate, clock: Clock, engine: Engine) -> None:
    deadlocks: list[str] = []

    def note(context: object) -> None:
        if isinstance(getattr(context, "original_exception", None), DeadlockDetected):
            deadlocks.append("a deadlock")

    event.listen(engine, "handle_error", note)
    pool(climate, 100)
    parts = (hosts_wanted(2), storage_wanted(20))
    orders = [parts if place % 2 else parts[::-1] for place in range(WRITERS)]
    results = at_once(*[lambda wanted=wanted: make(climate, clock, *wanted) for wanted in orders])
    assert len([one for one in results if isinstance(one, Lease)]) == 4, "there are 8 hosts"
    assert kinds_of(results) <= {Lease, NotEnoughHosts, NotEnoughStorage}
    assert (overruns(climate, all_leases(climate)), deadlocks) == ([], [])


def test_a_pool_shrinks_or_removed_while_it_is_booked(climate: Climate, clock: Clock, cloud: FakeCloud) -> None:
    cloud.watch = None  # it is asked while another thread's transaction is open
    for place in range(6):
        known = pool(climate, 100, f"p{place}", f"class{place}")
        results = at_once(
            lambda place=place: make(climate, clock, storage_wanted(60, storage_class=f"class{place}")),
            lambda known=known: storage_pools.change(climate, ADMIN, str(known.id), {"capacity_gb": 50}),
            lambda known=known: storage_pools.remove(climate, ADMIN, str(known.id)),
        )
        booked = isinstance(results[0], Lease)
        assert isinstance(results[0], Lease | NotEnoughStorage)
        assert isinstance(results[2], Conflict) == booked
        assert not (booked and known.id in {one.id for one in storage_pools.listed(climate, ADMIN) if one.total == 50})
    assert overruns(climate, all_leases(climate)) == []
