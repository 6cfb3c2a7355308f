"""Conditions of nodes and of their services, in each of the three forms in which they are read."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import select, text

from climate.compute.nodes import health as node_health
from climate.compute.nodes import services
from climate.compute.store.nodes import health
from climate.database.connections import reading
from tests.compute.cloud_factory import Place, node, place

DOWN = 3600.0


@pytest.fixture
def here(scratch: str, tmp_path: Path) -> Iterator[Place]:
    """Two nodes of one service that has just sent a heartbeat."""
    with place(scratch, tmp_path, [node("n1"), node("n2")]) as here:
        services.refresh(here.compute)
        yield here


def change(here: Place, statement: str) -> None:
    with here.compute.engine.begin() as conn:
        conn.execute(text(statement))


def all_well(here: Place) -> list[str] | None:
    with reading(here.compute.engine) as conn:
        return health.all_well(conn, here.compute.now(conn), DOWN)


def rows(here: Place) -> list[tuple[str, str | None, bool]]:
    with reading(here.compute.engine) as conn:
        query = node_health.query(here.compute, conn)
        return [tuple(row) for row in conn.execute(select(query.rows), query.parameters)]


def test_all_nodes_are_well_after_a_report(here: Place) -> None:
    assert sorted(all_well(here) or []) == ["n1", "n2"]
    assert sorted(rows(here)) == [("n1", None, True), ("n2", None, True)]
    with reading(here.compute.engine) as conn:
        listed = health.listed(conn, here.compute.now(conn), DOWN)
    assert [(one.name, one.present, one.enabled, one.heard) for one in listed] == [
        ("n1", True, True, True),
        ("n2", True, True, True),
    ]
    assert listed[0].beat_at.utcoffset() == timedelta(0)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE compute_nodes SET present = false WHERE name = 'n1'",
        "UPDATE compute_nodes SET maintenance = 'a disk' WHERE name = 'n1'",
    ],
)
def test_one_unwell_node_is_not_well_and_the_other_stays_well(here: Place, statement: str) -> None:
    change(here, statement)
    assert all_well(here) is None
    assert {name: is_well for name, _, is_well in rows(here)} == {"n1": False, "n2": True}


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE compute_services SET enabled = false",
        "UPDATE compute_services SET forced_down = true",
        "UPDATE compute_services SET beat_at = beat_at - interval '1 day'",
    ],
)
def test_no_node_of_a_service_that_is_down_or_disabled_is_well(here: Place, statement: str) -> None:
    change(here, statement)
    assert all_well(here) is None
    assert {is_well for _, _, is_well in rows(here)} == {False}
    with reading(here.compute.engine) as conn:
        listed = health.listed(conn, here.compute.now(conn), DOWN)
    assert {one.enabled and not one.forced_down and one.heard for one in listed} == {False}


def test_a_host_in_the_pool_of_leases_is_listed_with_its_pool(here: Place) -> None:
    change(here, "UPDATE compute_nodes SET pool = 'freepool' WHERE name = 'n2'")
    assert {name: pool for name, pool, _ in rows(here)} == {"n1": None, "n2": "freepool"}
