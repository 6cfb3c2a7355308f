"""Pools lent together: each refused loan has its reason, and the others are carried out."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import text

from climate.compute.errors import Busy, NotFound, Waits
from climate.compute.models.node import FREEPOOL
from climate.compute.nodes import services
from climate.compute.reservations.batch_lend import Loan, lend
from tests.compute.cloud_factory import Place, node, place


@pytest.fixture
def here(scratch: str, tmp_path: Path) -> Iterator[Place]:
    """Two nodes of the reservation pool, and one outside it."""
    with place(scratch, tmp_path, [node("n1"), node("n2"), node("n3")]) as here:
        services.refresh(here.compute)
        with here.compute.engine.begin() as conn:
            conn.execute(text("UPDATE compute_nodes SET pool = :pool WHERE name <> 'n3'"), {"pool": FREEPOOL})
        yield here


def test_each_loan_is_refused_for_its_own_reason(here: Place) -> None:
    loans = [
        Loan("good", "project", ("n1",), 5),
        Loan("outside", "project", ("n3",), 6),
        Loan("unknown", "project", ("n9",), 7),
    ]
    good, *refused = lend(here.compute, loans)
    assert good is None
    assert [type(one) for one in refused] == [Busy, NotFound]


def test_two_loans_of_one_node_wait(here: Place) -> None:
    results = lend(here.compute, [Loan("first", "project", ("n1",), 5), Loan("second", "project", ("n1",), 6)])
    assert [type(one) for one in results] == [Waits, Waits]
