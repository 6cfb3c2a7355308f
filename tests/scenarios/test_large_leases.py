"""A lease of very many hosts takes as many statements as one of a few, from its creation to its end."""

from sqlalchemy import Engine

from climate.cloud.fake import FakeCloud
from climate.context import Climate
from climate.domain.facts import HostEnrolled
from climate.domain.status import LeaseStatus
from climate.store import blazar_import
from tests.campaign import length
from tests.conftest import ADMIN, Clock, cloud_host
from tests.scenarios.test_statement_counts import counted
from tests.service.lease_actions import claim, get, held, hosts_wanted, make, run

FEW, MANY = 4, length(1_000, 10_000)

COLUMNS = {
    "service_name": "s",
    "vcpus": 4,
    "memory_mb": 8192,
    "local_gb": 100,
    "cpu_info": "",
    "hypervisor_type": "fake",
    "hypervisor_version": 1,
    "availability_zone": None,
}


def register(climate: Climate, clock: Clock, count: int) -> None:
    """Register so many more hosts at once."""
    cloud = climate.cloud
    assert isinstance(cloud, FakeCloud)
    with climate.engine.begin() as conn:
        numbers = blazar_import.host_numbers(conn, [None] * count)
        facts = [[HostEnrolled(number, clock.time, f"m{number}", "reservation", {}, 1)] for number in numbers]
        blazar_import.add_hosts(conn, ADMIN, [COLUMNS] * count, facts)
        conn.exec_driver_sql("ANALYZE hosts")
    for number in numbers:
        cloud.hosts[f"m{number}"] = cloud_host(f"m{number}")
        cloud.enrol(f"m{number}", 1)


def life(climate: Climate, clock: Clock, engine: Engine, hosts: int) -> list[int]:
    """Lead a lease of so many hosts from creation to end; return the statements of each step."""
    with counted(engine) as created:
        lease = make(climate, clock, hosts_wanted(hosts), hours=1)
    assert len(held(lease)) == hosts
    clock.forward(hours=1)
    started = event_statements(climate, engine)
    assert get(climate, lease).status is LeaseStatus.ACTIVE
    clock.forward(hours=1)
    ended = event_statements(climate, engine)
    assert get(climate, lease).status is LeaseStatus.TERMINATED
    return [len(created), *started, *ended]


def event_statements(climate: Climate, engine: Engine) -> tuple[int, int]:
    """Claim and run the event that is due; return the statements of both."""
    with counted(engine) as claiming:
        (message,) = claim(climate)
    with counted(engine) as running:
        run(climate, message)
    return len(claiming), len(running)


def test_a_lease_of_many_hosts_takes_as_many_statements_as_one_of_a_few(
    climate: Climate, clock: Clock, engine: Engine
) -> None:
    created, *later = life(climate, clock, engine, FEW)
    register(climate, clock, MANY)
    # Many hosts are looked at again by a statement of its own.
    assert life(climate, clock, engine, MANY) == [created + 1, *later]
