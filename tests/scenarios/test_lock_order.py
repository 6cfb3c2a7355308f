"""Locks are taken in one order: whatever happens at once, nobody waits in a circle."""

from collections.abc import Callable

import pytest
from sqlalchemy.engine import make_url

from climate.store.engine import connect
from tests import deadlocks
from tests.service.mixed_load import Load


@pytest.mark.parametrize("seconds", deadlocks.SECONDS)
def test_everything_at_once_meets_no_deadlock(
    make_database: Callable[..., str],
    engine_template: str,
    server_url: str,
    seconds: int,
    record_property: Callable[[str, object], None],
) -> None:
    url = make_database(engine_template)
    name = make_url(url).database
    admin = make_url(server_url).render_as_string(hide_password=False)
    with deadlocks.counted(admin, str(name)) as count:
        before = count()
        engine = connect(url, pool_size=24)
        load = Load(engine)
        load.run(seconds)
        for seed in range(2, 22):  # a busy machine needs longer
            if not load.never_done():
                break
            load.run(5, seed)
        engine.dispose()
        deadlocks.record(record_property, seconds, load.done, load.refused, count() - before)
        assert load.errors == []
        assert load.never_done() == set(), "each act was carried out at least once"
        assert load.deadlocks == []
        assert count() - before == 0
