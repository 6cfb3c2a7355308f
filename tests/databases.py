"""Databases for tests: made from templates, emptied by one statement, spoken to over connections that stay.

A new connection lets the server read its catalogues and plan each statement again, and a new engine compiles each
statement again.  Together that takes longer than an ordinary test.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any
from uuid import uuid4

from sqlalchemy import URL, Connection, Engine, MetaData, Table, create_engine, inspect, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DBAPIError

from climate.store.engine import connect

POOL_SIZE = 20
FEW = 4
"""Connections that stay when a test is over; a test of many threads leaves more behind than the next one needs."""

CLIENTS = """
    SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()
"""
"""How many others are connected to a database."""
OBJECTS = """
    SELECT concat_ws(' ',
        (SELECT (count(*), max(oid)) FROM pg_class),
        (SELECT count(*) FROM pg_attribute),
        (SELECT (count(*), max(oid)) FROM pg_constraint),
        (SELECT (count(*), max(oid)) FROM pg_proc),
        (SELECT (count(*), max(oid), count(*) FILTER (WHERE tgenabled = 'O')) FROM pg_trigger),
        (SELECT count(*) FROM pg_db_role_setting))
"""
"""What changes with the schema of a database."""


@dataclass
class Databases:
    """Makes databases, empty or from a template, and drops them: each when it is done with, all in the end."""

    server_url: str
    made: list[str] = field(default_factory=list)

    @cached_property
    def admin(self) -> Engine:
        return create_engine(self.server_url, isolation_level="AUTOCOMMIT")

    def __call__(self, template: str = "template0") -> str:
        name = f"climate_test_{uuid4().hex[:12]}"
        with self.admin.connect() as conn:
            # Copied as files where they are in memory: half the time; on a disk it would wait for two checkpoints.
            strategy = "WAL_LOG" if "CLIMATE_TEST_DATABASE_URL" in os.environ else "FILE_COPY"
            conn.execute(text(f'CREATE DATABASE "{name}" TEMPLATE "{template}" STRATEGY {strategy}'))
        self.made.append(name)
        return make_url(self.server_url).set(database=name).render_as_string(hide_password=False)

    def drop(self, *names: str) -> None:
        with self.admin.connect() as conn:
            for name in names:
                conn.execute(text(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)'))
                self.made = [one for one in self.made if one != name]

    def close(self) -> None:
        self.drop(*self.made[:])
        self.admin.dispose()


def without_autovacuum(server_url: str) -> str:
    """The server, told to vacuum no table by itself: visits of its many databases cost more than the dead rows.

    Plans do not change between two tests either.
    """
    engine = create_engine(server_url, isolation_level="AUTOCOMMIT")
    with engine.connect() as conn:
        conn.exec_driver_sql("ALTER SYSTEM SET autovacuum = off")
        conn.exec_driver_sql("SELECT pg_reload_conf()")
    engine.dispose()
    return server_url


def unsafe(database: str) -> str:
    """The database, told not to wait for its disk: what a crash of the machine would lose is no loss to a test."""
    engine = create_engine(make_url(database).set(drivername="postgresql+psycopg"), isolation_level="AUTOCOMMIT")
    with engine.connect() as conn:
        conn.execute(text(f'ALTER DATABASE "{make_url(database).database}" SET synchronous_commit = off'))
    engine.dispose()
    return database


_KEPT: dict[str, Engine] = {}
"""The engines of this process, by the URL of their databases."""


@contextmanager
def connected(url: str) -> Iterator[Engine]:
    """An engine over connections that stay for the next one; what listens to it does so no longer than this one."""
    if url not in _KEPT:
        _KEPT[url] = connect(url, pool_size=POOL_SIZE)
    kept = _KEPT[url]
    yield kept.execution_options()
    if not _in_order(kept):
        kept.dispose()


def _in_order(engine: Engine) -> bool:
    """Whether the connections of an engine are few, are all given back, and all live."""
    if engine.pool.checkedout() or engine.pool.checkedin() > FEW:  # type: ignore[attr-defined]
        return False
    try:
        with engine.connect() as conn:
            return int(conn.exec_driver_sql(CLIENTS).scalar_one()) >= engine.pool.checkedin()  # type: ignore[attr-defined]
    except DBAPIError:
        return False


@cache
def create_tables(url: URL, metadata: MetaData) -> None:
    """Create these tables, once in each database: looking for each of them takes longer than a test."""
    engine = create_engine(url)
    if not set(metadata.tables) <= set(inspect(engine).get_table_names()):
        metadata.create_all(engine)
    engine.dispose()


def empty(conn: Connection, tables: Sequence[Table]) -> None:
    """Delete all rows of these tables, in one statement; no trigger and no reference hinders that."""
    names = tuple(table.name for table in tables)
    conn.exec_driver_sql("SET LOCAL session_replication_role = replica")
    conn.exec_driver_sql(_deletes(names))


def dependants(*tables: Table) -> list[Table]:
    """These tables and all that refer to them, as TRUNCATE with CASCADE takes them.

    To delete a few rows is cheaper: after TRUNCATE, the server plans each statement about the tables again.
    """
    found = set(tables)
    for table in tables[0].metadata.sorted_tables:
        if any(key.column.table in found for key in table.foreign_keys):
            found.add(table)
    return sorted(found, key=lambda table: table.name)


@cache
def _deletes(names: tuple[str, ...]) -> str:
    """One statement that empties several tables; the server plans it once in each connection."""
    parts = [f'd{number} AS (DELETE FROM "{name}")' for number, name in enumerate(names)]
    return f"WITH {', '.join(parts)} SELECT 1"


def keep(conn: Connection, tables: Sequence[Table], schema: str, result: str = "1") -> str:
    """Copy what the tables hold to a new schema; return the statement that brings it back, and selects the result."""
    conn.exec_driver_sql(f"CREATE SCHEMA {schema}")
    parts: list[str] = []
    for table in tables:
        if conn.exec_driver_sql(f'SELECT EXISTS (SELECT FROM "{table.name}")').scalar_one():
            conn.exec_driver_sql(f'CREATE TABLE {schema}."{table.name}" AS TABLE "{table.name}"')
            columns = ", ".join(f'"{column.name}"' for column in table.columns if column.computed is None)
            rows = f'SELECT {columns} FROM {schema}."{table.name}"'
            parts.append(f'k{len(parts)} AS (INSERT INTO "{table.name}" ({columns}) OVERRIDING SYSTEM VALUE {rows})')
    return "\n".join([f"WITH {', '.join(parts)}" if parts else "", f"SELECT {result}"])


_FURNISHED: dict[tuple[URL, str], str] = {}
"""Statements that bring back what databases held once they were furnished, by the name of the furnishing."""


def furnish(engine: Engine, name: str, tables: Sequence[Table], write: Callable[[], None]) -> bool:
    """Empty the tables and write rows into them; return whether `write` was called.

    It is called once for each database and name. Later calls bring its rows back by one statement.
    """
    refill = _FURNISHED.get((engine.url, name))
    with engine.begin() as conn:
        empty(conn, tables)
        if refill is not None:
            conn.exec_driver_sql(refill)
            return False
    write()
    with engine.begin() as conn:
        _FURNISHED[engine.url, name] = keep(conn, tables, f"kept_{len(_FURNISHED)}")
    return True


@dataclass
class Restored:
    """A database that holds what its template holds, again after each use."""

    databases: Databases
    template: str
    metadata: MetaData
    url: str = ""
    objects: str = ""
    refill: str = ""

    @contextmanager
    def used(self) -> Iterator[str]:
        """Its URL; whoever alters the schema or leaves a connection lets the next user have another database."""
        if not self.url:
            self._make()
        yield self.url
        if not self._restore():
            self.drop()

    def drop(self) -> None:
        """Drop the database; the next user gets another one."""
        if self.url:
            _KEPT.pop(self.url).dispose()
            self.databases.drop(str(make_url(self.url).database))
            self.url = ""

    def _make(self) -> None:
        self.url = self.databases(self.template)
        with connected(self.url) as engine, engine.begin() as conn:
            self.refill = self._keep(conn)
            self.objects = str(conn.exec_driver_sql(OBJECTS).scalar_one())

    def _keep(self, conn: Connection) -> str:
        """Copy what the tables hold; return the statement that brings it back."""
        return keep(conn, self.metadata.sorted_tables, "kept", self._positions(conn))

    def _positions(self, conn: Connection) -> str:
        """Calls that put all sequences to where they are."""
        names = inspect(conn).get_sequence_names()
        rows = {name: conn.exec_driver_sql(f'SELECT last_value, is_called FROM "{name}"').one() for name in names}
        return ", ".join(f"setval('\"{name}\"', {row[0]}, {row[1]})" for name, row in rows.items()) or "1"

    def _restore(self) -> bool:
        """Bring back what the template holds; return whether that was possible."""
        kept = _KEPT.get(self.url)
        if kept is None:
            return False
        try:
            with kept.begin() as conn:
                if self._others(conn, kept.pool) or conn.exec_driver_sql(OBJECTS).scalar_one() != self.objects:
                    return False
                empty(conn, self.metadata.sorted_tables)
                conn.exec_driver_sql(self.refill)
        except DBAPIError:
            return False
        return True

    @staticmethod
    def _others(conn: Connection, pool: Any) -> bool:
        """Whether connections are there that are not of the pool, or are still in use."""
        return bool(pool.checkedout() > 1 or conn.exec_driver_sql(CLIENTS).scalar_one() != pool.checkedin())
