"""Addresses that somebody could keep, lose or never give back by doing two things in an unusual order or at once."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from ipaddress import IPv4Address, IPv4Network
from typing import Any

import pytest
from sqlalchemy import Connection, text

from climate.compute.errors import Conflict, NotFound
from climate.compute.network import floating_ips
from climate.compute.nodes import services
from climate.compute.servers.interfaces import interfaces
from climate.compute.servers.interfaces.interfaces import Requester
from climate.compute.store.networks import reserved_floating_ips
from tests.compute.network.conftest import Cloud
from tests.compute.network.recorded_network import Books
from tests.system.stack import await_so

ONE = IPv4Address("172.24.4.3")
BY = {"project_id": "demo", "user_id": "somebody", "request_id": "req-1"}


def blocked(there: Books) -> bool:
    """Whether somebody waits for another's lock."""
    asked = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    with there.compute.engine.connect() as conn:
        return bool(conn.execute(text(asked)).scalar())


def test_what_came_with_a_server_goes_with_it_and_is_kept_by_nobody(cloud: Cloud) -> None:
    there = cloud(manager="flat_dhcp", floating_range=IPv4Network("192.0.2.0/29"), auto_assign=True)
    services.furnish(there.compute)
    server = there.boot()[0]
    with there.compute.engine.begin() as conn:
        found = floating_ips.by_address(conn, "192.0.2.1")
        with pytest.raises(Conflict, match="delete the server"):
            floating_ips.disassociate(conn, found, there.clock.time)
    interfaces.unplug(there.compute, Requester(server.id, None, BY), there.vifs(server.id)[0].id)
    assert there.place.count("compute_floating_addresses", "project_id IS NOT NULL OR auto_assigned") == 0
    assert there.wrong() == []


def test_a_floating_address_that_moves_away_stays_where_it_went_when_its_old_interface_is_taken(cloud: Cloud) -> None:
    there = cloud(manager="flat_dhcp")
    there.served("private", "10.0.0.0/28")
    there.pool()
    servers = there.boot(2)
    old, new = (there.fixed(server.id)[0] for server in servers)
    got = there.floating(fixed_address=old)
    taken = (there.compute, Requester(servers[0].id, None, BY), there.vifs(servers[0].id)[0].id)
    with ThreadPoolExecutor(1) as threads:
        with there.compute.engine.begin() as conn:
            floating_ips.disassociate(conn, floating_ips.get(conn, got.id), there.clock.time)
            to = floating_ips.fixed(conn, "demo", address=new)
            floating_ips.associate(conn, floating_ips.get(conn, got.id), to, there.clock.time)
            unplugged = threads.submit(interfaces.unplug, *taken)
            await_so(lambda: blocked(there), 30, "the other's waiting")
        unplugged.result(30)
    with there.compute.engine.begin() as conn:
        assert floating_ips.get(conn, got.id).fixed_address == new
    assert there.wrong() == []


ADDITIONS: list[Callable[[Books, Connection, str], object]] = [
    lambda there, conn, pool: floating_ips.add(conn, pool, ONE, ONE),
    lambda there, conn, pool: floating_ips.allocate_this(conn, "demo", pool, there.clock.time, address=str(ONE)),
    lambda there, conn, pool: reserved_floating_ips.lend(conn, loan(pool)),
]


def loan(pool_id: str) -> dict[str, Any]:
    told = {"pool": "lent", "token": 1, "tags": [], "project_id": "demo"}
    return {"address": str(ONE), "pool_id": pool_id, **told}


@pytest.mark.parametrize("place", range(len(ADDITIONS)))
def test_nobody_puts_an_address_into_a_pool_that_is_being_dropped(cloud: Cloud, place: int) -> None:
    there = cloud(manager="flat_dhcp")
    pool = there.pool()
    with there.compute.engine.begin() as conn:
        floating_ips.remove(conn, pool, ONE, ONE)

    def put() -> object:
        with there.compute.engine.begin() as conn:
            return ADDITIONS[place](there, conn, pool)

    with ThreadPoolExecutor(1) as threads:
        with there.compute.engine.begin() as conn:
            floating_ips.drop_pool(conn, pool)
            late = threads.submit(put)
            await_so(lambda: blocked(there), 30, "the other's waiting")
        refused = late.exception(30)
    assert isinstance(refused, NotFound | Conflict) if place < 2 else late.result() is False
    assert there.place.count("compute_floating_addresses") == 0


@pytest.mark.parametrize("place", range(len(ADDITIONS)))
def test_a_pool_is_not_dropped_under_an_address_that_is_put_into_it(cloud: Cloud, place: int) -> None:
    there = cloud(manager="flat_dhcp")
    pool = there.pool()
    with there.compute.engine.begin() as conn:
        floating_ips.remove(conn, pool, ONE, ONE)

    def drop() -> None:
        with there.compute.engine.begin() as conn:
            floating_ips.drop_pool(conn, pool)

    with ThreadPoolExecutor(1) as threads:
        with there.compute.engine.begin() as conn:
            ADDITIONS[place](there, conn, pool)
            late = threads.submit(drop)
            await_so(lambda: blocked(there), 30, "the other's waiting")
        refused = late.exception(30)
    assert isinstance(refused, Conflict) if place else refused is None
