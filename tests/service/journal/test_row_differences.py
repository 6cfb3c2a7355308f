"""The comparison of rows with the journal names each forged column, whatever the table."""

from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import DataError, IntegrityError

from climate.context import Climate
from climate.domain.errors import ClimateError
from climate.domain.hosts.pools import Pool
from climate.domain.limits import Limit
from climate.service.admission import limits
from climate.service.events import event_dispatch
from climate.service.host_operations import maintenance, pool_moves, pools
from climate.service.hosts import inventory, reservable
from climate.service.journal import consistency_check
from climate.service.leases import leases, update
from climate.service.leases.update import Changes
from climate.service.power import power
from climate.service.power.power import Wiring
from climate.store.journal import journal, row_differences
from climate.store.journal.projections import PROJECTIONS, Projected
from tests.conftest import ADMIN, MEMBER, Clock
from tests.service.fake_power import PASSWORD, machines
from tests.service.floating_ip_factory import addresses_wanted, registered
from tests.service.lease_actions import hosts_wanted, make, run_due
from tests.service.series.series_actions import repeat
from tests.service.storage_factory import pool, storage_wanted

SHARED = {"resource_type": "virtual:instance", "vcpus": 1, "memory_mb": 512, "disk_gb": 1, "amount": 2}

OTHER = {
    "TEXT": "{} || 'x'",
    "BOOLEAN": "NOT {}",
    "INTEGER": "{} + 100",
    "SMALLINT": "{} + 100",
    "BIGINT": "{} + 100",
    "UUID": "gen_random_uuid()",
    "JSONB": """CAST('{{"forged": 1}}' AS jsonb)""",
    "TIMESTAMP WITH TIME ZONE": "{} + interval '1 second'",
    "TSTZRANGE": "tstzrange(lower({0}), upper({0}) + interval '1 second')",
}
"""Another value of a column, by its type."""
ANY = {
    "TEXT": "'x'",
    "INTEGER": "7",
    "BIGINT": "7",
    "TIMESTAMP WITH TIME ZONE": "now()",
    "BOOLEAN": "true",
    "UUID": "gen_random_uuid()",
    "JSONB": """CAST('{"forged": 1}' AS jsonb)""",
}
"""A value for a column that has none."""
WORDS = (
    "declared_well",
    *("UNDONE", "DONE", "ERROR", "held", "active", "released", "planned", "done"),
    *("cleaning", "multi-tenant", "failed", "declared_well"),
)
"""Other values of columns that take certain words only."""


@pytest.fixture
def climate(climate: Climate, clock: Clock, tmp_path: Path) -> Climate:
    """An engine whose hosts can be switched."""
    return machines(climate, clock, tmp_path).climate


def world(climate: Climate, clock: Clock, chance: Random) -> None:
    """An engine that has been through much, of which nobody knows beforehand what."""
    registered(climate, 4)
    pool(climate, 40)
    acts = [
        lambda: make(climate, clock, hosts_wanted(chance.randint(1, 2)), start=chance.choice([0, 1, 3])),
        lambda: make(climate, clock, addresses_wanted(1), start=chance.choice([0, 1])),
        lambda: make(climate, clock, hosts_wanted(1), storage_wanted(5), start=chance.choice([0, 1])),
        lambda: make(climate, clock, storage_wanted(5, on_end="keep"), start=0, hours=1),
        lambda: make(climate, clock, SHARED, start=chance.choice([0, 1])),
        lambda: event_dispatch.claim_due(climate, "poller"),
        lambda: run_due(climate),
        lambda: clock.forward(minutes=chance.choice([5, 30, 61])),
        lambda: update.update(climate, MEMBER, chance.choice(known()), Changes(name="ü")),
        lambda: leases.delete(climate, MEMBER, chance.choice(known())),
        lambda: reservable.open_to_promises(climate, ADMIN, "3", chance.random() < 0.5),
        lambda: pool_moves.move(climate, ADMIN, pool_moves.RequestedMove(("8",), chance.choice(list(Pool)))),
        lambda: inventory.update(climate, ADMIN, "5", {"rack": f"r{chance.randint(0, 9)}"}),
        lambda: maintenance.plan(climate, ADMIN, window(chance.choice([0, 2, 90]))),
        lambda: maintenance.run_round(climate),
        lambda: power.put(climate, ADMIN, "6", Wiring("memory", {"password": PASSWORD}, chance.randint(1, 99))),
        lambda: pools.change(climate, ADMIN, Pool.RESERVATION, {"target": chance.randint(1, 9), "on_end": "recycle"}),
        lambda: limits.put(climate, ADMIN, "other", {Limit.LEASES: chance.randint(1, 9)}),
    ]

    def known() -> list[Any]:
        return [lease.id for lease in leases.listed(climate, ADMIN, leases.Listing())] or [None]

    def window(hours: float) -> maintenance.WindowRequest:
        start = clock.time + timedelta(hours=hours)
        return maintenance.WindowRequest("7", start, start + timedelta(hours=1), "new memory")

    def claimed() -> None:
        make(climate, clock, hosts_wanted(1), storage_wanted(1), start=0)
        event_dispatch.claim_due(climate, "poller")

    def repeated() -> None:
        later = Clock()
        later.forward(days=60)
        repeat(climate, later, count=2)

    for act in (*acts, *chance.choices(acts, k=20), *acts, claimed, repeated):
        with suppress(ClimateError):  # refused: nothing has changed
            act()


