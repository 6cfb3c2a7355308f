"""What administrators had decided before decisions were facts becomes facts, by the migration."""

from collections.abc import Callable

import pytest
from alembic import command
from alembic.config import Config
from sqlalchemy import text

from climate.cloud.fake import FakeCloud
from climate.context import Climate
from climate.database import schema_upgrade
from climate.domain.hosts.pools import Pool
from climate.domain.limits import Limit
from climate.service.admission import limits
from climate.service.host_operations import maintenance, pools
from climate.service.hosts import inventory, reservable
from climate.service.journal import consistency_check
from climate.service.journal.rebuild import Rebuilt, rebuild
from climate.store.engine import connect
from climate.store.hosts.maintenance import Window, WindowFilter, WindowState
from climate.store.journal.journal import Entry
from tests.conftest import ADMIN

BEFORE = "0017"

HOSTS = """
    WITH made AS (
        INSERT INTO hosts (hypervisor_hostname, service_name, vcpus, memory_mb, local_gb, cpu_info, hypervisor_type,
            hypervisor_version, reservable, extra, created_at, pool_since)
        SELECT name, name, 1, 1, 1, '', 'fake', 1, true, extra::jsonb, now(), now()
        FROM (VALUES ('h1', '{"gpu": "1"}'), ('h2', '{}')) AS h (name, extra) RETURNING *)
    INSERT INTO journal (stream, version, kind, body, actor, request_id)
    SELECT stream, 1, 'HostEnrolled',
        jsonb_build_object('host', id, 'at', created_at, 'name', hypervisor_hostname, 'pool', 'reservation'), '{}', ''
    FROM made
"""


WINDOWS = """
    INSERT INTO maintenance_windows (id, host, during, reason, state, created_by, created_at)
    SELECT gen_random_uuid(), id, tstzrange(now(), now() + interval '1 hour'), 'r', state, 'admin', now()
    FROM hosts, (VALUES ('planned'), ('active'), ('done')) AS s (state)
    WHERE (hypervisor_hostname = 'h1') = (state = 'planned')
"""
KEPT = """
    INSERT INTO allocations (host, during, kind, state, window_id)
    SELECT host, during, 'maintenance',
        CASE state WHEN 'planned' THEN 'held' WHEN 'active' THEN state ELSE 'released' END, id
    FROM maintenance_windows
"""


@pytest.fixture
def old(make_database: Callable[..., str]) -> str:
    """A database of the release before, with terms and limits."""
    url = make_database()
    engine = connect(url, pool_size=1)
    with engine.begin() as conn:
        config = Config()
        config.set_main_option("script_location", str(schema_upgrade.scripts()))
        config.attributes["connection"] = conn
        command.upgrade(config, BEFORE)
        conn.execute(text("INSERT INTO pool_terms VALUES ('reservation', 4, 'recycle', NULL, NULL, now())"))
        conn.execute(text(HOSTS))
        conn.execute(
            text(
                "INSERT INTO host_power (host, driver, settings, secrets, watts, created_at) "
                "SELECT id, 'memory', '{}', 'sealed', 90, now() FROM hosts WHERE hypervisor_hostname = 'h1'"
            )
        )
        conn.execute(text(WINDOWS))
        conn.execute(text(KEPT))
        conn.execute(text("INSERT INTO limits VALUES ('p', 'leases', 3, now()), ('', 'host_hours', 9, now())"))
    with engine.connect() as conn:
        schema_upgrade.upgrade(conn)
    engine.dispose()
    return url


def history(climate: Climate, window: Window) -> list[Entry]:
    return maintenance.history(climate, ADMIN, window.id)


def test_they_are_facts_of_the_migration(old: str) -> None:
    engine = connect(old, pool_size=2)
    climate = Climate(engine, FakeCloud(), {})
    assert consistency_check.differences(climate) == []
    windows = maintenance.listed(climate, ADMIN, WindowFilter(states=tuple(WindowState)))
    told = {str(one.state): [entry.actor["user_id"] for entry in history(climate, one)] for one in windows}
    both = ["admin", "climate:migration"]
    assert told == {"planned": ["admin"], "active": both, "done": both}
    (entry,) = pools.history(climate, ADMIN, Pool.RESERVATION)
    assert entry.actor == {"user_id": "climate:migration", "project_id": ""}
    pools.change(climate, ADMIN, Pool.RESERVATION, {"target": 5})
    limits.put(climate, ADMIN, "p", {Limit.LEASES: 4})
    assert inventory.update(climate, ADMIN, "1", {"rack": "r1"}).extra == {"gpu": "1", "rack": "r1"}
    assert inventory.update(climate, ADMIN, "2", {"rack": "r2"}).extra == {"rack": "r2"}
    kinds = [type(entry.fact).__name__ for entry in reservable.history(climate, ADMIN, "1")]
    assert kinds == ["HostEnrolled", "HostDescribed", "HostPowerSet", "HostDescribed"]
    assert rebuild(climate) == Rebuilt(streams=8, mended=0)
    assert pools.get(climate, ADMIN, Pool.RESERVATION).own == {"target", "on_end"}
    assert consistency_check.differences(climate) == []
    engine.dispose()
