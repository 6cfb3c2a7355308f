"""No route, round or claim reads the rows of leases that are over, however many there are."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from benchmarks import history, seed
from benchmarks.history import Act, rows_read
from climate.bootstrap import Deployment, build
from climate.compute.store.tables import metadata
from climate.database.connections import reading
from climate.settings import Settings
from climate.store.hosts import pools

pytestmark = pytest.mark.slow

OVER = 8000
"""Leases that are over.  Fewer rows than that are read by everything that is asked."""

LIMITS = ("?limit=1", "")
ROWS = OVER // 4
"""Rows that an act reads at most of one table: fewer than there are of any sort of lease that is over."""


@pytest.fixture(scope="module")
def deployment(make_database: Callable[..., str], engine_template: str, tmp_path_factory: Any) -> Iterator[Deployment]:
    """A deployment with some leases in force among many that are over."""
    home: Path = tmp_path_factory.mktemp("home")
    settings = Settings(home=home, database_url=make_database(engine_template), redis_url="redis://unused")
    made = history.furnished(build(replace(settings, metrics_required=False), pool_size=2))
    metadata.create_all(made.climate.engine)
    seed.copy(made.climate.engine, history.live(made.climate), OVER, history.AGE, history.SPREAD)
    seed.migrations(made.climate.engine, OVER)
    seed.settle(made.climate.engine)
    yield made
    made.climate.engine.dispose()


def test_most_leases_are_over(deployment: Deployment) -> None:
    with deployment.climate.engine.connect() as conn:
        count = text("SELECT count(*) FILTER (WHERE gone), count(*) FILTER (WHERE status = 'TERMINATED') FROM leases")
        gone, terminated = conn.execute(count).one()
    assert gone > OVER / 2
    assert terminated >= ROWS


def test_what_is_asked_reads_no_more_rows_than_it_answers(deployment: Deployment) -> None:
    acts = history.acts(deployment)
    found = {name: _most_read(deployment, act) for name, act in acts.items()}
    assert [f"{name}: {read}" for name, read in found.items() if read and max(read.values()) >= ROWS] == []


def _most_read(deployment: Deployment, act: Act) -> dict[str, int]:
    act()  # connections and plans are made once
    with rows_read(deployment.climate.engine) as read:
        act()
    return read


def test_a_page_of_the_calendar_reads_the_hosts_of_the_page_only(deployment: Deployment) -> None:
    acts = history.acts(deployment)
    page, whole = (_most_read(deployment, acts[f"GET /reservation/v1/os-hosts/allocations{limit}"]) for limit in LIMITS)
    assert page["hosts"] <= 4
    assert page.get("allocations", 0) < whole["allocations"] / 2  # the first host may have none


def test_the_next_promise_of_each_host_is_read_alone(deployment: Deployment) -> None:
    climate = deployment.climate
    with reading(climate.engine) as conn:
        count = text("SELECT host FROM allocations WHERE state = 'held' GROUP BY host ORDER BY count(*) DESC LIMIT 1")
        host, now = conn.scalar(count), climate.now(conn)
        pools.following(conn, [host], now)
    for n in range(20):
        history.make(climate, f"after-{n}", days=60 + n, host=host)
    with rows_read(climate.engine) as read, reading(climate.engine) as conn:
        assert pools.following(conn, [host], now)[host].lease_name is not None
    assert read["allocations"] <= 4
