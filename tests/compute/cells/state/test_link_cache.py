"""Neighbours and clock as a process remembers them, and the words that make it forget them."""

from collections.abc import Callable
from datetime import timedelta

import psycopg
import pytest

from climate import bootstrap
from climate.compute.cells import neighbours, removal
from climate.compute.cells.messaging import outbox
from climate.compute.cells.models import Broker, Cell
from climate.compute.cells.state.link_cache import NeighbourCache
from climate.compute.store.cells.messages import CHANNEL, NEIGHBOURS
from tests.compute.cells.tree import Tree

NEW = Cell("new", broker=Broker(host="10.0.0.9", secret="a secret of two cells"))


def names(surroundings: NeighbourCache) -> set[str]:
    return set(surroundings.here().links.rows)


def test_neighbours_are_read_once_until_they_are_forgotten(cells: Tree) -> None:
    surroundings = NeighbourCache(cells["top"])
    assert names(surroundings) == {"left", "right"}
    neighbours.create(cells["top"], NEW)
    assert names(surroundings) == {"left", "right"}
    surroundings.forget()
    assert names(surroundings) == {"left", "right", "new"}


def test_neighbours_are_read_again_after_a_while(cells: Tree) -> None:
    surroundings = NeighbourCache(cells["top"], seconds=0)
    assert names(surroundings) == {"left", "right"}
    neighbours.create(cells["top"], NEW)
    assert names(surroundings) == {"left", "right", "new"}


def test_what_was_read_before_a_change_does_not_stay(cells: Tree) -> None:
    """A change that is heard of while the neighbours are being read."""
    top = cells["top"]
    surroundings = NeighbourCache(top)

    class Engine:
        def connect(self) -> object:
            conn = top.engine.connect()
            surroundings.forget()
            return conn

    surroundings.compute = type(
        "Changing", (), {"engine": Engine(), "cells": top.cells, "now": staticmethod(top.now)}
    )()
    surroundings.here()
    surroundings.compute = top
    neighbours.create(top, NEW)
    assert names(surroundings) == {"left", "right", "new"}


def test_time_is_that_of_the_database(cells: Tree) -> None:
    """It may be ahead for as long as the database took to answer, and is never behind."""
    top = cells["top"]
    surroundings = NeighbourCache(top)
    for _ in range(3):
        with top.engine.connect() as conn:
            before = top.now(conn)
        assert timedelta(0) <= surroundings.here().now - before < timedelta(seconds=30)


def _added(cells: Tree) -> None:
    neighbours.create(cells["top"], NEW)


def _changed(cells: Tree) -> None:
    neighbours.change(cells["top"], "left", {}, {"secret": "another secret of both"})


def _deleted(cells: Tree) -> None:
    removal.remove(cells["top"], "left")


def _away(cells: Tree) -> None:
    cells.transport.away.add("left")
    top = cells["top"]
    with top.engine.begin() as conn:
        left = neighbours.with_secrets(top, conn, "left")["left"]
        now = top.now(conn)
    message = outbox.Sent(0, "c11a7e00-0000-4000-8000-000000000001", "targeted", "{}")
    assert outbox.publish(top, cells.transport, (left, now), [message]) == 0


@pytest.mark.parametrize("act", [_added, _changed, _deleted, _away])
def test_processes_are_notified_of_a_change(cells: Tree, act: Callable[[Tree], None]) -> None:
    url = bootstrap.plain_url(cells["top"].engine.url.render_as_string(hide_password=False))
    with psycopg.connect(url, autocommit=True) as listening:
        listening.execute(f"LISTEN {CHANNEL}")
        act(cells)
        heard = [one.payload for one in listening.notifies(timeout=30, stop_after=1)]
    assert heard == [NEIGHBOURS]
