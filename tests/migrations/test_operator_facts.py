"""What administrators had decided before decisions were facts becomes facts, by the migration."""

from collections.abc import Callable

import pytest
from alembic import command
from alembic.config import Config
from sqlalchemy import text

from climate import bootstrap
from climate.cloud.fake import FakeCloud
from climate.context import Climate
from climate.domain.limits import Limit
from climate.domain.pools import Pool
from climate.service import limits, pools, replay
from climate.store.engine import connect
from tests.conftest import ADMIN

BEFORE = "0017"


@pytest.fixture
def old(make_database: Callable[..., str]) -> str:
    """A database of the release before, with terms and limits."""
    url = make_database()
    engine = connect(url, pool_size=1)
    with engine.begin() as conn:
        config = Config()
        config.set_main_option("script_location", str(bootstrap.migrations()))
        config.attributes["connection"] = conn
        command.upgrade(config, BEFORE)
        conn.execute(text("INSERT INTO pool_terms VALUES ('reservation', 4, 'recycle', NULL, NULL, now())"))
        conn.execute(text("INSERT INTO limits VALUES ('p', 'leases', 3, now()), ('', 'host_hours', 9, now())"))
    with engine.begin() as conn:
        bootstrap.upgrade(conn)
    engine.dispose()
    return url


def test_they_are_facts_of_the_migration(old: str) -> None:
    engine = connect(old, pool_size=2)
    climate = Climate(engine, FakeCloud(), {})
    assert replay.differences(climate) == []
    (entry,) = pools.history(climate, ADMIN, Pool.RESERVATION)
    assert entry.actor == {"user_id": "climate:migration", "project_id": ""}
    pools.change(climate, ADMIN, Pool.RESERVATION, {"target": 5})
    limits.put(climate, ADMIN, "p", {Limit.LEASES: 4})
    assert replay.rebuild(climate) == 0
    assert pools.get(climate, ADMIN, Pool.RESERVATION).own == {"target", "on_end"}
    assert replay.differences(climate) == []
    engine.dispose()
