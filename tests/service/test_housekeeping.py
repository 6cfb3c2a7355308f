"""What is old is forgotten in portions, and the trouble of one kind of rows keeps no other from being forgotten."""

from sqlalchemy import Engine, text

from climate.context import Climate
from climate.database.batch_delete import PORTION
from climate.service import housekeeping
from tests.conftest import Clock
from tests.scenarios.test_statement_counts import counted

MANY = """
    INSERT INTO notices (at, kind, message, body)
    SELECT now() - interval '1000 days', 'lease.started', 'm', '{}' FROM generate_series(1, :count)
"""
OLD_KEY = """
    INSERT INTO idempotency_keys (project_id, user_id, key, fingerprint, resource_id, created_at)
    VALUES ('p', 'u', 'k', 'f', 'r', now() - interval '1000 days')
"""


def _left(engine: Engine, table: str) -> int:
    with engine.connect() as conn:
        return int(conn.execute(text(f"SELECT count(*) FROM {table}")).scalar_one())


def test_no_statement_deletes_more_than_a_portion(climate: Climate, clock: Clock, engine: Engine) -> None:
    with engine.begin() as conn:
        conn.execute(text(MANY), {"count": 2 * PORTION + 7})
        new = text("INSERT INTO notices (at, kind, message, body) VALUES (:now, 'k', 'm', '{}')")
        conn.execute(new, {"now": clock.time})
    went: list[int] = []

    def note() -> None:
        went.append(_left(engine, "notices"))

    with counted(engine) as seen:
        housekeeping.tidy(climate, note)
    assert went[-3:] == [PORTION + 8, 8, 1]
    assert len([statement for statement in seen if "DELETE FROM notices" in statement]) == 3


def test_what_cannot_be_forgotten_keeps_nothing_else(climate: Climate, engine: Engine) -> None:
    with engine.begin() as conn:
        conn.execute(text(OLD_KEY))
        conn.execute(text(MANY), {"count": 3})
        conn.execute(text("ALTER TABLE beats RENAME TO elsewhere"))
    try:
        housekeeping.tidy(climate)
    finally:
        with engine.begin() as conn:
            conn.execute(text("ALTER TABLE elsewhere RENAME TO beats"))
    assert (_left(engine, "idempotency_keys"), _left(engine, "notices")) == (0, 0)


def _heard_of(climate: Climate, engine: Engine, *beats: tuple[str, str, float]) -> None:
    """Signs of life: (role, process, hours ago)."""
    past = text("INSERT INTO beats VALUES (:role, :process, :now - make_interval(secs => 3600 * :hours))")
    with engine.begin() as conn:
        now = climate.now(conn)
        for role, process, hours in beats:
            conn.execute(past, {"role": role, "process": process, "now": now, "hours": hours})


def _processes(engine: Engine) -> list[str]:
    with engine.connect() as conn:
        return list(conn.execute(text("SELECT process FROM beats ORDER BY process")).scalars())


def test_the_last_sign_of_life_of_a_role_is_kept(climate: Climate, engine: Engine) -> None:
    _heard_of(climate, engine, ("queue:events", "w1", 30), ("queue:events", "w2", 20))
    housekeeping.tidy(climate)
    assert _processes(engine) == ["w2"]


def test_queues_of_hosts_that_are_gone_are_forgotten(climate: Climate, engine: Engine) -> None:
    _heard_of(
        climate,
        engine,
        ("queue:compute.gone", "w1", 2),
        ("queue:network.gone", "w2", 2),
        ("queue:compute.here", "w3", 0.5),
        ("queue:compute", "w4", 2),
    )
    housekeeping.tidy(climate)
    assert _processes(engine) == ["w3", "w4"]


def test_a_role_is_forgotten_after_a_week(climate: Climate, engine: Engine) -> None:
    _heard_of(climate, engine, ("queue:old", "w1", 7 * 24 + 1), ("poller", "w2", 7 * 24 - 1))
    housekeeping.tidy(climate)
    assert _processes(engine) == ["w2"]


def test_more_is_left_when_each_portion_of_a_run_was_full(climate: Climate) -> None:
    sizes = iter([PORTION] * (housekeeping.PORTIONS + 1) + [PORTION - 1])
    kinds = {"rows": lambda conn, climate: next(sizes)}
    assert housekeeping.tidy(climate, kinds=kinds)
    assert not housekeeping.tidy(climate, kinds=kinds)
    assert next(sizes, None) is None
