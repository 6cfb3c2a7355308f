"""Reports of servers: whatever changes is reported, and the top cell ends with the child's last state of each."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, text
from structlog.testing import capture_logs

from climate.compute.cells.servers import report_fields as server_report
from climate.compute.cells.servers import sync
from climate.compute.errors import Conflict, NotFound
from climate.compute.models.server import DELETE, PAUSE, START, STOP, UNPAUSE, Server
from climate.compute.servers import actions, create, properties
from climate.compute.store.cells import changes
from climate.compute.store.cells import servers as cell_servers
from tests.campaign import length
from tests.compute.cloud_factory import HUGE, Place, node, place, request
from tests.databases import unsafe

CELL = "api!child-cell2!grandchild-cell1"
BY = {"project_id": "demo", "user_id": "dora", "request_id": "req-1"}


@dataclass
class Line:
    """Messages from a child to the top, which arrive when somebody lets them."""

    child: Place
    top: Place
    sent: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    deleted: list[tuple[str, str]] = field(default_factory=list)

    def tell(self, conn: Connection, method: str, kwargs: Mapping[str, Any]) -> None:
        self.sent.append((method, json.loads(json.dumps(kwargs))))

    def order(self, conn: Connection, cell: str, server_id: str) -> None:
        self.deleted.append((cell, server_id))

    def report(self) -> int:
        return sync.report_changes(self.child.compute, self.tell)

    def deliver(self, method: str, kwargs: Mapping[str, Any], cell: str = CELL) -> set[str]:
        if method == sync.UPDATE:
            return sync.update_at_top(self.top.compute, cell, kwargs["instances"], self.order)
        return sync.destroy_at_top(self.top.compute, cell, kwargs["instances"])

    def flush(self) -> None:
        while self.report():
            pass
        while self.sent:
            self.deliver(*self.sent.pop(0))

    def at_top(self, server_id: str) -> Server | None:
        with self.top.compute.engine.connect() as conn:
            return cell_servers.get(conn, server_id)


@pytest.fixture(scope="module")
def databases(make_database: Callable[..., str], cloud_template: str) -> tuple[str, str]:
    return unsafe(make_database(cloud_template)), unsafe(make_database(cloud_template))


@pytest.fixture(scope="module")
def standing(databases: tuple[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Line]:
    """A child with four nodes and its top cell, for all tests here."""
    homes: list[Path] = [tmp_path_factory.mktemp(name) for name in ("child", "top")]
    nodes = [node(f"n{number}") for number in range(1, 5)]
    with place(databases[0], homes[0], nodes) as child, place(databases[1], homes[1], []) as top:
        sync.follow(child.compute, wanted=True)
        yield Line(child, top)


@pytest.fixture
def line(standing: Line) -> Line:
    """The same, with nothing under way."""
    standing.flush()
    standing.deleted.clear()
    return standing


def seen(server: Server) -> dict[str, Any]:
    """All that the top shows of a server which its cell decides."""
    return {
        "status": server.status,
        "task": server.task,
        "flavor": server.flavor.name,
        "addresses": server.addresses,
        "fault": (server.fault or {}).get("message"),
        "launched": server.launched_at,
        "project": server.project_id,
        "user": server.user_id,
    }


def test_a_boot_reaches_the_top_with_its_addresses_and_cell(line: Line) -> None:
    made = line.child.boot_one(metadata={"a": "b"})
    line.flush()
    found = line.at_top(made.id)
    assert found is not None
    assert seen(found) == seen(made)
    assert (found.name, found.metadata, found.build_id) == (made.name, {"a": "b"}, made.build_id)
    assert found.addresses
    assert found.service_host == CELL
    assert found.node is not None
    assert found.node.startswith(f"{CELL}@")


@pytest.mark.parametrize(
    "change",
    [
        lambda here, server: actions.request_task(here.compute, server.id, STOP),
        lambda here, server: here.settle(),
        lambda here, server: actions.request_task(here.compute, server.id, PAUSE),
    ],
    ids=["stop", "settled", "pause"],
)
def test_each_change_of_state_is_noted(line: Line, change: Callable[[Place, Server], None]) -> None:
    server = line.child.boot_one()
    line.flush()
    change(line.child, server)
    line.flush()
    found = line.at_top(server.id)
    assert found is not None
    assert seen(found) == seen(line.child.look(server.id))
    line.child.settle()


def test_floating_addresses_and_faults_reach_the_top(line: Line) -> None:
    server = line.child.boot_one()
    compute = line.child.compute
    with compute.engine.begin() as conn:
        conn.execute(
            text("""WITH pool AS (INSERT INTO compute_floating_pools (name, cidr) VALUES ('p', '192.0.2.0/24')
                                  ON CONFLICT (name) DO UPDATE SET name = 'p' RETURNING id)
                    INSERT INTO compute_floating_addresses (address, pool_id, project_id)
                    SELECT '192.0.2.7', id, 'demo' FROM pool ON CONFLICT DO NOTHING""")
        )
    line.flush()
    with compute.engine.begin() as conn:
        conn.execute(
            text("""UPDATE compute_floating_addresses
                    SET (fixed_network_id, fixed_address) = (SELECT network_id, address FROM compute_addresses
                                                             WHERE server_id = CAST(:id AS uuid))"""),
            {"id": server.id},
        )
    line.flush()
    found = line.at_top(server.id)
    assert found is not None
    assert [address.floating for address in found.addresses] == ["192.0.2.7"]
    refused = line.child.boot(HUGE)[0]
    line.flush()
    found = line.at_top(refused.id)
    assert found is not None
    assert found.status == "ERROR"
    assert seen(found) == seen(refused)


def test_a_deleted_server_is_not_revived_by_late_reports(line: Line) -> None:
    server = line.child.boot_one()
    while line.report():
        pass
    late = list(line.sent)
    actions.request_task(line.child.compute, server.id, DELETE)
    line.child.settle()
    line.flush()
    assert line.at_top(server.id) is None
    for method, kwargs in late * 2:
        assert line.deliver(method, kwargs) == set()
    assert line.at_top(server.id) is None


def test_a_destroy_that_overtakes_the_first_report_stands(line: Line) -> None:
    server = line.child.boot_one()
    while line.report():
        pass
    updates = line.sent[:]
    line.sent.clear()
    assert line.deliver(sync.DESTROY, {"instances": [server.id]}) == {server.id}
    for method, kwargs in updates:
        line.deliver(method, kwargs)
    assert line.at_top(server.id) is None


def test_ce_11_the_top_stores_its_own_keys_only(line: Line) -> None:
    server = line.child.boot_one(metadata={"whose": "child"})
    while line.report():
        pass
    given = next(one for _, kwargs in line.sent for one in kwargs["instances"] if one["id"] == server.id)
    line.sent.clear()
    foreign = {**given, "security_groups": ["x"], "volumes": ["x"], "cell_name": "elsewhere", "other": "meow"}
    line.deliver(sync.UPDATE, {"instances": [foreign]})
    with line.top.compute.engine.begin() as conn:
        cell_servers.change(conn, server.id, {"metadata": {"whose": "top"}, "name": "top"}, line.top.compute.now(conn))
        assert cell_servers.cells_of(conn, [server.id]) == {server.id: CELL}
    again = {**foreign, "version": given["version"] + 1, "metadata": {"key": "later"}, "name": "later", "task": "meow"}
    line.deliver(sync.UPDATE, {"instances": [again]})
    found = line.at_top(server.id)
    assert found is not None
    assert (found.name, found.metadata, found.task) == ("top", {"whose": "top"}, "meow")


def test_only_allowed_keys_leave_a_cell(line: Line) -> None:
    line.child.boot_one(hints={"secret": "hint"}, user_data="c2VjcmV0")
    while line.report():
        pass
    sent = json.dumps(line.sent)
    one = line.sent[-1][1]["instances"][-1]
    assert set(one) == set(server_report.CHECKS)
    for secret in ("secret", "c2VjcmV0", "compute-1", '"n1"', '"n2"', '"n3"', '"n4"'):
        assert secret not in sent


def test_another_cell_cannot_change_a_server(line: Line) -> None:
    server = line.child.boot_one()
    while line.report():
        pass
    given = line.sent[-1][1]["instances"][-1]
    line.flush()
    forged = {**given, "version": given["version"] * 2, "status": "ERROR"}
    assert line.deliver(sync.UPDATE, {"instances": [forged]}, "api!other") == set()
    assert line.deliver(sync.DESTROY, {"instances": [server.id]}, "api!other") == set()
    found = line.at_top(server.id)
    assert found is not None
    assert found.status == "ACTIVE"


@pytest.mark.parametrize(
    "wrong",
    [
        {"id": "no-uuid"},
        {"version": -1},
        {"version": True},
        {"status": "MEOW"},
        {"status": []},
        {"flavor": {}},
        {"addresses": [{"address": 1}]},
        {"addresses": "x"},
        {"fault": {"message": 7}},
        {"created_at": "yesterday"},
        {"image_id": "x"},
        {"name": None},
        {"name": "a\0b"},
        {"metadata": {"a": 1}},
        {"vcpus": 2**40},
    ],
    ids=str,
)
def test_an_unusable_report_is_left_out_and_the_others_are_stored(line: Line, wrong: dict[str, Any]) -> None:
    server = line.child.boot_one()
    while line.report():
        pass
    given = next(one for _, kwargs in line.sent for one in kwargs["instances"] if one["id"] == server.id)
    line.sent.clear()
    bad = {**given, "id": str(uuid4()), **wrong}
    assert line.deliver(sync.UPDATE, {"instances": [bad, None, 7, given]}) == {server.id}
    actions.request_task(line.child.compute, server.id, DELETE)
    line.child.settle()


def test_ce_13_a_fault_at_the_top_is_of_builds_that_no_cell_has(line: Line) -> None:
    draft = replace(line.child.boot_one(), id=str(uuid4()))
    with line.top.compute.engine.begin() as conn:
        cell_servers.begin(conn, [draft])
    assert sync.fault_at_top(line.top.compute, [draft.id, "nonsense"], "No cell") == {draft.id}
    found = line.at_top(draft.id)
    assert found is not None
    assert (found.status, (found.fault or {})["message"], found.service_host) == ("ERROR", "No cell", None)
    reported = line.child.boot_one()
    line.flush()
    assert sync.fault_at_top(line.top.compute, [reported.id], "No cell") == set()


def test_a_server_that_was_deleted_before_any_cell_reported_it_is_deleted_where_it_appears(line: Line) -> None:
    server = line.child.boot_one()
    with line.top.compute.engine.begin() as conn:
        cell_servers.begin(conn, [server])
        cell_servers.abandon(conn, server.id, line.top.compute.now(conn))
    line.flush()
    assert line.deleted == [(CELL, server.id)]
    assert line.at_top(server.id) is None
    cell_changes_of(line, server.id)
    line.flush()
    assert line.deleted == [(CELL, server.id)]


def cell_changes_of(line: Line, server_id: str) -> None:
    with line.child.compute.engine.begin() as conn:
        changes.note(conn, [server_id])


def test_nothing_is_noted_in_a_cell_without_a_parent(line: Line) -> None:
    sync.follow(line.child.compute, wanted=False)
    try:
        count = line.child.count("pg_trigger", "tgname LIKE 'compute_cell%'")
        server = line.child.boot_one()
        assert (count, line.child.count("compute_cell_changes")) == (0, 0)
    finally:
        sync.follow(line.child.compute, wanted=True)
    line.flush()
    found = line.at_top(server.id)
    assert found is not None
    assert seen(found) == seen(server)


def test_many_changes_of_one_server_are_one_report(line: Line) -> None:
    server = line.child.boot_one()
    line.flush()
    for task in (STOP, START, PAUSE, UNPAUSE):
        actions.request_task(line.child.compute, server.id, task)
        line.child.settle()
    assert line.report() == 1
    assert len(line.sent) == 1


@pytest.mark.parametrize(("keys", "messages", "metadata"), [(60, 2, 60), (128, 1, 0)])
def test_large_reports_are_sent_in_parts(line: Line, keys: int, messages: int, metadata: int) -> None:
    letter = "\N{GRINNING FACE}"  # twelve characters in a message
    words = {f"{number:03}": letter * (100 if metadata else 255) * 8 for number in range(keys)}
    made = [line.child.boot_one() for _ in range(2)]
    line.flush()
    with line.child.compute.engine.begin() as conn:
        for server in made:
            conn.execute(
                text("UPDATE compute_servers SET metadata = CAST(:words AS jsonb) WHERE id = CAST(:id AS uuid)"),
                {"words": json.dumps(words), "id": server.id},
            )
    line.report()
    assert len(line.sent) == messages
    assert {len(one["metadata"]) for _, kwargs in line.sent for one in kwargs["instances"]} == {metadata}
    for server in made:
        actions.request_task(line.child.compute, server.id, DELETE)
    line.child.settle()


LIVES = st.lists(
    st.tuples(st.integers(0, 2), st.sampled_from([STOP, START, PAUSE, UNPAUSE, DELETE, "rename", "report", "settle"])),
    max_size=14,
)


@settings(max_examples=length(10, 40))
@given(lives=LIVES, data=st.data())
def test_any_order_and_repetition_of_reports_leads_to_the_state_of_the_child(
    standing: Line, lives: list[tuple[int, str]], data: st.DataObject
) -> None:
    line = standing
    _clear(line)
    servers = create.boot(line.child.compute, request(count=3))
    line.report()
    for place_of, step in lives:
        _live(line, servers[place_of].id, step)
    line.child.settle()
    while line.report():
        pass
    messages = data.draw(st.permutations([*line.sent, *data.draw(st.lists(st.sampled_from(line.sent), max_size=4))]))
    line.sent.clear()
    for method, kwargs in messages:
        line.deliver(method, kwargs)
    with line.child.compute.engine.connect() as conn:
        there = {server.id: seen(server) for server in changes.read(conn, [server.id for server in servers])[0]}
    found = {server.id: line.at_top(server.id) for server in servers}
    assert {server_id: seen(server) for server_id, server in found.items() if server} == there


def _clear(line: Line) -> None:
    """Delete the servers of the example before, which may have ended anywhere."""
    with line.child.compute.engine.connect() as conn:
        left = list(conn.execute(text("SELECT id::text FROM compute_servers")).scalars())
    for server_id in left:
        actions.request_task(line.child.compute, server_id, DELETE)
    line.child.settle()
    line.flush()


def _live(line: Line, server_id: str, step: str) -> None:
    if step == "report":
        line.report()
    elif step == "settle":
        line.child.settle()
    else:
        with suppress(Conflict, NotFound):
            if step == "rename":
                properties.describe(line.child.compute, server_id, {"name": "again"})
            else:
                actions.request_task(line.child.compute, server_id, step)


def test_a_server_that_cannot_be_read_keeps_no_other_from_being_reported(line: Line) -> None:
    broken, whole = line.child.boot_one(), line.child.boot_one()
    with line.child.compute.engine.begin() as conn:
        conn.execute(text("UPDATE compute_servers SET flavor = '{}' WHERE id = :id"), {"id": broken.id})
    try:
        with capture_logs() as logged:
            while line.report():
                pass
        assert [one["item"] for one in logged if one["log_level"] == "error"] == [broken.id]
        assert {method for method, _ in line.sent} == {sync.UPDATE}, "none is reported as deleted"
        line.flush()
        assert line.at_top(whole.id) is not None
    finally:
        with line.child.compute.engine.begin() as conn:
            conn.execute(text("DELETE FROM compute_servers WHERE id = :id"), {"id": broken.id})
