"""How the statements that count room are planned, over a thousand hosts with ten reservations each."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import Connection, text

from climate.domain.hosts.requirements import ANYTHING
from climate.domain.hosts.shared_capacity import Size, SlotRequest
from climate.domain.period import Period
from climate.store.allocation import shared_capacity
from climate.store.allocation.shared_capacity import CapacityRequest
from climate.store.engine import connect

ZERO = datetime(2030, 1, 1, tzinfo=UTC)

SEED = text("""
    WITH made AS (
        INSERT INTO hosts (hypervisor_hostname, service_name, vcpus, memory_mb, local_gb, cpu_info, hypervisor_type,
            hypervisor_version, reservable, extra, created_at)
        SELECT 'h' || n, 'compute', 16, 65536, 1000, '', 'fake', 1, true, '{}', now() FROM generate_series(1, 1000) n
        RETURNING id),
    agreed AS (
        INSERT INTO leases (id, name, project_id, user_id, start_date, end_date, status, degraded, deleting, gone,
            version, created_at)
        SELECT gen_random_uuid(), 'l' || n, 'p', 'u', :zero + n * interval '4 hours',
            :zero + (n + 2) * interval '4 hours', 'PENDING', false, false, false, 1, now()
        FROM generate_series(0, 9) n
        RETURNING id, start_date, end_date),
    asked AS (
        INSERT INTO reservations (id, lease_id, position, resource_type, status, spec, exists_before_start,
            resources_changed)
        SELECT gen_random_uuid(), id, 0, 'virtual:instance', 'pending', '{}', false, false FROM agreed
        RETURNING id, lease_id)
    INSERT INTO allocations (reservation_id, host, during, kind, state, slots, vcpus, memory_mb, disk_gb)
    SELECT asked.id, made.id, tstzrange(agreed.start_date, agreed.end_date), 'lease', 'held', 2, 6, 1024, 10
    FROM made, asked JOIN agreed ON agreed.id = asked.lease_id
""")

READ = text("SELECT seq_tup_read, idx_tup_fetch FROM pg_stat_xact_user_tables WHERE relname = 'allocations'")
IN_ALL, AT_ONCE = 10_000, 2000
"""Allocations, and how many of them there are at any instant."""

PASSES = 2
"""Older servers (PostgreSQL 15) read what overlaps once for each of the two parts of the statement that need it."""


@pytest.fixture(scope="module")
def conn(make_database: Callable[..., str], engine_template: str) -> Iterator[Connection]:
    engine = connect(make_database(engine_template), pool_size=1)
    with engine.begin() as made:
        made.exec_driver_sql("SET LOCAL statement_timeout = 0")
        made.execute(SEED, {"zero": ZERO})
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as found:
        found.exec_driver_sql("SET statement_timeout = 0")
        found.execute(text("VACUUM ANALYZE"))
    with engine.connect() as found:
        yield found
    engine.dispose()


def wanted(amount: int, start: float, hours: float, **more: Any) -> CapacityRequest:
    window = Period(ZERO + timedelta(hours=start), ZERO + timedelta(hours=start + hours))
    return CapacityRequest(ANYTHING, window, SlotRequest(Size(1, 512, 5), amount, **more))


def read(conn: Connection, act: Callable[[], object]) -> tuple[int, int]:
    """How many rows of allocations are read in passing over the whole table, and how many through an index."""
    with conn.begin() as transaction:
        before = conn.execute(READ).one()
        act()
        after = conn.execute(READ).one()
        transaction.rollback()
    return after[0] - before[0], after[1] - before[1]


def picked(conn: Connection, asked: CapacityRequest, patient: bool) -> Callable[[], object]:
    return lambda: shared_capacity.pick(conn, asked, patient=patient)


@pytest.mark.parametrize("patient", [False, True])
@pytest.mark.parametrize(("amount", "affinity"), [(5, None), (4, True), (3, False)])
def test_only_what_overlaps_is_read(conn: Connection, patient: bool, amount: int, affinity: bool | None) -> None:
    for _ in range(2):  # as it is planned at first, and as it is kept
        whole_table, by_index = read(conn, picked(conn, wanted(amount, 6, 1, affinity=affinity), patient))
        assert whole_table == 0
        assert AT_ONCE <= by_index <= PASSES * AT_ONCE + 100, "and what the few chosen ones have, for the second look"


def test_a_long_window_reads_no_more_than_there_is(conn: Connection) -> None:
    assert sum(read(conn, picked(conn, wanted(5, 0, 44), False))) <= PASSES * IN_ALL + 100


def test_a_refusal_reads_a_bounded_part(conn: Connection) -> None:
    found: list[shared_capacity.Shortage] = []
    for start in (6, 37):
        rows = sum(read(conn, lambda start=start: found.append(shared_capacity.shortage(conn, wanted(5000, start, 1)))))
        assert rows <= AT_ONCE + IN_ALL
    assert [(one.matching, one.fitting) for one in found] == [(1000, 4000)] * 2
    assert [one.fits_from for one in found] == [None, ZERO + timedelta(hours=40)]
