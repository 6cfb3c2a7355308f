"""Locks are taken in one order: whatever happens at once, nobody waits in a circle."""

from collections.abc import Callable

from sqlalchemy.engine import make_url

from climate.store.engine import connect
from tests.campaign import length
from tests.service.mixed_load import Load, counted


def test_everything_at_once_meets_no_deadlock(
    make_database: Callable[..., str], engine_template: str, server_url: str
) -> None:
    url = make_database(engine_template)
    name = make_url(url).database
    admin = make_url(server_url).render_as_string(hide_password=False)
    with counted(admin, str(name)) as deadlocks:
        before = deadlocks()
        engine = connect(url, pool_size=24)
        load = Load(engine)
        load.run(length(10, 600))
        for seed in range(2, 22):  # a busy machine needs longer
            if not load.never_done():
                break
            load.run(5, seed)
        engine.dispose()
        assert load.errors == []
        assert load.never_done() == set(), "each act was carried out at least once"
        assert load.deadlocks == []
        assert deadlocks() - before == 0
