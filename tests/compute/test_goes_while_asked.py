"""A server that goes at the very moment when its deletion is asked for."""

import threading

from sqlalchemy import text

from climate.cloud.bundled import BundledCloud
from tests.compute.cloud_factory import Place

WAITING = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"


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
        while asks.is_alive() and not waits(here):
            asks.join(0.01)
        conn.execute(text("DELETE FROM compute_servers WHERE id = :id"), {"id": server.id})
    asks.join()
    assert failed == []


def waits(here: Place) -> bool:
    with here.compute.engine.connect() as conn:
        return bool(conn.execute(text(WAITING)).scalar_one())
