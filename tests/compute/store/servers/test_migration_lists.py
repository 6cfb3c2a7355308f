"""Lists of migrations: no filter and no pair of filters reads more rows than a page, however many there are."""

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from itertools import combinations
from typing import Any

import pytest
from sqlalchemy import Engine, text

from benchmarks.history import rows_read
from climate.compute.models.migration import Migration
from climate.compute.store.servers import migration_lists
from climate.compute.store.tables import metadata
from climate.database.connections import reading
from climate.store.engine import connect

MANY = 20_000
PAGE = 10
ROWS = 100
"""Maximum number of rows that a page reads, in all of its parts; each filter matches thousands."""
BLOCKS = 100
"""Maximum number of blocks; the index entries of one filter have more. Entries that an index skips count here."""

BLOCKS_READ = text("""
    SELECT heap_blks_read + heap_blks_hit + idx_blks_read + idx_blks_hit FROM pg_statio_user_tables
    WHERE relname = 'compute_migrations'
""")

# Halves and thirds of all rows that never meet: most pairs match nothing though each filter matches thousands of rows.
# Times are a second apart; two migrations were under way for long.
FILL = text("""
    INSERT INTO compute_migrations (server_id, project_id, user_id, type, status, source_host, source_node, dest_host,
                                    dest_node, dest_ip, old_flavor, new_flavor, created_at, updated_at)
    SELECT gen_random_uuid(), 'demo', 'dora', CASE WHEN n % 2 = 0 THEN 'migration' ELSE 'resize' END,
           CASE WHEN n % 2 = 0 THEN 'confirmed' ELSE 'error' END, CASE WHEN n % 2 = 0 THEN 'a' ELSE 'b' END, 'n',
           CASE WHEN n % 2 = 0 THEN 'a' ELSE 'c' END, 'n', '', '1', '1', at,
           CASE WHEN n IN (10, 11) THEN at + interval '1 day' ELSE at END
    FROM (SELECT n, CAST(:first AS timestamptz) + make_interval(secs => n) AS at
          FROM generate_series(1, :count) AS n) AS made
""")
FIRST = datetime.fromisoformat("2026-01-01T00:00:00+00:00")
LAST = FIRST + timedelta(seconds=MANY)

VALUES: Mapping[str, tuple[Any, ...]] = {
    "server_id": ("00000000-0000-4000-8000-000000000000",),
    "status": ("confirmed", "error", "nothing"),
    "type": ("migration", "resize", "evacuation"),
    "source_host": ("a", "b", "nobody"),
    "host": ("a", "b", "c", "nobody"),
    "changed_since": (FIRST, FIRST + timedelta(seconds=MANY / 2), LAST, LAST + timedelta(days=9)),
    "changed_before": (FIRST - timedelta(days=1), FIRST + timedelta(seconds=30), LAST),
}
SINGLES = [{name: value} for name, values in VALUES.items() for value in values]
PAIRS = [one | other for one, other in combinations(SINGLES, 2) if one.keys() != other.keys()]


@pytest.fixture(scope="module")
def engine(make_database: Callable[..., str], engine_template: str) -> Iterator[Engine]:
    made = connect(make_database(engine_template), pool_size=1)
    metadata.create_all(made)
    with made.begin() as conn:
        conn.exec_driver_sql("SET LOCAL statement_timeout = 0")
        conn.execute(FILL, {"first": FIRST, "count": MANY})
    with made.connect().execution_options(isolation_level="AUTOCOMMIT") as conn:
        conn.exec_driver_sql("SET statement_timeout = 0")
        conn.exec_driver_sql("VACUUM ANALYZE compute_migrations")
        conn.exec_driver_sql("RESET statement_timeout")
    yield made
    made.dispose()


def expected(engine: Engine, wanted: Mapping[str, Any]) -> list[int]:
    """The ids of the first page, by a filter of all rows."""
    checks = {
        "host": "(source_host = :host OR dest_host = :host)",
        "changed_since": "updated_at >= :changed_since",
        "changed_before": "updated_at <= :changed_before",
        "server_id": "server_id = CAST(:server_id AS uuid)",
    }
    where = " AND ".join(checks.get(name, f"{name} = :{name}") for name in wanted)
    query = f"SELECT id FROM compute_migrations WHERE {where} ORDER BY created_at DESC, id DESC LIMIT {PAGE}"
    with reading(engine) as conn:
        return list(conn.scalars(text(query), wanted))


def page(engine: Engine, wanted: Mapping[str, Any], after: Migration | None = None) -> list[int]:
    with reading(engine) as conn:
        return [one.id for one in migration_lists.listed(conn, wanted, PAGE, after)]


def too_much(engine: Engine, wanted: Mapping[str, Any], after: Migration | None = None) -> str | None:
    """How many rows and blocks a list reads, if those are too many."""
    page(engine, wanted, after)
    before = blocks_read(engine)
    with rows_read(engine) as read:
        page(engine, wanted, after)
    rows, blocks = sum(read.values()), blocks_read(engine) - before
    return f"{wanted}: {rows} rows, {blocks} blocks" if rows > ROWS or blocks > BLOCKS else None


def blocks_read(engine: Engine) -> int:
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as conn:
        conn.execute(text("SELECT pg_stat_force_next_flush()"))
        return int(conn.execute(BLOCKS_READ).scalar_one())


@pytest.mark.parametrize("wanted", [{}, *SINGLES], ids=str)
def test_a_filter_reads_a_page_only(engine: Engine, wanted: Mapping[str, Any]) -> None:
    assert too_much(engine, wanted) is None


def test_pairs_of_filters_read_a_page_only(engine: Engine) -> None:
    assert [found for wanted in PAIRS if (found := too_much(engine, wanted))] == []


def test_filters_and_pairs_list_what_matches_newest_first(engine: Engine) -> None:
    assert [wanted for wanted in (*SINGLES, *PAIRS) if page(engine, wanted) != expected(engine, wanted)] == []


def test_pages_follow_each_other_under_every_filter(engine: Engine) -> None:
    for wanted in SINGLES:
        with reading(engine) as conn:
            shown = migration_lists.listed(conn, wanted, PAGE)
            more = migration_lists.listed(conn, wanted, 2 * PAGE)
            rest = migration_lists.listed(conn, wanted, PAGE, shown[-1]) if shown else []
        assert [*shown, *rest] == more


def test_late_pages_read_no_more_than_the_first(engine: Engine) -> None:
    with reading(engine) as conn:
        (deep,) = migration_lists.listed(conn, {"changed_before": FIRST + timedelta(seconds=MANY / 2)}, 1)
    assert [found for wanted in SINGLES if (found := too_much(engine, wanted, deep))] == []
