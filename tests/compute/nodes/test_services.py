"""Compute services and their many nodes: reported, gone, come back, audited, and out of work (cloud.md F, G.7)."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event, text
from structlog.testing import capture_logs

from climate.compute import Compute
from climate.compute.errors import Conflict, NotFound
from climate.compute.models.node import NodeDefaults, NodeSpec
from climate.compute.models.server import ACTIVE, DELETE, ERROR
from climate.compute.nodes import maintenance, nodes_file, services
from climate.compute.nodes.nodes_file import NodesFile
from climate.compute.reservations import pools
from climate.compute.servers import actions, local_delete
from climate.compute.servers.tasks import task_worker
from climate.compute.virt.in_memory import MemoryDriver
from climate.compute.virt.multi_node import MultiNodeDriver
from climate.database.connections import reading
from tests.compute.cloud_factory import DOWN_SECONDS, HALF, SERVICE, Place, node, place

OTHER = "compute-2"


def report(here: Place, *specs: NodeSpec) -> None:
    here.driver.specs = specs
    services.refresh(here.compute)


def rows(here: Place, columns: str = "name, present", where: str = "true") -> list[tuple[Any, ...]]:
    with here.compute.engine.connect() as conn:
        found = conn.execute(text(f"SELECT {columns} FROM compute_nodes n WHERE {where} ORDER BY service_host, name"))
        return [tuple(row) for row in found]


def find(here: Place, host: str = SERVICE) -> Any:
    return services.listed(here.compute, host)[0]


@contextmanager
def second(here: Place, *specs: NodeSpec) -> Iterator[Compute]:
    """A second service of the same cloud, in a home of its own."""
    home = here.compute.home / "second"
    home.mkdir()
    made = replace(here.compute, service_host=OTHER, home=home, driver=MemoryDriver(specs))
    services.refresh(made)
    yield made


def silent(here: Place, host: str, seconds: float = DOWN_SECONDS + 1) -> None:
    """Let nothing have been heard of a service for a while."""
    with here.compute.engine.begin() as conn:
        conn.execute(
            text("UPDATE compute_services SET beat_at = beat_at - CAST(:ago AS interval) WHERE host = :host"),
            {"ago": timedelta(seconds=seconds), "host": host},
        )


def test_nodes_come_and_go_without_a_restart(here: Place) -> None:
    """VD-2: A, B, C; then A, B; then A, B, C again."""
    a, b, c = node("A"), node("B"), node("C")
    report(here, a, b, c)
    assert rows(here) == [("A", True), ("B", True), ("C", True)]
    number = rows(here, "id", "name = 'C'")[0][0]
    with capture_logs() as said:
        report(here, a, b)
    assert rows(here) == [("A", True), ("B", True)]
    assert f"Deleting orphan compute node {number}" in [line["event"] for line in said]
    report(here, a, b, c)
    assert rows(here) == [("A", True), ("B", True), ("C", True)]
    assert {here.boot_one(HALF).node for _ in range(3)} == {"A", "B", "C"}


def test_what_is_reported_is_written_and_what_is_open_comes_from_the_settings(here: Place) -> None:
    own = node("own", ram_ratio=2.0, reserved_ram_mb=7, disk_least_gb=9, host_ip="10.1.1.1", zone="east")
    full = replace(own, supported=(("x86_64", "kvm", "hvm"),), stats={"gpu": "a100"}, metrics={"load": 0.5})
    bare = NodeSpec("bare", 1, 1, 1)
    compute = replace(here.compute, defaults=NodeDefaults(1.1, 2.2, 0.3, 256, 128))
    here.driver.specs = (full, bare)
    services.refresh(compute)
    assert rows(here, "name, ram_ratio, cpu_ratio, disk_ratio, reserved_ram_mb, reserved_disk_mb") == [
        ("bare", 1.1, 2.2, 0.3, 256, 128),
        ("own", 2.0, 2.2, 0.3, 7, 128),
    ]
    assert rows(here, "disk_least_gb, host_ip, zone, supported, stats, metrics", "name = 'own'") == [
        (9, "10.1.1.1", "east", [["x86_64", "kvm", "hvm"]], {"gpu": "a100"}, {"load": 0.5})
    ]


def test_a_report_that_says_nothing_new_writes_nothing(here: Place) -> None:
    before = rows(here, "name, changed::text, xmin::text, xmax::text")
    services.refresh(here.compute)
    assert rows(here, "name, changed::text, xmin::text, xmax::text") == before
    report(here, *here.driver.specs[:-1], replace(here.driver.specs[-1], vcpus=32))
    after = rows(here, "name, changed::text, xmin::text, xmax::text")
    assert [old[0] for old, new in zip(before, after, strict=True) if old != new] == ["n4"]


def test_a_node_that_grows_stays_the_same_row(here: Place) -> None:
    """VD-8: three members of 8 threads each are 24 vCPUs; a fourth one makes 32, in the same row."""
    report(here, node("cluster", vcpus=24))
    before = rows(here, "id, uuid, vcpus")
    report(here, node("cluster", vcpus=32))
    assert rows(here, "id, uuid, vcpus") == [(*before[0][:2], 32)]


def test_a_node_with_servers_or_an_allocated_one_stays_as_absent_until_it_is_free(here: Place) -> None:
    server = here.boot_one(zone="nova::n1", admin=True)
    pools.enrol(here.compute, "n2", 1)
    report(here, node("n3"))
    assert rows(here) == [("n1", False), ("n2", False), ("n3", True)]
    assert [found.name for found in pools.nodes(here.compute)] == ["n3"]
    assert {here.boot_one(HALF).node for _ in range(2)} == {"n3"}
    pools.withdraw(here.compute, "n2", 1)
    actions.request_task(here.compute, server.id, DELETE)
    here.settle()
    services.refresh(here.compute)
    assert rows(here) == [("n3", True)]


def test_a_file_that_cannot_be_read_takes_no_node_away(scratch: str, tmp_path: Path) -> None:
    nodes_file.write(tmp_path, [node("n1"), node("n2")], "mine.yaml")

    def fresh() -> MultiNodeDriver:
        return MultiNodeDriver(NodesFile(tmp_path, "mine.yaml").nodes, {"memory": MemoryDriver()})

    with place(scratch, tmp_path, [], fresh()) as here:
        (tmp_path / "mine.yaml").write_text("- {name: n1")
        silent(here, SERVICE)
        for driver in (here.driver, fresh()):
            restarted = replace(here.compute, driver=driver)
            with capture_logs() as said:
                services.refresh(restarted)
            assert any("nodes unchanged" in line["event"] for line in said)
            assert rows(here) == [("n1", True), ("n2", True)]
            assert find(here).up
        assert services.ready(here.compute)
        assert not services.ready(replace(here.compute, driver=fresh()))


def test_a_drift_is_corrected_and_reported(here: Place) -> None:
    here.boot(count=3)
    here.settle()
    with capture_logs() as said:
        services.audit(here.compute)
    assert said == []
    with here.compute.engine.begin() as conn:
        conn.execute(text("UPDATE compute_nodes SET used_ram_mb = used_ram_mb + 7 WHERE name IN ('n1', 'n2')"))
        conn.execute(text("UPDATE compute_nodes SET used_servers = 9 WHERE name = 'n4'"))
    assert sorted(here.drift()) == ["n1", "n2"]
    with capture_logs() as said:
        services.audit(here.compute)
    assert sorted(line["node"] for line in said) == ["n1", "n2", "n4"]
    assert here.drift() == []
    counted = "(SELECT count(*) FROM compute_servers s WHERE s.node_id = n.id)"
    assert rows(here, "name", f"used_servers <> {counted}") == []


def test_two_services_share_the_servers_and_each_does_its_own_work(here: Place) -> None:
    """VD-4: the message goes to the service of the node, and its node's room is taken."""
    with second(here, node("m1"), node("m2")) as other:
        made = here.boot(count=6, least=6)
        hosts = {server.id: here.look(server.id).service_host for server in made}
        assert set(hosts.values()) == {SERVICE, OTHER}
        assert {server_id: host for host, server_id in here.rings.rung} == hosts
        for server_id in hosts:  # every ring goes to both, one of which it is not meant for
            task_worker.run_task(here.compute, server_id)
        assert {id_: here.look(id_).status == ACTIVE for id_ in hosts} == {
            id_: host == SERVICE for id_, host in hosts.items()
        }
        for server_id in hosts:
            task_worker.run_task(other, server_id)
        assert {here.look(id_).status for id_ in hosts} == {ACTIVE}
        for compute in (here.compute, other):
            mine = {id_ for id_, host in hosts.items() if host == compute.service_host}
            assert set(compute.driver.guests) == mine  # type: ignore[attr-defined]
        assert here.drift() == []


