"""The migrated schema is the declared one, compared in the catalog: Alembic's own check misses guards."""

from collections.abc import Callable

import pytest
from sqlalchemy import text

from climate import bootstrap
from climate.compute.store.tables import metadata as compute
from climate.identity.store.tables import metadata as identity
from climate.settings import Settings
from climate.store.engine import connect
from climate.store.tables import metadata as engine

OURS = "n.nspname = 'public' AND c.relname <> 'alembic_version'"
QUESTIONS = {
    "columns": f"""
        SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attidentity,
               pg_get_expr(d.adbin, d.adrelid)
        FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
        LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
        WHERE {OURS} AND c.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped""",
    "constraints": f"""
        SELECT c.relname, k.conname, pg_get_constraintdef(k.oid), k.condeferrable
        FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE {OURS}""",
    "indexes": f"""
        SELECT c.relname, pg_get_indexdef(i.indexrelid), c.reloptions
        FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE {OURS}""",
    "triggers": f"""
        SELECT c.relname, pg_get_triggerdef(t.oid), pg_get_functiondef(t.tgfoid)
        FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE {OURS} AND NOT t.tgisinternal""",
    "sequences": f"""
        SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE {OURS} AND relkind = 'S'""",
    "first rows": "SELECT epoch FROM epochs",
}


@pytest.fixture(scope="module")
def migrated(make_database: Callable[..., str]) -> str:
    url = make_database()
    bootstrap.migrate(Settings(database_url=url))
    return url


@pytest.fixture(scope="module")
def declared(make_database: Callable[..., str]) -> str:
    url = make_database()
    made = connect(url, pool_size=1)
    for metadata in (engine, identity, compute):
        metadata.create_all(made)
    made.dispose()
    return url


def answers(url: str, question: str) -> list[tuple[object, ...]]:
    asked = connect(url, pool_size=1)
    with asked.connect() as conn:
        rows = sorted((tuple(map(str, row)) for row in conn.execute(text(question))), key=str)
    asked.dispose()
    return rows  # type: ignore[return-value]


@pytest.mark.parametrize("what", QUESTIONS)
def test_migrated_is_declared(migrated: str, declared: str, what: str) -> None:
    assert answers(migrated, QUESTIONS[what]) == answers(declared, QUESTIONS[what])


def test_migrating_again_changes_nothing(migrated: str) -> None:
    bootstrap.migrate(Settings(database_url=migrated))
