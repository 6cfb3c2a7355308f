"""The bundled cloud takes its locks in one order: whatever happens at once, nobody waits in a circle."""

from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy.engine import make_url

from climate.compute.store.tables.servers import metadata
from climate.store.engine import connect
from tests import databases, deadlocks
from tests.compute.mixed_acts import ACTORS
from tests.compute.mixed_load import Load


@pytest.mark.parametrize("seconds", deadlocks.SECONDS)
def test_everything_at_once_meets_no_deadlock(
    make_database: Callable[..., str],
    server_url: str,
    tmp_path: Path,
    seconds: int,
    record_property: Callable[[str, object], None],
) -> None:
    url = make_database()
    admin = make_url(server_url).render_as_string(hide_password=False)
    with deadlocks.counted(admin, str(make_url(url).database)) as count:
        before = count()
        engine = connect(url, pool_size=24)
        databases.create_tables(engine.url, metadata)
        load = Load(engine, tmp_path)
        load.run(ACTORS, seconds)
        for seed in range(2, 22):  # a busy machine needs longer
            if not load.never_done(ACTORS):
                break
            load.run(ACTORS, 5, seed)
        engine.dispose()
        deadlocks.record(record_property, seconds, load.done, load.refused, count() - before)
        assert load.errors == []
        assert load.never_done(ACTORS) == set(), "each act was carried out at least once"
        assert load.deadlocks == []
        assert count() - before == 0