def test_a_service_that_is_not_heard_of_is_down_until_it_comes_back(here: Place) -> None:
    with second(here, node("m1"), node("m2")) as other:
        silent(here, OTHER)
        assert [service.up for service in services.listed(here.compute)] == [True, False]
        assert {node.name: node.up for node in pools.nodes(here.compute)}["m1"] is False
        assert {here.boot_one(HALF).service_host for _ in range(8)} == {SERVICE}
        assert here.boot(HALF, zone="nova::m1", admin=True)[0].service_host == OTHER  # forced: no filter is asked
        assert here.boot(HALF, count=8, least=8)[0].status == ERROR
        services.refresh(other)
        assert find(here, OTHER).up
        placed = here.boot(HALF)[0]
        assert placed.service_host == OTHER


def test_a_server_of_a_dead_service_is_deleted_all_the_same(here: Place) -> None:
    with second(here, node("m1")) as other:
        dead, alive = (here.boot(HALF, zone=f"nova::{name}", admin=True)[0].id for name in ("m1", "n1"))
        for compute in (here.compute, other):
            for server_id in (dead, alive):
                task_worker.run_task(compute, server_id)
        local_delete.forget(here.compute)
        assert {here.look(one).status for one in (dead, alive)} == {ACTIVE}
        silent(here, OTHER)
        for server_id in (dead, alive):
            actions.request_task(here.compute, server_id, DELETE)
        local_delete.forget(here.compute)
        with pytest.raises(NotFound):
            here.look(dead)
        assert (here.used("m1"), here.drift()) == ((0, 0, 0), [])
        assert here.look(alive).task == DELETE  # that is for its own service, which is there
        task_worker.run_task(here.compute, alive)
        maintenance.remove(here.compute, find(here, OTHER))


