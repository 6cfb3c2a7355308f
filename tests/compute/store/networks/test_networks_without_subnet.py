"""Rows of networks without a range: who sees them, and whose they are."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Connection

from climate.compute.store.networks import networks_without_subnet as rows
from tests.compute.recorded_networks import wired_place


@pytest.fixture
def conn(scratch: str, tmp_path: Path) -> Iterator[Connection]:
    with wired_place(scratch, tmp_path) as made, made.compute.engine.begin() as opened:
        yield opened


def made(conn: Connection, **values: object) -> rows.Outline:
    return rows.create(
        conn, {"label": "n", "manager": "vlan", "interface": None, "vlan": None, "project_id": None, **values}
    )


def test_projects_see_external_networks_and_those_that_they_created(conn: Connection) -> None:
    own = made(conn, vlan=2000, project_id="p", by_project=True)
    theirs, outside = made(conn, project_id="p"), made(conn, manager=None)
    seen = {who: [one.id for one in rows.listed(conn) if one.is_seen_by(who)] for who in (None, "p", "other")}
    assert seen == {None: [own.id, theirs.id, outside.id], "p": [own.id, outside.id], "other": [outside.id]}
    assert (rows.count(conn, "p"), rows.count(conn, "other")) == (1, 0)


def test_an_outline_is_changed_and_dropped(conn: Connection) -> None:
    outline = made(conn)
    rows.change(conn, outline.id, {"label": "renamed", "manager": None})
    found = rows.get(conn, outline.id, keep=True)
    assert found is not None
    assert (found.label, found.manager) == ("renamed", None)
    rows.drop(conn, outline.id)
    assert rows.get(conn, outline.id) is None
