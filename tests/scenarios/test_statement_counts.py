"""How many statements a verb takes does not depend on how much there is."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, event

from climate.context import Climate
from climate.domain.errors import NotEnoughHosts
from climate.service.events import event_dispatch, events
from climate.service.hosts import inventory
from climate.service.leases import leases, reservation_aggregates
from climate.service.leases.leases import LeaseRequest
from climate.store.leases.leases import Listing
from tests.api.compute.api_clients import World, world
from tests.conftest import ADMIN, MEMBER, Clock
from tests.service.lease_actions import hosts_wanted, listed_events, make, run_due


@pytest.fixture
def there(cloud_database: str, tmp_path: Path) -> Iterator[World]:
    """An engine whose cloud is in the same database."""
    with world(cloud_database, tmp_path) as found:
        yield found


def tomorrow() -> LeaseRequest:
    start = datetime.now(UTC).replace(microsecond=0) + timedelta(days=1)
    return LeaseRequest("l", start, start + timedelta(hours=1), None, [hosts_wanted()])


@contextmanager
def counted(engine: Engine) -> Iterator[list[str]]:
    seen: list[str] = []

    def note(*executed: Any) -> None:
        seen.append(executed[2])

    event.listen(engine, "before_cursor_execute", note)
    try:
        yield seen
    finally:
        event.remove(engine, "before_cursor_execute", note)


def cost(engine: Engine, act: Callable[[], object]) -> int:
    with counted(engine) as seen:
        act()
    return len(seen)


def test_creating(climate: Climate, clock: Clock, engine: Engine) -> None:
    one = cost(engine, lambda: make(climate, clock, hosts_wanted(1), start=1, hours=1))
    assert cost(engine, lambda: make(climate, clock, hosts_wanted(6), start=2, hours=1)) == one
    for place in range(10):
        make(climate, clock, start=10 + place, hours=1)
    assert cost(engine, lambda: make(climate, clock, hosts_wanted(6), start=3, hours=1)) == one <= 4


def test_creating_over_the_bundled_cloud_takes_three_statements_and_one_commit(there: World) -> None:
    """With the database's own clock, and with the pool of the reservation, which is there at once."""
    engine = there.climate.engine
    commits: list[object] = []
    note = commits.append
    event.listen(engine, "commit", note)
    with counted(engine) as seen:
        lease = leases.create(there.climate, MEMBER, tomorrow())
    event.remove(engine, "commit", note)
    assert (len(seen), len(commits)) == (3, 1), seen
    (made,) = lease.reservations
    assert made.aggregate_id == there.climate.cloud.lease_pools()[str(made.id)].id
    assert reservation_aggregates.reconcile(there.climate) == 0
    assert leases.get(there.climate, MEMBER, lease.id) == lease


def test_a_new_lease_is_written_to_the_tables_that_it_has_rows_in(there: World) -> None:
    with counted(there.climate.engine) as seen:
        lease = leases.create(there.climate, MEMBER, tomorrow())
    assert "floating_allocations" not in seen[-1]
    assert "inventory_allocations" not in seen[-1]
    assert "DO UPDATE" not in seen[-1], "nothing of it can be there already"
    (made,) = lease.reservations
    assert {one.version for one in (lease.id, made.id, *(event.id for event in lease.events))} == {7}


def test_refused_allocation_takes_three_statements(there: World) -> None:
    """Read the limits, search, and count with the time when the request would fit."""
    order = tomorrow()
    leases.create(there.climate, MEMBER, replace(order, reservations=[hosts_wanted(2)]))
    with counted(there.climate.engine) as seen, pytest.raises(NotEnoughHosts, match="0 of them free; it would fit"):
        leases.create(there.climate, MEMBER, order)
    assert len(seen) == 3, seen


def test_no_pool_is_left_of_a_create_that_comes_to_nothing(there: World) -> None:
    order = tomorrow()
    leases.create(there.climate, MEMBER, order, dry_run=True)
    with pytest.raises(NotEnoughHosts):
        leases.create(there.climate, MEMBER, replace(order, reservations=[hosts_wanted(), hosts_wanted(2)]))
    assert there.climate.cloud.lease_pools() == {}


def test_claiming_and_sending(climate: Climate, clock: Clock, engine: Engine) -> None:
    make(climate, clock, start=0, hours=1)
    one = cost(engine, lambda: (event_dispatch.claim_due(climate, "poller"), event_dispatch.to_send(climate)))
    for place in range(12):
        make(climate, clock, hosts_wanted(2), start=2 + place, hours=0.5)
    clock.forward(hours=40)
    assert cost(engine, lambda: (event_dispatch.claim_due(climate, "poller"), event_dispatch.to_send(climate))) == one


def test_rescuing(climate: Climate, clock: Clock, engine: Engine) -> None:
    def lose(count: int) -> int:
        for _ in range(count):
            make(climate, clock, start=0, hours=1)
        event_dispatch.claim_due(climate, "poller")
        climate.cloud.failures["lend"] = ZeroDivisionError()  # type: ignore[attr-defined]
        for message in event_dispatch.to_send(climate):
            with pytest.raises(ZeroDivisionError):
                events.run(climate, message.event_id, message.token, "worker")
        clock.forward(seconds=30)
        return cost(engine, lambda: event_dispatch.rescue(climate, "poller"))

    assert lose(5) - lose(1) == 4, "one for each claim that is settled, all else together"


def test_listing(climate: Climate, clock: Clock, engine: Engine) -> None:
    for verb in (
        lambda: leases.listed(climate, MEMBER, Listing()),
        lambda: inventory.listed(climate, ADMIN),
        lambda: inventory.allocations(climate, ADMIN),
        lambda: listed_events(climate, None, 100),
    ):
        make(climate, clock, start=0, hours=0.1)
        few = cost(engine, verb)
        for _ in range(3):
            make(climate, clock, hosts_wanted(2), start=0, hours=0.1)
        assert cost(engine, verb) == few <= 2
        clock.forward(hours=1)
        run_due(climate)
