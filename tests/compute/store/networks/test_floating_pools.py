"""Rows of floating pools: whoever changes the addresses of one waits for others who do, and takes nobody's."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network
from itertools import product

import pytest
from sqlalchemy import Connection, text

from climate.compute.errors import Conflict
from climate.compute.network import floating_ips
from climate.compute.store.networks import floating_ips as rows
from climate.compute.store.networks import floating_pools, reserved_floating_ips
from tests.compute.cloud_factory import Place
from tests.lock_waits import await_blocked, blocked_or_over

OUTSIDE = IPv4Network("198.51.100.0/27")
FIRST, OTHER, BETWEEN = OUTSIDE[1], OUTSIDE[20], OUTSIDE[5]

Change = Callable[[Connection, str, IPv4Address], object]


@dataclass
class Pool:
    """A pool of two addresses, FIRST and OTHER."""

    here: Place
    id: str

    @contextmanager
    def begin(self) -> Iterator[Connection]:
        """Begin a transaction that waits for locks as long as it takes: a busy machine may be slow."""
        with self.here.compute.engine.begin() as conn:
            conn.execute(text("SET LOCAL lock_timeout = 0"))
            conn.execute(text("SET LOCAL statement_timeout = 0"))
            yield conn

    def run(self, change: Change, *addresses: IPv4Address) -> None:
        """Carry out a change for each address in one transaction."""
        with self.begin() as conn:
            for address in addresses:
                change(conn, self.id, address)

    def await_blocked(self, rival: "Future[None]", sessions: int = 1) -> None:
        await_blocked(self.here.compute.engine, rival.done, sessions)

    def addresses(self) -> dict[str, str | None]:
        """Return the addresses of the pool, and whose they are."""
        with self.here.compute.engine.connect() as conn:
            return {one.address: one.project_id for one in rows.listed(conn, free=True)}


@pytest.fixture
def pool(here: Place) -> Pool:
    with here.compute.engine.begin() as conn:
        made = floating_ips.create_pool(conn, "outside", OUTSIDE)
        for address in (FIRST, OTHER):
            floating_ips.add(conn, made, address, address)
    return Pool(here, made)


def add(conn: Connection, pool_id: str, address: IPv4Address) -> None:
    floating_ips.add(conn, pool_id, address, address)


def remove(conn: Connection, pool_id: str, address: IPv4Address) -> None:
    floating_ips.remove(conn, pool_id, address, address)


def drop(conn: Connection, pool_id: str, address: IPv4Address) -> None:
    floating_ips.drop_pool(conn, pool_id)


def make(conn: Connection, pool_id: str, address: IPv4Address) -> None:
    now = conn.execute(text("SELECT clock_timestamp()")).scalar_one()
    floating_ips.allocate_this(conn, "demo", pool_id, now, address=str(address))


def lend(conn: Connection, pool_id: str, address: IPv4Address) -> None:
    told = {"pool": "lent", "token": 1, "tags": [], "project_id": "demo"}
    assert reserved_floating_ips.lend(conn, {"address": str(address), "pool_id": pool_id, **told})


def take(conn: Connection, pool_id: str, address: IPv4Address) -> None:
    """Add an address, and allocate it."""
    add(conn, pool_id, address)
    now = conn.execute(text("SELECT clock_timestamp()")).scalar_one()
    floating_ips.allocate(conn, "demo", pool_id, now, address=str(address))


@pytest.mark.parametrize(("change", "rival"), [*product([add, remove, drop], [add, remove])])
def test_changes_of_one_pool_wait_for_each_other(pool: Pool, change: Change, rival: Change) -> None:
    with ThreadPoolExecutor(1) as threads, pool.begin() as conn:
        change(conn, pool.id, FIRST)
        later = threads.submit(pool.run, rival, OTHER)
        pool.await_blocked(later)
        conn.rollback()
    later.result()


@pytest.mark.parametrize("change", [add, remove])
def test_ranges_in_opposite_orders_meet_no_deadlock(pool: Pool, change: Change) -> None:
    """Two transactions change the same two ranges, each in its own order."""
    ranges = (FIRST, OTHER)
    if change is add:
        pool.run(remove, *ranges)
    with ThreadPoolExecutor(1) as threads, pool.begin() as conn:
        change(conn, pool.id, FIRST)
        later = threads.submit(pool.run, change, OTHER, FIRST)
        pool.await_blocked(later)
        change(conn, pool.id, OTHER)
        conn.commit()
        later.result()


@pytest.mark.parametrize("taking", [make, lend, take])
def test_an_address_that_is_taken_while_its_range_is_removed_stays(pool: Pool, taking: Change) -> None:
    """The removal waits for a row of its range, and meanwhile another address of the range appears."""
    with ThreadPoolExecutor(2) as threads, pool.begin() as conn:
        conn.execute(
            text("SELECT FROM compute_floating_addresses WHERE address = :one FOR UPDATE"), {"one": f"{FIRST}"}
        )
        removal = threads.submit(pool.run, _remove_all, FIRST)
        pool.await_blocked(removal)
        taken = threads.submit(pool.run, taking, BETWEEN)
        blocked_or_over(pool.here.compute.engine, taken.done, sessions=2)
        conn.rollback()
        removal.result()
        taken.result()
    assert pool.addresses() == {str(BETWEEN): "demo"}


def _remove_all(conn: Connection, pool_id: str, address: IPv4Address) -> None:
    floating_ips.remove(conn, pool_id, OUTSIDE[0], OUTSIDE[-1])


@pytest.mark.parametrize("removing", [remove, _remove_all, drop])
def test_an_address_that_is_being_allocated_prevents_its_removal(pool: Pool, removing: Change) -> None:
    """The allocation writes its row twice, so that Postgres checks its pool again meanwhile."""
    with ThreadPoolExecutor(1) as threads, pool.begin() as conn:
        now = conn.execute(text("SELECT clock_timestamp()")).scalar_one()
        mine = floating_ips.allocate(conn, "demo", pool.id, now, address=str(FIRST))
        removal = threads.submit(pool.run, removing, FIRST)
        pool.await_blocked(removal)
        rows.tag(conn, mine.id, ["mine"])
        conn.commit()
        with pytest.raises(Conflict, match=str(FIRST)):
            removal.result()
    assert pool.addresses() == {str(FIRST): "demo", str(OTHER): None}


def test_an_allocation_takes_none_that_is_being_removed(pool: Pool) -> None:
    with pool.begin() as conn:
        remove(conn, pool.id, FIRST)
        with pool.begin() as other:
            now = other.execute(text("SELECT clock_timestamp()")).scalar_one()
            assert floating_ips.allocate(other, "demo", pool.id, now).address == str(OTHER)
    assert pool.addresses() == {str(OTHER): "demo"}


def test_an_allocated_address_is_named_and_keeps_its_range(pool: Pool) -> None:
    pool.run(make, OTHER)
    with pool.begin() as conn:
        assert floating_pools.remove(conn, pool.id, str(FIRST), str(OTHER)) == str(OTHER)
    assert pool.addresses() == {str(FIRST): None, str(OTHER): "demo"}