def test_who_is_at_the_deletion_is_left_to_it(here: Place) -> None:
    server = here.boot_one()
    actions.request_task(here.compute, server.id, DELETE)
    silent(here, SERVICE)
    with here.compute.engine.begin() as conn:
        conn.execute(text("UPDATE compute_servers SET worker_until = now() + interval '60 seconds'"))
    local_delete.forget(here.compute)
    assert here.look(server.id).task == DELETE


def test_how_long_silence_may_last_is_a_setting(here: Place) -> None:
    silent(here, SERVICE)
    patient = replace(here.compute, down_seconds=2 * DOWN_SECONDS)
    assert not find(here).up
    assert services.listed(patient)[0].up
    assert all(node.up for node in pools.nodes(patient))


def test_a_node_in_maintenance_keeps_its_servers_and_gets_no_new_ones(here: Place) -> None:
    report(here, node("n1"), node("n2"))
    server = here.boot_one(zone="nova::n1", admin=True)
    assert [found.maintenance for found in maintenance.maintain(here.compute, "n1", "new fan")] == ["new fan"]
    assert {here.boot_one().node for _ in range(3)} == {"n2"}
    services.refresh(here.compute)
    assert rows(here, "name, maintenance") == [("n1", "new fan"), ("n2", None)]
    assert here.look(server.id).status == ACTIVE
    maintenance.maintain(here.compute, SERVICE, "all of it")
    assert here.boot()[0].status == ERROR
    assert {found.maintenance for found in maintenance.maintain(here.compute, SERVICE, None)} == {None}
    with pytest.raises(NotFound):
        maintenance.maintain(here.compute, "n9", "?")


