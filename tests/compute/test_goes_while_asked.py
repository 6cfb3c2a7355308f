"""A server that goes at the very moment when its deletion is asked for."""

import threading

from sqlalchemy import text

from climate.cloud.bundled import BundledCloud
from tests.compute.cloud_factory import Place
from tests.lock_waits import blocked_or_over


def test_it_is_gone_and_nothing_is_wrong(here: Place) -> None:
    server = here.boot_one()
    here.settle()
    engine, failed = here.compute.engine, []

    def ask() -> None:
        try:
            BundledCloud(here.compute).delete_server(server.id, 1)
        except Exception as error:
            failed.append(error)

    asks = threading.Thread(target=ask)
    with engine.begin() as conn:
        conn.execute(text("SELECT 1 FROM compute_servers WHERE id = :id FOR UPDATE"), {"id": server.id})
        asks.start()
        blocked_or_over(engine, lambda: not asks.is_alive())
        conn.execute(text("DELETE FROM compute_servers WHERE id = :id"), {"id": server.id})
    asks.join()
    assert failed == []
