"""The whole of climate on an ordinary PostgreSQL and Redis, given by URL: nothing of our own is started."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import psutil
import psycopg
import pytest
from psycopg import sql

from climate import embedded
from climate.settings import Settings
from tests.runner.conftest import Begin, Runner

pytestmark = [pytest.mark.slow, pytest.mark.by_url]
ROOT = Path(__file__).parents[2]
FIRST = ("python", "-m", "climate.runner.first_run", "--demo")


@pytest.fixture
def urls(tmp_path: Path) -> Iterator[dict[str, str]]:
    """The servers of CLIMATE_TEST_DATABASE_URL and CLIMATE_TEST_REDIS_URL, or else some that run apart."""
    given = Settings(
        database_url=os.environ.get("CLIMATE_TEST_DATABASE_URL", ""),
        redis_url=os.environ.get("CLIMATE_TEST_REDIS_URL", ""),
    )
    with embedded.run(tmp_path / "apart", given) as stores, scratch(stores.database_url) as database_url:
        yield {"CLIMATE_DATABASE_URL": database_url, "CLIMATE_REDIS_URL": stores.redis_url}


@contextmanager
def scratch(url: str) -> Iterator[str]:
    """The URL of a database of its own on a server, dropped in the end."""
    name = f"climate_test_{uuid4().hex[:12]}"
    before, _, after = url.partition("?")
    with psycopg.connect(url, autocommit=True) as conn:
        conn.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        yield f"{before.rpartition('/')[0]}/{name}" + (f"?{after}" if after else "")
        conn.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def climate(runner: Runner, *words: str) -> list[dict[str, str]]:
    """What a command of the member of the demo's project answers."""
    clouds = {"OS_CLIENT_CONFIG_FILE": str(runner.home / "clouds.yaml"), "OS_CLOUD": "climate-demo"}
    said = subprocess.run(
        [sys.executable, "-m", "climate", *words, "-f", "json"],
        env={"PATH": os.defpath, "CLIMATE_HOME": str(runner.home), "CLIMATE_PORT": str(runner.port), **clouds},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert said.returncode == 0, "\n".join([said.stderr, *runner.lines])
    answer = json.loads(said.stdout)
    return answer if isinstance(answer, list) else [answer]


def test_a_lease_lives_on_stores_that_are_given(begin: Begin, urls: dict[str, str]) -> None:
    procfile = (ROOT / "Procfile").read_text(encoding="utf-8")
    runner = begin(procfile, environ=urls, first=FIRST)
    runner.wait_for("^climate is ready at", seconds=300)
    names = {psutil.Process(child.pid).name() for child in psutil.Process(runner.process.pid).children()}

    created = climate(runner, "lease", "create", "by-url", "--hosts", "1", "--for", "1h", "--wait", "--timeout", "240s")
    listed = climate(runner, "lease", "list")

    assert created[0]["status"] == "ACTIVE"
    assert [lease["status"] for lease in listed] == ["ACTIVE"]
    assert names.isdisjoint({"postgres", "valkey-server", "redis-server"})
    assert not (runner.home / "postgres").exists()
    assert not (runner.home / "valkey").exists()
    assert runner.end(seconds=120) == 0
