"""Numbers of imported hosts, and what exists already."""

from datetime import timedelta
from uuid import UUID, uuid4

from sqlalchemy import Engine, text

from climate.context import Climate
from climate.domain.facts import HostEnrolled
from climate.domain.hosts.shared_capacity import Size
from climate.service.hosts import inventory
from climate.service.leases import leases
from climate.service.leases.leases import LeaseRequest
from climate.store import blazar_import
from tests.conftest import ADMIN, MEMBER, Clock


def test_numbers_are_kept_where_they_are_free_and_new_ones_are_higher(climate: Climate) -> None:
    with climate.engine.begin() as conn:
        assert blazar_import.host_numbers(conn, [100, 3, None, 99]) == [100, 101, 102, 99]
    with climate.engine.begin() as conn:
        assert blazar_import.host_numbers(conn, [None]) == [104], "one is skipped: no number is given twice"


def test_hosts_are_registered_together_and_later_ones_get_other_numbers(climate: Climate, clock: Clock) -> None:
    own = {"service_name": "s", "vcpus": 1, "memory_mb": 1, "local_gb": 1, "cpu_info": ""}
    own |= {"hypervisor_type": "q", "hypervisor_version": 1, "availability_zone": None}
    facts = [[HostEnrolled(n, clock.time, f"new{n}", "reservation", {"gpu": str(n)}, 1)] for n in (50, 51)]
    with climate.engine.begin() as conn:
        blazar_import.host_numbers(conn, [50, 51])
        blazar_import.add_hosts(conn, ADMIN, [own, own], facts)
        blazar_import.name_properties(conn, ["gpu", "authorized_projects"], {"gpu"}, clock.time)
    assert inventory.get(climate, ADMIN, "51").extra == {"gpu": "51"}
    private = {one.name: one.private for one in inventory.properties(climate, ADMIN, private=True)}
    assert (private["gpu"], private["authorized_projects"], private["gpu_count"]) == (True, True, False)
    with climate.engine.begin() as conn:
        assert blazar_import.host_numbers(conn, [None])[0] > 51


def test_leases_are_known_whatever_became_of_them(climate: Climate, clock: Clock) -> None:
    wanted = {"resource_type": "physical:host", "min": 1, "max": 1}
    start = clock.time + timedelta(hours=1)
    made = [
        leases.create(climate, MEMBER, LeaseRequest(name, start, start + timedelta(hours=1), reservations=[wanted]))
        for name in "ab"
    ]
    leases.delete(climate, MEMBER, made[1].id)
    with climate.engine.connect() as conn:
        known = blazar_import.existing_leases(conn, [made[0].id, made[1].id, uuid4()])
        held = blazar_import.host_allocations(conn, range(1, 9))
    assert known == {lease.id for lease in made}
    (host,) = made[0].reservations[0].hosts
    assert held == [(host, made[0].id, made[0].period, None)]


def test_shares_of_hosts_are_held_with_their_size(climate: Climate, clock: Clock) -> None:
    size = {"vcpus": 2, "memory_mb": 1024, "disk_gb": 10}
    wanted = {"resource_type": "virtual:instance", "amount": 2, "affinity": True, **size}
    start = clock.time + timedelta(hours=1)
    order = LeaseRequest("a", start, start + timedelta(hours=1), reservations=[wanted])
    made = leases.create(climate, MEMBER, order)
    with climate.engine.connect() as conn:
        assert blazar_import.host_allocations(conn, range(1, 9)) == [
            (made.reservations[0].hosts[0], made.id, made.period, Size(4, 2048, 20))
        ]
        assert blazar_import.host_allocations(conn, []) == []


def test_floating_ips_keep_their_ids(engine: Engine, clock: Clock) -> None:
    number = UUID(int=5)
    row = {"network_id": "net", "subnet_id": "sub", "address": "203.0.113.5", "created_at": clock.time}
    with engine.begin() as conn:
        made = blazar_import.add_addresses(conn, [{"id": number, **row}])
        assert blazar_import.registered_addresses(conn) == {("net", "203.0.113.5"): made[number]}
        assert blazar_import.address_allocations(conn, [made[number]]) == []
        assert blazar_import.add_addresses(conn, []) == {}


def test_statements_of_an_import_may_take_minutes(engine: Engine) -> None:
    with engine.begin() as conn:
        blazar_import.extend_timeout(conn)
        assert conn.scalar(text("SHOW statement_timeout")) == "10min"
    with engine.begin() as conn:
        assert conn.scalar(text("SHOW statement_timeout")) == "5s"
