"""A migration waits for its database if it is told to."""

from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from alembic.util import CommandError
from sqlalchemy import create_engine
from sqlalchemy.exc import OperationalError
from sqlalchemy.pool import NullPool

from climate import bootstrap
from climate.database.schema_upgrade import connected
from climate.settings import Settings


class Away:
    """A database that refuses the first connections."""

    def __init__(self, url: str, refusals: int) -> None:
        self._url, self.left = url, refusals

    def __call__(self) -> Any:
        if self.left:
            self.left -= 1
            raise psycopg.OperationalError("connection refused")
        return psycopg.connect(self._url)


@pytest.fixture
def away(server_url: str) -> Callable[[int], Away]:
    return lambda refusals: Away(server_url, refusals)


def test_the_connection_is_tried_until_the_database_answers(away: Callable[[int], Away]) -> None:
    engine = create_engine("postgresql+psycopg://", creator=(server := away(3)), poolclass=NullPool)
    with connected(engine, 60, pause=0.0) as conn:
        assert conn.exec_driver_sql("SELECT 1").scalar_one() == 1
    assert server.left == 0


def test_the_error_is_raised_at_once_without_a_wait(away: Callable[[int], Away]) -> None:
    engine = create_engine("postgresql+psycopg://", creator=(server := away(3)), poolclass=NullPool)
    with pytest.raises(OperationalError, match="connection refused"):
        connected(engine, 0)
    assert server.left == 2


def test_a_schema_of_a_later_release_is_refused(database_url: str) -> None:
    with psycopg.connect(database_url) as conn:
        conn.execute("CREATE TABLE IF NOT EXISTS alembic_version (version_num varchar(32) PRIMARY KEY)")
        conn.execute("DELETE FROM alembic_version")
        conn.execute("INSERT INTO alembic_version VALUES ('9999_of_a_later_release')")
    with pytest.raises(CommandError, match="9999_of_a_later_release"):
        bootstrap.migrate(Settings(database_url=database_url))


def test_the_wait_ends() -> None:
    nowhere = Settings(database_url="postgresql://nobody@127.0.0.1:1/none")
    with pytest.raises(OperationalError):
        bootstrap.migrate(nowhere, wait=0.01)
