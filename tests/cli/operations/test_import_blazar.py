"""climate import blazar, from a database that real Blazar filled into a bundled cloud."""

from pathlib import Path

import psycopg
import pytest

from climate import bootstrap
from climate.compute.models.node import NodeSpec
from climate.compute.nodes import nodes_file, services
from climate.settings import Settings
from tests.cli.conftest import Cli
from tests.databases import Databases
from tests.service.blazar_import.recordings import number, restore_postgresql

NAMES = ("compute-1", "compute-2", "compute-3", "compute-4", "compute-6", "compute-7")


@pytest.fixture(scope="module")
def blazar_url(make_database: Databases) -> str:
    return restore_postgresql(make_database(), "10.0.0")


@pytest.fixture
def environ(environ: dict[str, str], make_database: Databases) -> dict[str, str]:
    return {**environ, "CLIMATE_DATABASE_URL": make_database()}


@pytest.fixture
def cloud(environ: dict[str, str], tmp_path: Path) -> None:
    """A bundled cloud with the hosts of the recording, in the pools that Blazar put them into."""
    nodes_file.write(tmp_path, [NodeSpec(f"{name}.example", 16, 32768, 500) for name in NAMES])
    settings = Settings(home=tmp_path, database_url=environ["CLIMATE_DATABASE_URL"])
    bootstrap.migrate(settings)
    deployment = bootstrap.build(settings)
    try:
        services.refresh(deployment.compute)
        for name in NAMES:
            deployment.climate.cloud.enrol(f"{name}.example", 1)
        deployment.climate.cloud.lend(str(number("active-hosts 0")), "project-of-leases", ["compute-1.example"], 1)
    finally:
        deployment.climate.engine.dispose()


def delete_refused(url: str) -> None:
    """Follow the remedies: delete what cannot be imported."""
    names = ["being-updated", "of-another-plugin", "overlapping", "on-a-vanished-host"]
    leases = [str(number(name)) for name in names]
    reservations = [str(number(f"{name} 0")) for name in names]
    with psycopg.connect(url.replace("+psycopg", ""), autocommit=True) as conn:
        for table in ("computehost_reservations", "computehost_allocations"):
            conn.execute(f"DELETE FROM {table} WHERE reservation_id = ANY (%s)", [reservations])
        for table, column in (("reservations", "lease_id"), ("events", "lease_id"), ("leases", "id")):
            conn.execute(f"DELETE FROM {table} WHERE {column} = ANY (%s)", [leases])
        conn.execute("DELETE FROM computehosts WHERE id = '5'")


@pytest.mark.usefixtures("cloud")
def test_blazar_is_imported_into_a_cloud(cli: Cli, blazar_url: str) -> None:
    command = ("import", "blazar", "--database", blazar_url, "-f", "json")
    dry = cli(*command, "--dry-run")
    assert dry.code == 1, "something cannot be imported"
    assert "to import: 6 hosts, 3 floating IPs, 9 leases with 12 allocations; here already: 0 leases" in dry.err
    assert {one["name"] for one in dry.data} == {
        *("vanished.example", "being-updated", "of-another-plugin", "overlapping", "on-a-vanished-host"),
    }
    assert all(one["reason"] and one["remedy"] for one in dry.data)
    done = cli(*command)
    assert (done.code, done.data) == (1, dry.data)
    assert "\nimported: 6 hosts" in f"\n{done.err}"
    assert '"message": "5 objects cannot be imported"' in done.err
    assert cli("journal", "check").code == 0
    shown = cli("journal", "show", str(number("active-hosts")), "-f", "json").data
    assert [one["kind"] for one in shown] == ["LeaseCreated", "EventClaimed", "EventFinished"]
    assert shown[0]["actor"]["user_id"] == "climate:import"

    again = cli(*command)
    assert (again.code, "--resume" in again.err) == (5, True)
    resumed = cli(*command, "--resume")
    assert "imported: 0 hosts, 0 floating IPs, 0 leases with 0 allocations; here already: 9 leases" in resumed.err

    delete_refused(blazar_url)
    rest = cli(*command, "--resume")
    assert (rest.code, rest.data) == (0, [])


def test_other_databases_are_refused(cli: Cli) -> None:
    ran = cli("import", "blazar", "--database", "oracle://db/blazar")
    assert (ran.code, "wanted is mysql://, mariadb:// or postgresql://" in ran.err) == (2, True)
    ran = cli("import", "blazar", "--database", "postgresql://u:secret@127.0.0.1:1/blazar")
    assert (ran.code, "cannot be read" in ran.err, "secret" in ran.err) == (8, True, False)
