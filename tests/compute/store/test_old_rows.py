"""Old rows of the bundled cloud are deleted in portions, so that no statement grows with what has piled up."""

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import Connection, text

from climate.compute.cells.servers import healing
from climate.compute.store.cells import changes, messages, servers
from climate.compute.store.zones import builds, used_offers
from climate.database.batch_delete import PORTION
from tests.compute.cloud_factory import Place, node, place
from tests.scenarios.test_statement_counts import counted

DAY = 86_400.0

Forget = Callable[[Connection, datetime], object]

OLD: Mapping[str, tuple[str, Forget, int]] = {
    "compute_cell_inbox": (
        "(sender, delivery, kind, body, received_at) SELECT 'c', gen_random_uuid(), 'response', '', now() - ago",
        lambda conn, now: messages.sweep(conn, now, DAY),
        PORTION,
    ),
    "compute_cell_responses": (
        "(uuid, expires_at) SELECT gen_random_uuid(), now() - ago",
        lambda conn, now: messages.sweep(conn, now, DAY),
        PORTION,
    ),
    "compute_cell_builds": (
        "(build_id, made_at) SELECT n::text, now() - ago",
        lambda conn, now: messages.sweep(conn, now, DAY),
        PORTION,
    ),
    "compute_cell_versions": (
        "(server_id, version, gone_at) SELECT gen_random_uuid(), 1, now() - ago",
        lambda conn, now: changes.forget(conn, now - timedelta(days=1)),
        PORTION,
    ),
    "compute_cell_servers": (
        "(id, name, project_id, user_id, status, vcpus, ram_mb, build_id, launch_index, created_at, updated_at,"
        " deleted_at) SELECT gen_random_uuid(), 's', 'p', 'u', 'DELETED', 1, 1, 'b', 0, now(), now(), now() - ago",
        lambda conn, now: servers.forget(conn, now - timedelta(days=1)),
        PORTION,
    ),
    "compute_zone_builds": (
        "(id, reservation_id, project_id, user_id, requested, pending, vcpus, ram_mb, state, due_at, finished_at)"
        " SELECT gen_random_uuid(), n::text, 'p', 'u', 1, 0, 1, 1, 'done', now(), now() - ago",
        lambda conn, now: builds.forget(conn, now - timedelta(days=1)),
        builds.FORGOTTEN,
    ),
    "compute_zone_offers": (
        "(item_id, project_id, build_id, launch_index, vcpus, ram_mb, expires_at)"
        " SELECT n::text, 'p', 'b', n, 1, 1, now() - ago",
        used_offers.sweep,
        PORTION,
    ),
}
"""Table -> how a row of long ago is written, what deletes such rows, and how many at once."""


@pytest.fixture
def here(scratch: str, tmp_path: Path) -> Iterator[Place]:
    with place(scratch, tmp_path, [node("n1")]) as here:
        yield here


def write(here: Place, table: str, count: int) -> None:
    """Write so many rows of long ago."""
    row = OLD[table][0]
    source = "FROM generate_series(1, :count) AS n, (SELECT interval '400 days' AS ago) AS long"
    with here.compute.engine.begin() as conn:
        conn.execute(text(f"INSERT INTO {table} {row} {source}"), {"count": count})


@pytest.mark.parametrize("table", OLD)
def test_no_statement_deletes_more_than_a_portion(here: Place, table: str) -> None:
    _, forget, portion = OLD[table]
    write(here, table, portion + 3)
    for left in (3, 0):
        with here.compute.engine.begin() as conn:
            forget(conn, here.compute.now(conn))
        assert here.count(table) == left


def test_a_sweep_of_messages_says_whether_more_is_left(here: Place) -> None:
    write(here, "compute_cell_inbox", PORTION + 3)
    with here.compute.engine.begin() as conn:
        now = here.compute.now(conn)
        assert [messages.sweep(conn, now, DAY) for _ in range(2)] == [True, False]


def test_servers_deleted_long_ago_are_purged_portion_by_portion(here: Place) -> None:
    write(here, "compute_cell_versions", PORTION + 3)
    with counted(here.compute.engine) as seen:
        assert healing.forget(here.compute) == PORTION + 3
    assert len([one for one in seen if one.startswith("DELETE FROM compute_cell_versions")]) == 2
