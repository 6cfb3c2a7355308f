"""The schema is upgraded while the release before goes on booking."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Event, Thread

import pytest
from alembic import command
from alembic.config import Config
from sqlalchemy import Engine, text
from sqlalchemy.exc import OperationalError

from climate import bootstrap
from climate.database import schema_upgrade
from climate.settings import Settings
from climate.store import schema_versions
from climate.store.engine import connect

BEFORE = "0031"

HOST = """
    INSERT INTO hosts (hypervisor_hostname, service_name, vcpus, memory_mb, local_gb, cpu_info, hypervisor_type,
        hypervisor_version, reservable, extra, created_at, pool_since, pool, pool_reason, version)
    VALUES ('h1', 'h1', 1, 1, 1, '', 'fake', 1, true, '{}'::jsonb, now(), now(), 'reservation', '', 1)
"""
BOOKING = (
    "SELECT id FROM hosts WHERE hypervisor_hostname = 'h1' FOR UPDATE",
    """INSERT INTO leases (id, name, project_id, user_id, start_date, end_date, status, degraded, deleting, gone,
        version, created_at)
    VALUES (gen_random_uuid(), 'one', 'p', 'u', now(), now() + interval '1 hour', 'PENDING', false, false, false,
        1, now())""",
    "UPDATE leases SET updated_at = now() WHERE id = (SELECT id FROM leases ORDER BY created_at DESC LIMIT 1)",
    """INSERT INTO journal (stream, version, kind, body, actor, request_id)
    VALUES (gen_random_uuid(), 1, 'LeaseCreated', '{}'::jsonb, '{}'::jsonb, '')""",
)
"""The order in which every booking locks: hosts, leases, and the journal last."""
DEADLOCKS = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
READ = "LOCK TABLE hosts IN ACCESS SHARE MODE"
"""The lock of a reader, without the snapshot that the building of an index would wait for."""
INVALID = "SELECT indexrelid::regclass::text FROM pg_index WHERE NOT indisvalid"


@pytest.fixture(scope="module")
def release_before(make_database: Callable[..., str]) -> str:
    """Name of a database of the release before, with a host."""
    engine = connect(make_database(), pool_size=1)
    with engine.begin() as conn:
        config = Config()
        config.set_main_option("script_location", str(schema_upgrade.scripts()))
        config.attributes["connection"] = conn
        command.upgrade(config, BEFORE)
        conn.execute(text(HOST))
    engine.dispose()
    return str(engine.url.database)


@pytest.fixture
def old(make_database: Callable[..., str], release_before: str) -> Iterator[Engine]:
    """A copy of it."""
    engine = connect(make_database(release_before), pool_size=3)
    yield engine
    engine.dispose()


class Bookings:
    """A thread that books until it is told to stop, or until a booking fails."""

    def __init__(self, engine: Engine) -> None:
        self.engine, self.done, self.failures = engine, 0, list[str]()
        self.stopped, self.first = Event(), Event()
        self.thread = Thread(target=self._book)

    def __enter__(self) -> "Bookings":
        self.thread.start()
        self.first.wait()
        return self

    def __exit__(self, *raised: object) -> None:
        self.stopped.set()
        self.thread.join()

    def _book(self) -> None:
        while not self.stopped.is_set() and not self.failures:
            try:
                with self.engine.begin() as conn:
                    for statement in BOOKING:
                        conn.execute(text(statement))
                self.done += 1
            except OperationalError as error:
                self.failures.append(str(error))
            self.first.set()


def url(engine: Engine) -> str:
    return engine.url.render_as_string(hide_password=False)


def revisions(engine: Engine) -> frozenset[str]:
    with engine.connect() as conn:
        return schema_versions.present(conn)


def ask(engine: Engine, query: str) -> list[object]:
    with engine.connect() as conn:
        return list(conn.scalars(text(query)))


def test_bookings_go_on_while_the_schema_is_upgraded(old: Engine) -> None:
    with Bookings(old) as bookings:
        bootstrap.migrate(Settings(database_url=url(old)))
    assert (bookings.failures, bookings.done > 1) == ([], True)
    assert revisions(old) == schema_versions.newest(schema_upgrade.scripts())
    old.dispose()  # a process reports its deadlocks when it ends at the latest
    assert ask(old, DEADLOCKS) == [0]
    assert ask(old, INVALID) == []


def test_a_migration_that_does_not_get_its_lock_leaves_those_before_it_and_can_be_repeated(old: Engine) -> None:
    with old.connect() as reader, old.connect() as conn:
        reader.execute(text(READ))
        with pytest.raises(OperationalError, match="lock timeout"):
            schema_upgrade.upgrade(conn, tries=1)
        assert revisions(old) == {"0034"}
        reader.rollback()
        with Bookings(old) as bookings:  # the lock of the migrations and those of the tables are free
            schema_upgrade.upgrade(conn)
    assert bookings.failures == []
    assert revisions(old) == schema_versions.newest(schema_upgrade.scripts())


def test_a_migration_tries_again_until_it_gets_its_lock(old: Engine) -> None:
    with old.connect() as reader, ThreadPoolExecutor(1) as pool:
        reader.execute(text(READ))
        migrating = pool.submit(bootstrap.migrate, Settings(database_url=url(old)))
        waiting = "SELECT count(*) FROM pg_locks WHERE relation = 'hosts'::regclass AND NOT granted"
        for awaited in (1, 0, 1):  # waits, has given way, waits again
            while ask(old, waiting) != [awaited]:
                assert not migrating.done()
        reader.rollback()
        migrating.result()
    assert revisions(old) == schema_versions.newest(schema_upgrade.scripts())


def test_what_an_interrupted_run_left_of_an_index_is_built_anew(old: Engine) -> None:
    with old.begin() as conn:
        conn.execute(text("CREATE INDEX ix_leases_end ON leases (end_date) WHERE NOT gone"))
        conn.execute(text("UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'ix_leases_end'::regclass"))
    bootstrap.migrate(Settings(database_url=url(old)))
    assert ask(old, INVALID) == []
    assert ask(old, "SELECT to_regclass('ix_leases_end')::text") == ["ix_leases_end"]


def test_processes_that_migrate_at_once_wait_for_each_other(old: Engine) -> None:
    with ThreadPoolExecutor(3) as pool:
        for one in [pool.submit(bootstrap.migrate, Settings(database_url=url(old))) for _ in range(3)]:
            one.result()
    assert revisions(old) == schema_versions.newest(schema_upgrade.scripts())
