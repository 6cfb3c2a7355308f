"""Locks of pools and nodes that are taken back together, beside a transaction that holds one of them."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import text

from climate.compute.models.node import FREEPOOL
from climate.compute.nodes import services
from climate.compute.store.reservations.batch_take_back import PoolDeletion, lock, lock_unlocked, take_back
from climate.database.connections import reading
from tests.compute.cloud_factory import Place, node, place

LENT = (
    "INSERT INTO compute_aggregates (name, kind, fence) VALUES ('first', 'pool', 7), ('second', 'pool', 8)",
    "INSERT INTO compute_aggregates (name, kind) VALUES ('labels', 'aggregate')",
    "UPDATE compute_nodes SET pool = CASE name WHEN 'n1' THEN 'first' ELSE 'second' END",
)


@pytest.fixture
def here(scratch: str, tmp_path: Path) -> Iterator[Place]:
    """Two nodes, each in a pool of its own; fences 7 and 8."""
    with place(scratch, tmp_path, [node("n1"), node("n2")]) as here:
        services.refresh(here.compute)
        with here.compute.engine.begin() as conn:
            for statement in LENT:
                conn.execute(text(statement))
        yield here


def test_unlocked_pools_and_their_nodes_are_locked_in_order(here: Place) -> None:
    with here.compute.engine.begin() as conn:
        fences, nodes = lock(conn, ["second", "first", "none"], [])
    assert fences == {"first": 7, "second": 8}
    assert [(one.name, one.pool, one.is_locked) for one in nodes] == [("n1", "first", True), ("n2", "second", True)]


def test_a_pool_that_another_transaction_holds_is_left_out(here: Place) -> None:
    engine = here.compute.engine
    with engine.begin() as other, engine.begin() as conn:
        other.execute(text("UPDATE compute_aggregates SET fence = 9 WHERE name = 'first'"))
        other.execute(text("UPDATE compute_nodes SET present = true WHERE name = 'n1'"))
        fences, nodes = lock(conn, ["first", "second"], [])
        assert fences == {"second": 8}
        assert {one.name: one.is_locked for one in nodes} == {"n1": False, "n2": True}


def test_only_pools_are_kept_and_not_other_aggregates(here: Place) -> None:
    with here.compute.engine.begin() as conn:
        assert lock_unlocked(conn, {FREEPOOL, "first", "labels", "none"}) == {FREEPOOL, "first"}
        assert lock_unlocked(conn, set()) == frozenset()


def test_a_pool_under_deletion_is_not_kept(here: Place) -> None:
    engine = here.compute.engine
    with engine.begin() as other, engine.begin() as conn:
        other.execute(text("UPDATE compute_nodes SET pool = NULL WHERE name = 'n1'"))
        other.execute(text("DELETE FROM compute_aggregates WHERE name = 'first'"))
        assert lock_unlocked(conn, {"first", FREEPOOL}) == {FREEPOOL}


def test_taken_pools_are_deleted_and_their_nodes_moved_and_fenced(here: Place) -> None:
    engine = here.compute.engine
    with engine.begin() as conn:
        _, nodes = lock(conn, ["first"], [])
        take_back(conn, [PoolDeletion("first", FREEPOOL, 11, [one.id for one in nodes])])
    with reading(engine) as conn:
        pools = conn.execute(text("SELECT name, pool, fence FROM compute_nodes ORDER BY name")).all()
        left = set(conn.scalars(text("SELECT name FROM compute_aggregates")))
    assert [tuple(row) for row in pools] == [("n1", FREEPOOL, 11), ("n2", "second", 0)]
    assert left == {FREEPOOL, "second", "labels"}
