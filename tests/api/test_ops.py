"""Health, readiness and figures."""

import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from sqlalchemy import text

from api.ops.request_counters import Tally
from climate.domain.hosts.pools import Pool
from climate.identity import projects_and_users, roles
from climate.identity.audit_trail import SETUP
from climate.identity.store.assignments import Holder
from climate.service import readiness
from climate.settings import SettingError, Settings
from climate.store.engine import connect
from tests import flask_apps
from tests.api.echo_views import with_echo
from tests.identity.identity_factory import Asker, Place

BEAT = "INSERT INTO beats VALUES ('poller', 'p1', clock_timestamp() - interval '{} seconds')"

WAITING = """
    WITH made AS (
        INSERT INTO leases (id, name, project_id, user_id, start_date, end_date, status, degraded, deleting, gone,
                            version, created_at)
        VALUES (gen_random_uuid(), 'l', 'p', 'u', now(), now() + interval '1 day', 'PENDING', false, false, false, 1,
                now()) RETURNING id)
    INSERT INTO events (id, lease_id, seq, kind, due_at, run_at, status, attempts, token)
    SELECT gen_random_uuid(), id, 20, 'start_lease', now() - interval '70 s', now() - interval '70 s', 'UNDONE', 0, 0
    FROM made
"""
"""An event that has been due for more than a minute."""


@pytest.fixture
def beating(here: Place) -> Any:
    def beat(seconds: float) -> None:
        with here.identity.engine.begin() as conn:
            conn.execute(text("DELETE FROM beats"))
            conn.execute(text(BEAT.format(seconds)))

    yield beat
    with here.identity.engine.begin() as conn:
        conn.execute(text("DELETE FROM beats"))


def checks(here: Place, ahead: float = 0.0) -> dict[str, bool]:
    def wall() -> float:
        with here.identity.engine.connect() as conn:
            return float(conn.execute(text("SELECT extract(epoch FROM clock_timestamp())")).scalar_one()) + ahead

    return {check.name: check.ok for check in readiness.readiness(here.climate, wall)}


def test_alive_needs_nothing(app: Flask) -> None:
    assert Asker(app).ask("GET", "/healthz").json == {"status": "ok"}


def test_ready_tells_what_is_missing_and_names_no_address(app: Flask, here: Place) -> None:
    answer = Asker(app).ask("GET", "/readyz")
    assert answer.status_code == 503
    services = {"compute", "network"}  # checked as soon as one of them, also of another test, was heard of
    assert answer.json["checks"].keys() - services == {
        "database",
        "migrations",
        "poller",
        "events",
        "workers",
        "clock",
        "broker",
        "disk",
    }
    assert answer.json["checks"]["database"]["ok"]
    assert not answer.json["checks"]["poller"]["ok"]
    assert "postgres" not in answer.text


def test_no_worker_for_a_queue_is_not_ready_and_is_named(here: Place, beating: Any) -> None:
    beating(1)
    found = {check.name: check for check in readiness.readiness(here.climate)}["workers"]
    assert not found.ok
    assert found.detail == "no worker reads events (never heard of): start `climate worker`"
    seen = []
    for age in (1, 40, 50):
        with here.identity.engine.begin() as conn:
            conn.execute(text("DELETE FROM beats WHERE role LIKE 'queue:%'"))
            conn.execute(text(BEAT.replace("'poller'", "'queue:events'").format(age)))
        seen.append(checks(here)["workers"])
    assert seen == [True, True, False]


def test_only_the_checks_that_are_set_make_it_unready(here: Place) -> None:
    settings = replace(here.settings, ready_needs="database, clock")
    alone = Asker(flask_apps.app_of(replace(here, settings=settings, climate=replace(here.climate, settings=settings))))
    answer = alone.ask("GET", "/readyz")
    assert (answer.status_code, answer.json["status"]) == (200, "degraded")
    assert not answer.json["checks"]["workers"]["ok"]


def test_a_check_that_is_unknown_is_refused_with_those_there_are() -> None:
    with pytest.raises(SettingError, match="CLIMATE_READY_NEEDS: there is no check pollers; there are database,"):
        readiness.needed(Settings(ready_needs="database, pollers"))


def test_a_poller_is_ready_while_it_beats(here: Place, beating: Any) -> None:
    seen = []
    for age in (1, 7, 11, 3000):
        beating(age)
        seen.append(checks(here)["poller"])
    assert seen == [True, True, False, False]


def test_claims_that_fail_are_seen_by_what_stays_due(here: Place, beating: Any) -> None:
    """A walk to the end of what is due shows that what is left waits for something else."""
    seen = []
    with here.identity.engine.begin() as conn:
        conn.execute(text(WAITING))
    try:
        for ago in (1, 59, 61, None):
            beating(1)
            if ago is not None:
                with here.identity.engine.begin() as conn:
                    conn.execute(text(BEAT.replace("'poller'", "'caught-up'").format(ago)))
            seen.append(checks(here)["events"])
    finally:
        with here.identity.engine.begin() as conn:
            conn.execute(text("DELETE FROM events"))
            conn.execute(text("DELETE FROM leases"))
    assert seen == [True, True, False, False]
    assert checks(here)["events"]


