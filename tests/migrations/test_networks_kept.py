"""Networks of the time before managers: addresses in use, interfaces and MACs are the same after the migration."""

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from ipaddress import IPv4Network
from pathlib import Path

import pytest
from alembic import command
from alembic.config import Config
from sqlalchemy import Engine, text

from climate.compute import build
from climate.compute.models.server import DELETE
from climate.compute.network.driver.recording import RecordingNetwork
from climate.compute.network.driver.registry import DriverCache
from climate.compute.network.service import network_service
from climate.compute.servers import actions
from climate.compute.virt.in_memory import MemoryDriver
from climate.database import schema_upgrade
from climate.store.engine import connect
from tests.compute.cloud_factory import TINY, Rings
from tests.compute.network.recorded_network import MUST_BE_EMPTY

NETWORK = "11111111-0000-4000-8000-000000000001"
WIDE = "11111111-0000-4000-8000-000000000002"
SERVERS = [f"22222222-0000-4000-8000-00000000000{number}" for number in (1, 2)]
IN_USE = [
    (NETWORK, "192.168.7.2", SERVERS[0], "33333333-0000-4000-8000-000000000001", "fa:16:3e:00:00:01"),
    (NETWORK, "192.168.7.5", SERVERS[1], "33333333-0000-4000-8000-000000000002", "fa:16:3e:00:00:02"),
    (WIDE, "172.16.3.9", SERVERS[0], "33333333-0000-4000-8000-000000000003", "fa:16:3e:00:00:03"),
]
"""Network, address, server, port and MAC of what was in use."""

NETWORKS = "INSERT INTO compute_networks (id, label, cidr, gateway) VALUES (:id, :label, :cidr, :gateway)"
POOL = """
    INSERT INTO compute_addresses (network_id, address, port_id, mac, server_id)
    VALUES (:network, :address, coalesce(CAST(:port AS uuid), gen_random_uuid()), :mac, :server)
"""
SERVER = """
    INSERT INTO compute_servers (id, name, project_id, user_id, status, flavor, vcpus, ram_mb, disk_mb, build_id,
                                 launch_index)
    VALUES (:id, 's', 'demo', 'dora', 'ERROR', CAST(:flavor AS jsonb), 1, 512, 1024, 'r-00000000', 0)
"""


def to(engine: Engine, revision: str) -> None:
    config = Config()
    config.set_main_option("script_location", str(schema_upgrade.scripts()))
    with engine.connect() as conn:
        config.attributes["connection"] = conn
        command.upgrade(config, revision)
        conn.commit()


@pytest.fixture(scope="module")
def migrated(make_database: Callable[..., str]) -> str:
    """Name of a database that was migrated while two networks had some of their addresses in use."""
    engine = connect(make_database(), pool_size=1)
    to(engine, "0005")
    with engine.begin() as conn:
        for server_id in SERVERS:
            conn.execute(text(SERVER), {"id": server_id, "flavor": json.dumps(asdict(TINY))})
        for network, label, cidr in ((NETWORK, "private", "192.168.7.0/28"), (WIDE, "wide", "172.16.0.0/22")):
            hosts = list(IPv4Network(cidr).hosts())
            given = {"id": network, "label": label, "cidr": cidr, "gateway": str(hosts[0])}
            conn.execute(text(NETWORKS), given)
            used = {address: (server, port, mac) for of, address, server, port, mac in IN_USE if of == network}
            for place, host in enumerate(hosts[1:]):
                unused = (None, None, f"fa:16:3e:{network[-1]}0:{place >> 8:02x}:{place & 255:02x}")
                server, port, mac = used.get(str(host), unused)
                row = {"network": network, "address": str(host), "port": port, "mac": mac, "server": server}
                conn.execute(text(POOL), row)
    to(engine, "head")
    engine.dispose()
    return str(engine.url.database)


@pytest.fixture
def kept(make_database: Callable[..., str], migrated: str) -> Iterator[Engine]:
    """A copy of it."""
    engine = connect(make_database(migrated), pool_size=3)
    yield engine
    engine.dispose()


def rows(engine: Engine, query: str) -> list[tuple[object, ...]]:
    with engine.connect() as conn:
        return [tuple(row) for row in conn.execute(text(query))]


def test_addresses_interfaces_and_macs_survive(kept: Engine) -> None:
    found = rows(
        kept,
        """SELECT v.network_id::text, host(a.address), v.server_id::text, v.id::text, v.mac
           FROM compute_vifs v JOIN compute_addresses a ON a.vif_id = v.id ORDER BY v.id""",
    )
    assert found == IN_USE
    assert rows(kept, "SELECT count(*) FROM compute_addresses WHERE server_id IS NOT NULL") == [(3,)]
    places = rows(kept, f"SELECT place FROM compute_vifs WHERE server_id = '{SERVERS[0]}' ORDER BY network_id")
    assert places == [(0,), (1,)]
    assert {what: found for what, query in MUST_BE_EMPTY.items() if (found := rows(kept, query))} == {}


def test_they_are_flat_networks_with_their_ends_reserved(kept: Engine) -> None:
    query = "SELECT label, manager, host(dhcp_start), project_id, vlan FROM compute_networks ORDER BY label"
    assert rows(kept, query) == [
        ("private", "flat", "192.168.7.2", None, None),
        ("wide", "flat", "172.16.0.2", None, None),
    ]
    reserved = "SELECT host(address) FROM compute_addresses WHERE reserved ORDER BY address"
    ends = [f"172.16.{last}" for last in ("0.0", "0.1", "3.255")] + [f"192.168.7.{last}" for last in (0, 1, 15)]
    assert rows(kept, reserved) == [(end,) for end in ends]


def test_the_network_service_takes_them_over_and_a_server_goes_as_any_other(kept: Engine, tmp_path: Path) -> None:
    wire = RecordingNetwork()
    made = build(kept, home=tmp_path, service_host="service-1", cast=Rings(), driver=MemoryDriver())
    compute = replace(made, network_drivers=DriverCache(lambda _: wire))
    for _ in range(3):
        network_service.run_round(compute)
    assert rows(kept, "SELECT DISTINCT host, injected FROM compute_networks") == [("service-1", True)]
    assert wire.serving == {}, "flat: somebody else does it"
    actions.request_task(compute, SERVERS[0], DELETE)
    assert rows(kept, "SELECT server_id::text FROM compute_addresses WHERE server_id IS NOT NULL") == [(SERVERS[1],)]
    assert rows(kept, "SELECT server_id::text FROM compute_vifs") == [(SERVERS[1],)]
