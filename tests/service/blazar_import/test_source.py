"""Blazar databases are read as they are, whatever the release and the kind of server."""

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from climate.domain.errors import InvalidInput, Unavailable
from climate.service.blazar_import import source
from climate.service.blazar_import.records import BlazarData, WantedAddresses, WantedHosts, WantedServers
from tests.databases import Databases
from tests.service.blazar_import.recordings import (
    HAS_MARIADB,
    RELEASES,
    mariadb,
    number,
    restore_mariadb,
    restore_postgresql,
)


@pytest.fixture(params=RELEASES)
def read(request: pytest.FixtureRequest, make_database: Databases) -> tuple[str, BlazarData]:
    return request.param, source.read(restore_postgresql(make_database(), request.param))


def at(hour: int, day: int = 1) -> datetime:
    return datetime(2030, 1, day, hour, tzinfo=UTC)


def test_hosts_have_their_capabilities(read: tuple[str, BlazarData]) -> None:
    release, data = read
    hosts = {host.name: host for host in data.hosts}
    assert len(hosts) == len(data.hosts) == 7
    assert hosts["compute-1.example"].extra == {"gpu_count": "2", "rack": "r1"}
    assert (hosts["compute-1.example"].id, hosts["compute-1.example"].vcpus) == ("1", 16)
    assert hosts["compute-4.example"].id == str(number("compute-4"))
    assert [name for name, host in hosts.items() if not host.reservable] == ["compute-6.example"]
    provided = {"trait:CUSTOM_FAST": "True", "resources:CUSTOM_GPU": "4"} if release == "18.0.0" else {}
    assert hosts["compute-3.example"].extra == {"rack": "r2", **provided}
    assert {one.name: one.private for one in data.properties} == {"gpu_count": False, "rack": True}


def test_leases_have_reservations_events_and_allocations(read: tuple[str, BlazarData]) -> None:
    release, data = read
    leases = {lease.name: lease for lease in data.leases}
    assert Counter(lease.status for lease in data.leases) == {
        "PENDING": 8 if release == "18.0.0" else 7,
        "ACTIVE": 3,
        "TERMINATED": 1,
        "ERROR": 1,
        "UPDATING": 1,
    }
    lease = leases["active-hosts"]
    assert (lease.id, lease.start, lease.end) == (str(number("active-hosts")), at(10), at(15))
    assert (lease.project_id, lease.user_id) == ("project-of-leases", "user-of-leases")
    assert [(event.kind, event.time, event.status) for event in lease.events] == [
        ("start_lease", at(10), "DONE"),
        ("before_end_lease", at(14), "UNDONE"),
        ("end_lease", at(15), "UNDONE"),
    ]
    (reservation,) = lease.reservations
    assert reservation.hosts == ("1",)
    assert reservation.wanted == WantedHosts("1-1", "", '[">=", "$gpu_count", "2"]', "default")


def test_reservations_of_servers_have_an_allocation_for_each_server(read: tuple[str, BlazarData]) -> None:
    (reservation,) = next(lease for lease in read[1].leases if lease.name == "active-servers").reservations
    assert Counter(reservation.hosts) == {"3": 2, str(number("compute-4")): 1}
    wanted = reservation.wanted
    assert isinstance(wanted, WantedServers)
    assert (wanted.vcpus, wanted.memory_mb, wanted.disk_gb, wanted.amount) == (2, 4096, 20, 3)
    assert wanted.affinity is (None if read[0] == "18.0.0" else False)


def test_reservations_of_addresses_have_their_addresses(read: tuple[str, BlazarData]) -> None:
    two = next(lease for lease in read[1].leases if lease.name == "two-kinds").reservations
    reservation = next(one for one in two if one.resource_type == "virtual:floatingip")
    assert reservation.wanted == WantedAddresses("external-network", 2, ("203.0.113.11",))
    known = {address.id: address.address for address in read[1].addresses}
    assert sorted(known[one] for one in reservation.addresses) == ["203.0.113.10", "203.0.113.11"]


def test_a_reservation_of_an_unknown_type_has_no_request(read: tuple[str, BlazarData]) -> None:
    (reservation,) = next(lease for lease in read[1].leases if lease.name == "of-another-plugin").reservations
    assert (reservation.resource_type, reservation.wanted) == ("network:port", None)


def test_a_database_of_something_else_is_refused(make_database: Databases) -> None:
    with pytest.raises(InvalidInput, match="has no table leases: wanted is the database of Blazar 10"):
        source.read(make_database())


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("sqlite:///blazar.sqlite", "of the kind sqlite cannot be read"),
        ("no url at all", "malformed"),
    ],
)
def test_other_urls_are_refused(url: str, says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        source.read(url)


def test_a_database_that_does_not_answer_is_named_without_its_password() -> None:
    with pytest.raises(Unavailable, match=r"someone:\*\*\*@127.0.0.1:1/blazar cannot be read") as refused:
        source.read("postgresql://someone:secret@127.0.0.1:1/blazar")
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("given", "driver"),
    [
        ("mysql+pymysql://b@h/blazar?charset=utf8", "mysql+pymysql"),
        ("mysql+mysqldb://b@h/blazar", "mysql+pymysql"),
        ("mariadb://b@h/blazar", "mysql+pymysql"),
        ("postgresql+psycopg2://b@h/blazar", "postgresql+psycopg"),
    ],
)
def test_urls_as_in_blazar_conf_are_read_by_the_drivers_here(given: str, driver: str) -> None:
    url = source.driver_url(given)
    assert (url.drivername, url.database, url.host) == (driver, "blazar", "h")


WITHOUT_DRIVER = """
import sys
sys.modules["pymysql"] = None
from climate.service.blazar_import import source
try:
    source.read("mysql://blazar@127.0.0.1/blazar")
except source.InvalidInput as refused:
    print(refused)
"""


def test_a_missing_driver_is_named() -> None:
    ran = subprocess.run([sys.executable, "-c", WITHOUT_DRIVER], check=True, capture_output=True, text=True)
    needed = "databases on mysql need the package pymysql: pip install 'climate-reservation[blazar]'"
    assert ran.stdout.strip() == needed


@pytest.fixture(scope="module")
def maria_socket() -> Iterator[Path]:
    if not HAS_MARIADB or find_spec("pymysql") is None:
        pytest.skip("needs mariadb-server and PyMySQL")
    with TemporaryDirectory(prefix="climate-maria-") as folder, mariadb(Path(folder)) as socket:
        yield socket


@pytest.mark.slow
@pytest.mark.parametrize("release", RELEASES)
def test_mariadb_and_postgresql_contain_the_same(maria_socket: Path, make_database: Databases, release: str) -> None:
    there = source.read(restore_mariadb(maria_socket, release))
    here = source.read(restore_postgresql(make_database(), release))

    def comparable(data: BlazarData) -> list[object]:
        """Without times of the recording, which MariaDB rounds, and the affinity that PostgreSQL's tables require."""
        dated = [replace(host, created_at=None, extra=dict(host.extra)) for host in data.hosts]
        plain = [lease for lease in data.leases if lease.name != "active-servers" or release == "18.0.0"]
        plain = [replace(one, reservations=tuple(sorted(one.reservations, key=lambda r: r.id))) for one in plain]
        return [dated, [replace(one, created_at=None) for one in data.addresses], plain, data.properties]

    assert comparable(there) == comparable(here)
    assert len(there.leases) > 10