def test_a_clock_that_is_off_is_not_ready(here: Place) -> None:
    assert [checks(here, ahead)["clock"] for ahead in (0.0, 1.0, -1.0, 3.0, -3.0)] == [True, True, True, False, False]


def test_without_a_database_it_is_not_ready_but_alive_and_says_only_that(here: Place) -> None:
    away = connect("postgresql:///nowhere?host=/nonexistent")
    app = with_echo(replace(here, climate=replace(here.climate, engine=away)))
    answer = Asker(app).ask("GET", "/readyz")
    assert answer.status_code == 503
    assert answer.json["checks"].keys() == {"database", "broker", "disk"}
    assert Asker(app).ask("GET", "/healthz").status_code == 200


def test_without_a_database_a_request_is_503(here: Place) -> None:
    away = connect("postgresql:///nowhere?host=/nonexistent")
    identity = replace(here.identity, engine=away, watch=type(here.identity.watch)(away))
    asker = Asker(with_echo(replace(here, identity=identity)), token="gAAAAAB")
    for answer in (asker.ask("POST", "/v1/echo", json={}), asker.sign_in("demo", "whatever")):
        assert (answer.status_code, answer.headers["Retry-After"]) == (503, "1")


def test_metrics_are_for_administrators_and_users_of_the_service_role(
    app: Flask, demo: Asker, signed_in: Callable[[str], Asker], here: Place
) -> None:
    """They have figures of all projects."""
    assert Asker(app).ask("GET", "/metrics").status_code == 401
    for asker in (demo, signed_in("reader")):
        answer = asker.ask("GET", "/metrics")
        assert (answer.status_code, "metrics:get" in answer.text) == (403, True)
    password = here.password("demo")
    scraper = projects_and_users.create_user(here.identity, SETUP, projects_and_users.NewUser("scraper", password))
    with here.identity.engine.connect() as conn:
        project = conn.scalar(text("SELECT id FROM identity_projects WHERE name = 'demo'"))
    roles.assign(here.identity, SETUP, Holder(scraper.id), project, "service")
    asker = Asker(app)
    assert asker.sign_in("scraper", password, "demo").status_code == 201
    assert asker.ask("GET", "/metrics").status_code == 200


def test_metrics_are_text(app: Flask, demo: Asker, signed_in: Callable[[str], Asker]) -> None:
    demo.ask("POST", "/v1/echo", json={})
    answer = signed_in("admin").ask("GET", "/metrics", headers={"Accept": "text/plain;version=0.0.4;q=0.5,*/*;q=0.1"})
    assert answer.content_type.startswith("text/plain")
    found = dict(re.findall(r"^(\w+(?:\{[^}]*\})?) (\S+)$", answer.text, re.MULTILINE))
    counted = 'climate_requests_total{method="POST",route="/reservation/v1/echo",status="200"}'
    assert float(found[counted]) >= 1
    seconds = 'climate_request_seconds_bucket{le="+Inf",method="POST",route="/reservation/v1/echo"}'
    assert found[seconds] == found[seconds.replace("_bucket", "_count").replace('le="+Inf",', "")]
    assert found["climate_database_up"] == "1.0"
    assert found["climate_events_due"] == "0.0"
    assert {found[f'climate_hosts{{pool="{pool}"}}'] for pool in Pool} == {"0.0"}
    assert found["climate_hosts_drifted"] == "0.0"
    assert [found[f"climate_hosts_{name}"] for name in ("switchable", "off", "power_failing")] == ["0.0"] * 3


def counts_elsewhere(folder: Path, times: int) -> None:
    """Another process, which is gone afterwards."""
    program = (
        "import sys, pathlib; from api.ops.request_counters import Tally; tally = Tally(pathlib.Path(sys.argv[1]))"
    )
    count = "; [tally.count('/r', 'GET', 200, 0.2) for _ in range(int(sys.argv[2]))]"
    subprocess.run([sys.executable, "-c", program + count, str(folder), str(times)], check=True)


def test_all_processes_are_counted_together_and_none_goes_back(tmp_path: Path) -> None:
    def total(tally: Tally) -> float:
        metrics = {metric.name: metric for metric in tally.collect()}
        return sum(sample.value for sample in metrics["climate_requests"].samples)

    mine = Tally(tmp_path)
    mine.count("/r", "GET", 200, 0.01)
    counts_elsewhere(tmp_path, times=3)
    assert total(mine) == 4
    second = Tally(tmp_path)  # of another app in this process
    second.count("/r", "GET", 500, 99.0)
    assert total(mine) == total(second) == 5


def test_a_new_start_begins_at_nothing(tmp_path: Path) -> None:
    counts_elsewhere(tmp_path, times=1)
    fresh = Tally(tmp_path)
    fresh.count("/r", "BREW", 200, 0.01)
    (sample,) = [sample for metric in fresh.collect() for sample in metric.samples if sample.name.endswith("_total")]
    assert (sample.value, sample.labels["method"]) == (1, "OTHER")


def test_the_document_is_openapi_3_1(app: Flask) -> None:
    document = Asker(app).ask("GET", "/openapi.json").json
    assert document["openapi"] == "3.1.0"
    assert set(document["components"]["schemas"]["Error"]["required"]) == {"error_message"}
