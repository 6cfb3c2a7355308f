"""The causes of pools that older releases kept in text become typed, by the migration."""

from collections.abc import Callable

import pytest
from alembic import command
from alembic.config import Config
from sqlalchemy import text

from climate.cloud.fake import FakeCloud
from climate.context import Climate
from climate.database import schema_upgrade
from climate.service.journal import consistency_check
from climate.store.engine import connect
from climate.store.hosts import pool_membership

BEFORE = "0031"

HOSTS = """
    WITH made AS (
        INSERT INTO hosts (hypervisor_hostname, service_name, vcpus, memory_mb, local_gb, cpu_info, hypervisor_type,
            hypervisor_version, reservable, extra, created_at, pool_since, pool, pool_reason, version)
        SELECT name, name, 1, 1, 1, '', 'fake', 1, true, '{}'::jsonb, now(), now(), pool, reason, 2
        FROM (VALUES ('h1', 'failed', 'declared well'), ('h2', 'failed', 'not cleaned: exit code 3'),
            ('h3', 'maintenance', 'worked on: fans'), ('h4', 'failed', 'its service is down'),
            ('h5', 'multi-tenant', 'declared well')) AS h (name, pool, reason)
        RETURNING *)
    INSERT INTO journal (stream, version, kind, body, actor, request_id)
    SELECT stream, 1, 'HostEnrolled',
        jsonb_build_object('host', id, 'at', created_at, 'name', hypervisor_hostname, 'pool', 'reservation'),
        '{}'::jsonb, ''
    FROM made
    UNION ALL
    SELECT stream, 2, 'HostMoved', jsonb_build_object('at', pool_since, 'pool', pool, 'reason', pool_reason),
        '{}'::jsonb, ''
    FROM made
"""


@pytest.fixture
def old(make_database: Callable[..., str]) -> str:
    """A database of the release before, with hosts in several pools."""
    url = make_database()
    engine = connect(url, pool_size=1)
    with engine.begin() as conn:
        config = Config()
        config.set_main_option("script_location", str(schema_upgrade.scripts()))
        config.attributes["connection"] = conn
        command.upgrade(config, BEFORE)
        conn.execute(text(HOSTS))
        conn.execute(text("UPDATE hosts SET home = 'multi-tenant' WHERE pool = 'multi-tenant'"))
    with engine.connect() as conn:
        schema_upgrade.upgrade(conn)
    engine.dispose()
    return url


def test_rows_get_the_causes_that_their_facts_get(old: str) -> None:
    engine = connect(old, pool_size=2)
    climate = Climate(engine, FakeCloud(), {})
    with engine.connect() as conn:
        causes = {place.name: str(place.cause) for place in pool_membership.listed(conn)}
    assert causes == {"h1": "declared_well", "h2": "not_cleaned", "h3": "maintenance_window", "h4": "", "h5": ""}
    assert consistency_check.differences(climate) == []
    engine.dispose()