def values_of(projected: Projected, column: str) -> Iterator[str]:
    """Other values of a column, one of which the database may take."""
    sql_type, name = projected.columns[column][0], f'"{column}"'
    if column == "secrets":  # ciphertext: the facts say only whether there is any
        yield "''"
        return
    yield f"CASE WHEN {name} IS NULL THEN {ANY.get(sql_type, 'NULL')} ELSE {OTHER[sql_type].format(name)} END"
    if sql_type == "TEXT":
        yield from (f"'{word}'" for word in WORDS)


def forge(conn: Connection, projected: Projected, column: str, row: str) -> bool:
    """Change a column of a row to what it was not; whether the database takes another value at all."""
    name = f'"{column}"'
    for value in values_of(projected, column):
        other = f"ctid = '{row}' AND {name} IS DISTINCT FROM {value}"
        change = f"UPDATE {projected.table.name} SET {name} = {value} WHERE {other}"
        try:
            with conn.begin_nested():
                if conn.execute(text(change)).rowcount:
                    return True
        except (IntegrityError, DataError):
            continue
    return False


def found(conn: Connection) -> list[consistency_check.Difference]:
    return consistency_check.as_differences(
        row_differences.compare(conn, journal.streams(conn, row_differences.FIRST, 10_000))
    )


def rows_of(conn: Connection, projected: Projected) -> list[str]:
    """The rows of a table that belong to streams of one sort."""
    kind = "maintenance" if projected.key == ("window_id",) else "lease"
    ours = f" WHERE kind = '{kind}'" if projected.table.name == "allocations" else ""
    return sorted(conn.scalars(text(f"SELECT ctid::text FROM {projected.table.name}{ours}")))


def test_every_column_that_is_compared_is_named_when_it_is_forged(
    climate: Climate, clock: Clock, engine: Engine
) -> None:
    world(climate, clock, chance := Random(0))
    assert consistency_check.differences(climate) == []
    refused = set()
    for projection in PROJECTIONS:
        for projected in projection.tables:
            for column in projected.columns:
                if (projected.table.name, column) != ("floating_allocations", "address"):
                    with engine.connect() as conn:
                        rows = rows_of(conn, projected)
                        chance.shuffle(rows)
                        if not any(is_named(conn, projected, column, row) for row in rows):
                            refused.add((projected.table.name, column))
    assert refused <= REFUSED


REFUSED = {
    ("leases", "id"),
    ("reservations", "id"),
    ("reservations", "lease_id"),
    ("events", "id"),
    ("events", "lease_id"),
    ("hosts", "id"),
    ("maintenance_windows", "id"),
    ("claims", "event_id"),
    ("allocations", "kind"),
    ("allocations", "window_id"),
    *((table, "reservation_id") for table in ("allocations", "floating_allocations", "inventory_allocations")),
    *((table, "number") for table in ("floating_allocations", "inventory_allocations")),
    ("allocations", "host"),
    ("host_power", "host"),
    ("maintenance_windows", "host"),
}
"""Keys, and what must be a key elsewhere: the database takes no other value that the test knows."""


def is_named(conn: Connection, projected: Projected, column: str, row: str) -> bool:
    """Whether the column of the row could be forged; then it is named, or its row where it is part of the key."""
    if not forge(conn, projected, column, row):
        return False
    table = projected.table.name
    named = [one for one in found(conn) if one.table == table]
    assert [one for one in named if one.column in (column, "")], f"{table}.{column} was forged: {named}"
    assert column in projected.key or {one.column for one in named} == {column}
    conn.rollback()
    return True


@pytest.mark.parametrize("seed", range(1, 4))
def test_a_forged_column_of_any_row_of_any_world_is_named(
    climate: Climate, clock: Clock, engine: Engine, seed: int
) -> None:
    world(climate, clock, chance := Random(seed))
    assert consistency_check.differences(climate) == []
    tables = [projected for projection in PROJECTIONS for projected in projection.tables]
    forged = 0
    for _ in range(40):
        projected = chance.choice(tables)
        column = chance.choice([name for name in projected.columns if name != "address"])
        with engine.connect() as conn:
            rows = rows_of(conn, projected)
            forged += bool(rows) and is_named(conn, projected, column, chance.choice(rows))
    assert forged > 20


@pytest.mark.parametrize("table", [projected.table.name for projected in PROJECTIONS[0].tables[3:]])
def test_rows_that_are_lost_and_rows_that_no_fact_knows_are_named(
    climate: Climate, clock: Clock, engine: Engine, table: str
) -> None:
    world(climate, clock, Random(0))
    with engine.connect() as conn:
        lost = conn.execute(text(f"DELETE FROM {table} WHERE ctid = (SELECT min(ctid) FROM {table}) RETURNING *")).one()
        (one,) = found(conn)
        assert (one.table, one.column) == (table, "")
        assert all(str(value) in str(lost) for value in one.row.split("=")[-1:])
        assert "no row, facts say that there is one" in one.what
