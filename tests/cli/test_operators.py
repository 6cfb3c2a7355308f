"""Commands that look past the API: where the stores are, and what is said when they are not."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import text

from climate.cli.errors import Failure
from climate.cli.operations.journal import with_stores
from climate.context import Climate
from climate.embedded.home import publish_web
from climate.embedded.reaper import started_at
from climate.service import readiness
from climate.settings import Settings
from climate.store import heartbeats
from climate.store.engine import database_time
from climate.store.hosts import drift
from tests.cli.conftest import Cli
from tests.cli.fake_server import Wire


@pytest.mark.parametrize("arguments", [("journal", "check"), ("journal", "rebuild")])
def test_without_a_database_the_journal_says_what_to_do(cli: Cli, arguments: tuple[str, ...]) -> None:
    ran = cli(*arguments)
    assert (ran.code, ran.out) == (8, "")
    assert "climate up" in ran.err


def test_a_url_that_is_given_is_used_as_it_is(tmp_path: Path) -> None:
    given = Settings(home=tmp_path, database_url="postgresql:///given")
    assert with_stores(given) is given
    with pytest.raises(Failure):
        with_stores(Settings(home=tmp_path))


def test_the_journal_wants_the_id_of_a_lease(cli: Cli) -> None:
    assert cli("journal", "show", "one").code == 2


def test_the_doctor_tells_all_that_is_wrong_and_never_a_password(cli: Cli, environ: dict[str, str], wire: Wire) -> None:
    environ |= {
        "CLIMATE_DATABASE_URL": "postgresql://one:hidden@127.0.0.1:1/none",
        "CLIMATE_REDIS_URL": "redis://:hidden@127.0.0.1:1/0",
        "CLIMATE_PORT": "1",
    }
    ran = cli("doctor", "-f", "json")
    found = {one["check"]: one["is"] for one in ran.data}
    assert ran.code == 1
    assert {check for check, level in found.items() if level == "BAD"} == {"database", "broker", "web"}
    assert found["sign-in"] == "good"
    assert "hidden" not in ran.out + ran.err


def test_a_terminal_without_the_characters_shows_them_all_the_same(environ: dict[str, str], wire: Wire) -> None:
    wire.add_lease("дом")
    command = [sys.executable, "-m", "climate", "lease", "list"]
    latin = {**environ, "PYTHONIOENCODING": "latin-1", "PATH": os.environ["PATH"]}
    ran = subprocess.run(command, env=latin, capture_output=True, cwd=Path(__file__).parents[2], check=False)
    assert ran.returncode == 0
    assert b"\\u0434\\u043e\\u043c" in ran.stdout


def test_the_doctor_tells_of_hosts_that_are_elsewhere(
    cli: Cli, environ: dict[str, str], climate: Climate, database_url: str
) -> None:
    environ["CLIMATE_DATABASE_URL"] = database_url

    def pools() -> tuple[str, str]:
        (one,) = [one for one in cli("doctor", "-f", "json").data if one["check"] == "pools"]
        return one["is"], one["says"]

    assert pools() == ("good", "the cloud has every host where the journal says")
    with climate.engine.begin() as conn:
        drift.note(conn, {3: "there is no host h3", 5: "lent to another"})
    assert pools() == ("fair", "2 hosts are elsewhere in the cloud, the first: host 3, there is no host h3")


@pytest.mark.parametrize(
    ("chosen", "finding"),
    [
        ("storage:pool,physical:host", ("good", "physical:host, storage:pool (CLIMATE_RESOURCE_PLUGINS)")),
        ("physical:nothing", ("BAD", "no plugin is installed for physical:nothing")),
        ("", ("good", "all that are installed; CLIMATE_RESOURCE_PLUGINS is not set")),
    ],
)
def test_the_doctor_names_the_resource_types(
    cli: Cli, environ: dict[str, str], wire: Wire, chosen: str, finding: tuple[str, str]
) -> None:
    environ["CLIMATE_RESOURCE_PLUGINS"] = chosen
    (one,) = [one for one in cli("doctor", "-f", "json").data if one["check"] == "plugins"]
    assert one["is"] == finding[0]
    assert finding[1] in one["says"]


def test_the_doctor_says_which_queues_nobody_reads_and_what_to_start(
    cli: Cli, environ: dict[str, str], climate: Climate, database_url: str
) -> None:
    environ |= {"CLIMATE_DATABASE_URL": database_url, "CLIMATE_RESOURCE_PLUGINS": "physical:host"}

    def workers() -> tuple[str, str]:
        (one,) = [one for one in cli("doctor", "-f", "json").data if one["check"] == "workers"]
        return one["is"], one["says"]

    with climate.engine.begin() as conn:
        conn.execute(text("CREATE TABLE alembic_version (version_num varchar(32))"))
        for version in readiness.newest_migrations():
            conn.execute(text("INSERT INTO alembic_version VALUES (:version)"), {"version": version})
    nobody = "no worker reads events (never heard of), events.physical:host (never heard of): start `climate worker`"
    assert workers() == ("BAD", nobody)
    with climate.engine.begin() as conn:
        now = database_time(conn)
        heartbeats.beat(conn, ["queue:events", "queue:events.physical:host"], "worker:a", now)
    assert workers() == ("good", "each queue is read, events by 1")


def test_the_doctor_finds_the_port_of_the_stack_that_runs(cli: Cli, environ: dict[str, str], wire: Wire) -> None:
    home = Path(environ["CLIMATE_HOME"])
    environ["CLIMATE_PORT"] = "1"
    publish_web(home, wire.url)

    def web() -> str:
        (one,) = [one for one in cli("doctor", "-f", "json").data if one["check"] == "web"]
        return str(one["says"])

    assert web().startswith("http://127.0.0.1:1 ")
    (home / "lock").write_text(f"{os.getpid()} {started_at(os.getpid())}\n")
    assert web().startswith(f"{wire.url}: ")


def test_the_doctor_passes_on_warnings_of_the_web_process(cli: Cli, environ: dict[str, str], wire: Wire) -> None:
    environ["CLIMATE_PUBLIC_URL"] = wire.url
    silent = {"ok": True, "warns": True, "detail": "1 of 2 compute services are silent"}
    polled = {"ok": True, "detail": "polled"}
    wire.answers = [(200, {"status": "ready", "checks": {"compute": silent, "zones": polled}}, {})]
    found = {one["check"]: (one["is"], one["says"]) for one in cli("doctor", "-f", "json").data}
    assert found["compute"] == ("fair", silent["detail"])
    assert found["zones"] == ("good", polled["detail"])
    assert found["web"][0] == "good"