def test_two_services_may_have_nodes_of_one_name(here: Place) -> None:
    pools.enrol(here.compute, "n1", 1)
    with second(here, node("n1"), node("n2")) as other:
        assert len([found for found in pools.nodes(here.compute) if found.name == "n1"]) == 2
        with pytest.raises(Conflict, match=r"2 hosts named n1, of the services compute-1, compute-2"):
            maintenance.maintain(here.compute, "n1", "which?")
        with pytest.raises(Conflict, match="2 hosts named n2"):
            pools.enrol(here.compute, "n2", 1)
        pools.enrol(here.compute, "n1", 1)
        pools.lend(here.compute, "r1", "demo", ["n1"], 1)
        assert rows(here, "service_host, pool", "name = 'n1'") == [(SERVICE, "r1"), (OTHER, None)]
        assert here.boot(hints={"reservation": "r1"})[0].service_host == SERVICE
        here.settle()
        other.driver.specs = ()  # type: ignore[attr-defined]
        services.refresh(other)
        assert rows(here, "service_host", "name = 'n1'") == [(SERVICE,)]


def test_what_a_node_reserves_is_not_for_servers(here: Place) -> None:
    """8192 MB with 512 of them kept, at a ratio of 1, have room for 4096 MB once."""
    report(here, node("n1", reserved_ram_mb=512, ram_ratio=1.0))
    assert [here.boot_one(HALF).status for _ in range(2)] == [ACTIVE, ERROR]


def test_any_number_of_nodes_is_reported_in_a_few_statements(here: Place) -> None:
    said: list[str] = []

    @event.listens_for(here.compute.engine, "before_cursor_execute")
    def _count(conn: Any, cursor: Any, statement: str, *rest: Any) -> None:
        said.append(statement)

    report(here, *(node(f"x{number}") for number in range(500)))
    assert len(said) <= 10
    assert len(rows(here)) == 500


WAITING = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"


def test_two_reports_of_a_service_lock_no_nodes_out_of_order(here: Place) -> None:
    """The second one waits for the first: else the first would meet, below a node that it holds, another difference."""
    a, b = node("A"), node("B")
    report(here, a, b)
    services_of = [
        replace(here.compute, driver=MemoryDriver(specs))
        for specs in ((a, replace(b, memory_mb=b.memory_mb * 2)), (replace(a, memory_mb=a.memory_mb * 2), b))
    ]
    with ThreadPoolExecutor(2) as pool:
        with here.compute.engine.begin() as holder, reading(here.compute.engine) as watch:
            holder.execute(text("SELECT FROM compute_nodes WHERE name = 'B' FOR NO KEY UPDATE"))
            done = []
            for count, compute in enumerate(services_of, start=1):
                done.append(pool.submit(services.refresh, compute))
                while watch.scalar(text(WAITING)) != count:
                    assert not done[-1].done()
        for one in done:
            one.result()
    assert rows(here, "name, memory_mb") == [("A", 2 * a.memory_mb), ("B", b.memory_mb)]


def test_a_report_of_unchanged_nodes_is_one_statement(here: Place) -> None:
    here.driver.specs = (node("A"), node("B"))
    last = services.Report()
    said: list[str] = []
    services.refresh(here.compute, last)

    @event.listens_for(here.compute.engine, "before_cursor_execute")
    def _count(conn: Any, cursor: Any, statement: str, *rest: Any) -> None:
        said.append(statement)

    silent(here, SERVICE)
    said.clear()
    services.refresh(here.compute, last)
    assert len(said) == 1, said
    assert find(here).up


@pytest.mark.parametrize(
    "loss", ["DELETE FROM compute_nodes WHERE name = 'B'", "UPDATE compute_nodes SET present = false WHERE name = 'B'"]
)
def test_nodes_that_another_process_has_lost_are_reported_again(here: Place, loss: str) -> None:
    here.driver.specs = (node("A"), node("B"))
    last = services.Report()
    services.refresh(here.compute, last)
    with here.compute.engine.begin() as conn:
        conn.execute(text(loss))
    services.refresh(here.compute, last)
    assert rows(here) == [("A", True), ("B", True)]


def test_services_to_be_woken_are_up_as_in_the_list(here: Place) -> None:
    report(here, node("n1"))
    with second(here, node("n2")):
        for host, change in ((SERVICE, "forced_down = true"), (OTHER, "beat_at = now() - interval '1 day'")):
            assert dict(services.to_beat(here.compute))[host]
            with here.compute.engine.begin() as conn:
                conn.execute(text(f"UPDATE compute_services SET {change} WHERE host = :host"), {"host": host})
            expected = [(one.host, one.up) for one in services.listed(here.compute)]
            assert services.to_beat(here.compute) == expected
            assert not dict(expected)[host]
