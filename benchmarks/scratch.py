"""A database of the benchmark's own: on the server that CLIMATE_DATABASE_URL names, or on one started for it."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from uuid import uuid4

from sqlalchemy import create_engine, text
from sqlalchemy.engine import make_url

from climate import bootstrap, embedded
from climate.bootstrap import Deployment
from climate.domain.policy import Caller
from climate.settings import Settings

CALLER = Caller("bench-user", "bench-project", frozenset({"member"}), "req-bench")


@dataclass(frozen=True, slots=True)
class Place:
    """Environment of a benchmark: settings with a home, a database and, where it was asked for, a broker of its own."""

    settings: Settings

    def deployment(self, pool_size: int = 10) -> Deployment:
        return bootstrap.build(self.settings, application="climate-bench", pool_size=pool_size)


@contextmanager
def place(*, broker: bool = False) -> Iterator[Place]:
    """A migrated, empty database and a temporary home; both are gone afterwards."""
    given = Settings.from_env(os.environ)
    with tempfile.TemporaryDirectory(prefix="climate-bench-") as folder:
        home = Path(folder)
        redis_url = given.redis_url or ("" if broker else "redis://unused")
        wanted = replace(given, home=home, redis_url=redis_url, log_level="WARNING")
        with embedded.run(home, wanted) as stores, database(stores.database_url) as url:
            settings = replace(wanted, database_url=url, redis_url=stores.redis_url)
            bootstrap.migrate(settings)
            yield Place(settings)


@contextmanager
def database(server_url: str) -> Iterator[str]:
    """An empty database on a server; it is gone afterwards."""
    admin = create_engine(server_url.replace("postgres://", "postgresql://", 1), isolation_level="AUTOCOMMIT")
    name = f"climate_bench_{uuid4().hex[:12]}"
    try:
        with admin.connect() as conn:
            conn.execute(text(f'CREATE DATABASE "{name}" TEMPLATE template0'))
        yield make_url(server_url).set(database=name).render_as_string(hide_password=False)
    finally:
        with admin.connect() as conn:
            conn.execute(text(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)'))
        admin.dispose()
