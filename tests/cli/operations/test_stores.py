"""`climate stores run` gives a command the stores, and leaves none running that it started."""

import os
import sys
from pathlib import Path

import pytest

from climate.cli.operations.stores import surroundings
from climate.embedded import Stores, running
from climate.settings import Settings
from tests.cli.conftest import Cli

PYTHON = (sys.executable, "-c")
ANSWER = "import psycopg, sys; sys.exit(psycopg.connect('').execute('SELECT 42').fetchone()[0])"
"""A program that finds the database by the variables of libpq alone."""
PING = "import os, redis, sys; sys.exit(43 if redis.Redis.from_url(os.environ['CLIMATE_REDIS_URL']).ping() else 1)"
TOOLS = "import shutil, sys; sys.exit(44 if shutil.which('postgres') and shutil.which('climate') else 1)"


@pytest.fixture
def given(environ: dict[str, str], database_url: str) -> dict[str, str]:
    environ |= {"CLIMATE_DATABASE_URL": database_url, "CLIMATE_REDIS_URL": "redis://broker.example.org"}
    return environ


def test_the_command_finds_a_database_that_is_given_by_url(cli: Cli, given: dict[str, str]) -> None:
    assert cli("stores", "run", *PYTHON, ANSWER).code == 42
    assert not (Path(given["CLIMATE_HOME"]) / "postgres").exists()


def test_the_exit_code_is_that_of_the_command(cli: Cli, given: dict[str, str]) -> None:
    assert cli("stores", "run", "true", "--help").code == 0
    assert cli("stores", "run", "sh", "-c", "kill -9 $$").code == 137
    missing = cli("stores", "run", "no-such-program")
    assert missing.code == 127
    assert "no-such-program" in missing.err


def test_stores_without_urls_run_meanwhile(cli: Cli, environ: dict[str, str], tmp_path: Path) -> None:
    environ["CLIMATE_HOME"] = str(tmp_path / "own")
    assert [cli("stores", "run", *PYTHON, program).code for program in (ANSWER, PING, TOOLS)] == [42, 43, 44]
    assert running(tmp_path / "own") is None


def test_urls_become_variables_of_libpq() -> None:
    stores = Stores("postgresql+psycopg://one:p%40ss@db.example.org:6432/two?sslmode=require", "redis://broker")
    found = surroundings(Settings(database_url="given"), {"PATH": "/somewhere", "HOME": "/root"}, stores)
    libpq = {name: value for name, value in found.items() if name.startswith("PG")}
    assert libpq == {
        "PGHOST": "db.example.org",
        "PGPORT": "6432",
        "PGUSER": "one",
        "PGPASSWORD": "p@ss",
        "PGDATABASE": "two",
        "PGSSLMODE": "require",
    }
    assert (found["CLIMATE_REDIS_URL"], found["HOME"]) == ("redis://broker", "/root")
    assert found["PATH"].split(os.pathsep)[-1] == "/somewhere"


def test_an_invalid_url_is_refused(cli: Cli, given: dict[str, str]) -> None:
    given["CLIMATE_DATABASE_URL"] = "postgresql://host/name?nonsense=1"
    refused = cli("stores", "run", "true")
    assert refused.code == 1
    assert "CLIMATE_DATABASE_URL" in refused.err
