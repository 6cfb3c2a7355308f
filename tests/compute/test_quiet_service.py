"""A compute service whose nodes have not changed compares none of their rows, and notices what has changed."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from sqlalchemy import text

from climate.compute import pending_work
from climate.compute.nodes import nodes_file, services
from climate.compute.nodes.nodes_file import NodesFile
from climate.compute.nodes.services import Report
from climate.compute.reservations import pools
from climate.compute.virt.in_memory import MemoryDriver
from climate.compute.virt.multi_node import MultiNodeDriver
from tests.compute.cloud_factory import Place, node, place
from tests.scenarios.test_statement_counts import counted

NAMES = ["n1", "n2"]


def _write(here: Place, statement: str) -> None:
    with here.compute.engine.begin() as conn:
        conn.execute(text(statement))


def _compared(here: Place, last: Report) -> bool:
    with counted(here.compute.engine) as seen:
        services.refresh(here.compute, last)
    return any("FULL JOIN" in statement for statement in seen)


def _there(here: Place) -> list[str]:
    return sorted(found.name for found in pools.nodes(here.compute))


def test_what_was_reported_is_not_compared_again_until_something_changes(scratch: str, tmp_path: Path) -> None:
    changes: list[Callable[[Place], None]] = [
        lambda here: _write(here, "DELETE FROM compute_nodes WHERE name = 'n2'"),
        lambda here: _write(here, "UPDATE compute_nodes SET present = false WHERE name = 'n2'"),
        lambda here: setattr(here.driver, "specs", (node("n1"), node("n2", vcpus=99))),
    ]
    with place(scratch, tmp_path, [node(name) for name in NAMES]) as here:
        last = Report()
        assert _compared(here, last)
        for change in changes:
            assert not _compared(here, last)
            change(here)
            assert _compared(here, last)
            assert _there(here) == NAMES
        assert not _compared(here, last)
        last.at -= services.LOOK_SECONDS
        assert _compared(here, last), "now and then all are compared, whoever has changed a row by hand"


def test_nodes_of_a_file_are_created_once_until_it_changes(tmp_path: Path) -> None:
    file = NodesFile(tmp_path)
    nodes_file.write(tmp_path, [node("n1")])
    driver = MultiNodeDriver(file.nodes, {"memory": MemoryDriver()})
    found = driver.nodes()
    assert driver.nodes() is found
    nodes_file.write(tmp_path, [node("n1"), node("n2")])
    assert [spec.name for spec in driver.nodes()] == NAMES
    assert driver.nodes()[0].supported == found[0].supported


def test_nobody_is_asked_for_work_where_a_glance_shows_none(here: Place) -> None:
    _write(here, "DELETE FROM compute_network_calls")
    assert not pending_work.read(here.compute).servers
    (server,) = here.boot()
    assert pending_work.read(here.compute).servers
    here.settle()
    _write(here, "DELETE FROM compute_network_calls")
    there = pending_work.read(here.compute)
    assert (there.servers, there.calls, there.messages) == (False, False, False)
    _write(here, "INSERT INTO compute_network_calls (host) VALUES ('there')")
    assert replace(there, calls=True) == pending_work.read(here.compute)
    assert server.id
