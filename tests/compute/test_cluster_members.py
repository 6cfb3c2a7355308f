"""A cluster with a member behind another compute service: servers are placed and worked on there, and restarted."""

import json
import os
import shutil
import signal
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from climate.compute import Compute, drivers
from climate.compute.clusters.cluster_spec import MemberSpec
from climate.compute.clusters.remote_members import RemoteDriver, RemoteMember, RemoteMembers
from climate.compute.errors import VirtError
from climate.compute.images import image_data
from climate.compute.linux.processes import carrying
from climate.compute.models.flavor import Flavor
from climate.compute.models.node import NodeDefaults, NodeSpec
from climate.compute.models.server import (
    ACTIVE,
    DELETE,
    ERROR,
    PAUSE,
    PAUSED,
    RESUME,
    SHUTOFF,
    START,
    STOP,
    SUSPEND,
    SUSPENDED,
    UNPAUSE,
)
from climate.compute.nodes import services
from climate.compute.servers import actions as asking
from climate.compute.servers import cluster_member, sync_states, unshelve
from climate.compute.servers.tasks import task_worker
from climate.compute.virt import Guest, State
from climate.compute.virt.guest_folders import MARK
from climate.compute.virt.hypervisor_cluster.driver import ClusterOptions
from climate.compute.virt.hypervisor_cluster.member import Member
from climate.compute.virt.hypervisor_cluster.server_placements import ServerPlacements
from climate.compute.virt.multi_node import MultiNodeDriver
from tests.compute.cloud_factory import SERVICE, Place, place

RACK = "rack-7"
SMALL = Flavor("s", "small", 1, 512, 1)
WIDE = Flavor("w", "wide", 1, 3000, 1)
CLUSTER = """
- name: sum
  driver: cluster
  members:
    - {name: near, driver: process, vcpus: 4, memory_mb: 4096, local_gb: 40}
    - {name: far, service: rack-7}
"""
FAR = "- {name: far, cluster: sum, driver: process, vcpus: 4, memory_mb: 4096, local_gb: 40}\n"
PLENTY = NodeDefaults(ram_ratio=1.0, reserved_ram_mb=0)


@dataclass
class Pair:
    """The service of a cluster, and that of one of its members, over one database."""

    here: Place
    rack: Compute
    answers: bool = True
    """Whether the member's service carries out what it is asked."""
    orders: list[dict[str, Any]] = field(default_factory=list)
    """Orders to run a guest, as they were written down."""
    deaf_to: str | None = None
    """A verb that the member's service does not answer."""
    elsewhere: RemoteMembers = field(init=False)
    """The cluster's way to the member."""
    asked: list[str] = field(default_factory=list)
    """Verbs of all orders that found the folder of their guest there, where they name one."""

    @property
    def driver(self) -> MultiNodeDriver:
        driver = self.here.driver
        assert isinstance(driver, MultiNodeDriver)
        return driver

    def ring(self) -> None:
        with self.rack.engine.connect() as conn:
            self.orders += conn.execute(text("SELECT said FROM compute_member_orders WHERE verb = 'run'")).scalars()
            for row in conn.execute(text("SELECT verb, said FROM compute_member_orders")):
                if (self.rack.home / "servers" / str(row.said.get("server_id"))).is_dir():
                    self.asked.append(row.verb)
        for host, order in task_worker.unfinished(self.rack, wait=0):
            if host == RACK and self.answers and self._verb(order) != self.deaf_to:
                task_worker.run_task(self.rack, order)

    def find(self, cluster: NodeSpec, member: MemberSpec) -> Member | None:
        return self.elsewhere.find(cluster, member)

    def hurry(self) -> None:
        """Give orders up after a moment, for tests of members that do not answer."""
        self.elsewhere = replace(self.elsewhere, answer_seconds=0.5)

    def _verb(self, order: str) -> str | None:
        with self.rack.engine.connect() as conn:
            query = text("SELECT verb FROM compute_member_orders WHERE id::text = :id")
            return conn.scalar(query, {"id": order})

    def tend(self) -> None:
        """A round of each service that is there."""
        for compute in [self.rack, self.here.compute] if self.answers else [self.here.compute]:
            services.refresh(compute)
            sync_states.reconcile(compute)
        self.here.settle()

    def fails(self) -> None:
        """The member's service dies, and its servers go on."""
        self.answers = False
        with self.here.compute.engine.begin() as conn:
            conn.execute(text("UPDATE compute_services SET beat_at = '2001-01-01' WHERE host = :host"), {"host": RACK})

    def member(self, server_id: str) -> str | None:
        return self.driver.member_of(Guest(server_id, "", "sum"))

    def status(self, server_id: str) -> str:
        return self.here.look(server_id).status


def processes(server_id: str) -> int:
    return len(list(carrying({MARK: server_id})))


@pytest.fixture
def pair(scratch: str, tmp_path: Path) -> Iterator[Pair]:
    homes = tmp_path / "here", tmp_path / RACK
    for home, entries in zip(homes, (CLUSTER, FAR), strict=True):
        home.mkdir()
        (home / "nodes.yaml").write_text(entries)
    (homes[0] / "images").mkdir()
    (homes[1] / "images").symlink_to(homes[0] / "images")
    with place(scratch, homes[0], [], drivers(homes[0])) as here:
        made = Pair(here, replace(here.compute, home=homes[1], service_host=RACK, driver=drivers(homes[1])))
        made.elsewhere = RemoteMembers(here.compute.engine, homes[0], SERVICE, lambda: made.ring(), 60.0)
        here.driver = drivers(homes[0], clusters=ClusterOptions(PLENTY, made.find))
        here.compute = replace(here.compute, driver=here.driver)
        services.refresh(made.rack)
        services.refresh(here.compute)
        yield made
        for compute in (here.compute, made.rack):
            for server_id in compute.driver.members["process"].states():  # type: ignore[attr-defined]
                compute.driver.members["process"].delete(server_id)  # type: ignore[attr-defined]


def booted(pair: Pair, member: str, flavor: Flavor = SMALL, **wanted: Any) -> str:
    """A new server, which the cluster put on this member."""
    for _ in range(4):
        server = pair.here.boot_one(flavor, **wanted)
        assert server.status == ACTIVE, server.fault
        if pair.member(server.id) == member:
            return server.id
    raise AssertionError(f"nothing was put on {member}")


def do(pair: Pair, server_id: str, *tasks: str) -> str:
    for task in tasks:
        asking.request_task(pair.here.compute, server_id, task)
        pair.here.settle()
    return pair.status(server_id)


def test_a_member_behind_another_service_is_part_of_the_node_and_no_node_of_its_own(pair: Pair) -> None:
    assert [(spec.name, spec.memory_mb) for spec in pair.driver.nodes()] == [("sum", 8192)]
    assert list(pair.rack.driver.nodes()) == []
    assert pair.here.count("compute_nodes") == 1


def test_members_are_offered_and_taken_where_networks_are_real_too(pair: Pair) -> None:
    for wired in (False, True):
        far = drivers(pair.rack.home, wired=wired)
        assert [name for name, _ in far.offers()] == ["sum"]
        near = drivers(pair.here.compute.home, wired=wired, clusters=ClusterOptions(find_elsewhere=pair.find))
        assert [spec.memory_mb for spec in near.nodes()] == [8192]


def test_a_cluster_of_a_driver_that_there_is_not_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "nodes.yaml").write_text(CLUSTER.replace("driver: process", "driver: vcenter"))
    driver = drivers(tmp_path)
    assert list(driver.nodes()) == []
    reason = "there is no driver 'vcenter' for its members, only container, memory, process, qemu"
    assert driver.failures == {"sum": reason}


def test_a_server_lives_through_everything_on_a_member_elsewhere(pair: Pair, tmp_path: Path) -> None:
    server_id = booted(pair, "far")
    assert (tmp_path / RACK / "servers" / server_id).is_dir()
    assert not (tmp_path / "here" / "servers" / server_id).exists()
    assert do(pair, server_id, PAUSE) == PAUSED
    assert do(pair, server_id, UNPAUSE, STOP) == SHUTOFF
    assert do(pair, server_id, START) == ACTIVE
    pair.tend()
    assert pair.status(server_id) == ACTIVE
    image_id = asking.snapshot(pair.here.compute, server_id, "copy")
    pair.here.settle()
    assert image_data.content_file(pair.here.compute, image_id).stat().st_size > 0
    assert "boot finished" in pair.driver.console(Guest(server_id, "", "sum"), None)
    asking.request_task(pair.here.compute, server_id, DELETE)
    pair.here.settle()
    assert not (tmp_path / RACK / "servers" / server_id).exists()
    assert (processes(server_id), pair.here.count("compute_member_orders")) == (0, 0)


@pytest.mark.parametrize("trouble", [None, "its entry is gone"])
def test_the_service_of_a_member_leaves_the_servers_of_the_cluster_alone(pair: Pair, trouble: str | None) -> None:
    services.furnish(pair.here.compute)
    server_id = booted(pair, "far")
    rack = pair.rack
    if trouble is not None:
        (rack.home / "nodes.yaml").write_text("[]\n")
    assert bool(rack.driver.offers()) is (trouble is None)  # type: ignore[attr-defined]
    assert server_id in rack.driver.states()
    sync_states.reconcile(rack)
    assert processes(server_id) == 1
    assert (rack.home / "servers" / server_id).is_dir()


def test_the_service_of_a_member_makes_config_drives_which_no_order_carries(pair: Pair) -> None:
    server_id = booted(pair, "far", user_data=b64encode(b"#!/bin/sh\n").decode())
    drive = pair.rack.home / "servers" / server_id / "config" / "openstack" / "latest"
    assert (drive / "user_data").read_bytes() == b"#!/bin/sh\n"
    assert json.loads((drive / "meta_data.json").read_text())["uuid"] == server_id
    assert [one["guest"]["config"] for one in pair.orders] == [{}]


def test_administrators_see_the_member(pair: Pair) -> None:
    for member in ("near", "far"):
        server = pair.here.look(booted(pair, member))
        assert cluster_member.member_of(pair.here.compute, server) == member
    assert cluster_member.member_of(pair.here.compute, replace(server, node="gpu-1")) is None
    assert cluster_member.member_of(pair.here.compute, replace(server, node=None)) is None


def test_a_process_that_died_on_the_member_is_noticed(pair: Pair) -> None:
    server_id = booted(pair, "far")
    os.kill(next(iter(carrying({MARK: server_id}))).number, signal.SIGKILL)
    pair.tend()
    assert pair.status(server_id) == SHUTOFF
    assert do(pair, server_id, START) == ACTIVE


def test_servers_of_a_service_that_dies_run_once_on_another_member(pair: Pair, tmp_path: Path) -> None:
    server_id = booted(pair, "far")
    before = next(iter(carrying({MARK: server_id})))
    pair.fails()
    pair.tend()
    assert (pair.member(server_id), pair.status(server_id), processes(server_id)) == ("near", ACTIVE, 1)
    assert next(iter(carrying({MARK: server_id}))) != before
    assert [spec.memory_mb for spec in pair.driver.nodes()] == [4096]
    pair.answers = True
    pair.tend()
    pair.tend()
    assert not (tmp_path / RACK / "servers" / server_id).exists()
    assert (pair.member(server_id), pair.status(server_id), processes(server_id)) == ("near", ACTIVE, 1)
    assert [spec.memory_mb for spec in pair.driver.nodes()] == [8192]


def share_disks(pair: Pair) -> None:
    """Let both services keep their guests in one folder, as on storage that both machines reach."""
    (pair.here.compute.home / "servers").mkdir(exist_ok=True)
    shutil.rmtree(pair.rack.home / "servers", ignore_errors=True)
    (pair.rack.home / "servers").symlink_to(pair.here.compute.home / "servers")
    pair.tend()


def wrote(pair: Pair, server_id: str, home: Path) -> Path:
    """Write a file on the disk of a server, as the server does it."""
    file = home / "servers" / server_id / "disk" / "written"
    file.write_text("by the server")
    return file


def actions(pair: Pair, server_id: str) -> list[tuple[str, str]]:
    """The actions of a server that nobody asked for."""
    with pair.rack.engine.connect() as conn:
        query = "SELECT action, message FROM compute_actions WHERE server_id = :id AND user_id = 'climate'"
        return [(row.action, row.message) for row in conn.execute(text(query), {"id": server_id})]


def test_a_server_keeps_its_disk_where_the_services_share_the_folder_of_their_guests(pair: Pair) -> None:
    share_disks(pair)
    server_id = booted(pair, "far")
    file = wrote(pair, server_id, pair.rack.home)
    before = next(iter(carrying({MARK: server_id})))
    pair.fails()
    pair.tend()
    assert (pair.member(server_id), pair.status(server_id), processes(server_id)) == ("near", ACTIVE, 1)
    assert next(iter(carrying({MARK: server_id}))) != before
    assert file.read_text() == "by the server"
    assert pair.here.look(server_id).fault is None
    assert actions(pair, server_id) == [("reboot", "its machine failed: it was restarted with its disk")]
    pair.answers = True
    for _ in range(2):
        pair.tend()
    assert (pair.member(server_id), processes(server_id), file.exists()) == ("near", 1, True)
    assert len(actions(pair, server_id)) == 1


def test_a_member_whose_storage_is_gone_is_offered_no_more_and_keeps_the_name_of_its_disks(pair: Pair) -> None:
    share_disks(pair)
    pair.tend()
    disks = _reported(pair)
    folder = pair.rack.home / "servers"
    shared = folder.readlink()
    folder.unlink()
    folder.mkdir()  # what is below the place of a mount
    with pair.here.compute.engine.begin() as conn:
        conn.execute(text("UPDATE compute_cluster_members SET seen_at = '2001-01-01'"))
    pair.tend()
    assert disks
    assert (_reported(pair), _is_offered(pair)) == (disks, False)
    shutil.rmtree(folder)
    folder.symlink_to(shared)
    pair.tend()
    assert (_reported(pair), _is_offered(pair)) == (disks, True)


def _reported(pair: Pair) -> str:
    with pair.here.compute.engine.connect() as conn:
        return str(conn.scalar(text("SELECT disks FROM compute_cluster_members WHERE name = 'far'")))


def _is_offered(pair: Pair) -> bool:
    with pair.here.compute.engine.connect() as conn:
        return bool(conn.scalar(text("SELECT seen_at > '2002-01-01' FROM compute_cluster_members WHERE name = 'far'")))


def test_a_service_beats_though_a_folder_of_its_guests_cannot_be_marked(pair: Pair) -> None:
    folder = pair.rack.home / "servers"
    folder.mkdir(exist_ok=True)
    (folder / ".services").write_text("no folder")
    pair.fails()
    services.refresh(pair.rack)
    with pair.here.compute.engine.connect() as conn:
        beat = text("SELECT beat_at > '2002-01-01' FROM compute_services WHERE host = :host")
        assert conn.scalar(beat, {"host": RACK})


def test_a_server_that_loses_its_disk_says_so(pair: Pair) -> None:
    server_id = booted(pair, "far")
    wrote(pair, server_id, pair.rack.home)
    pair.fails()
    pair.tend()
    server = pair.here.look(server_id)
    assert (server.status, pair.member(server_id)) == (ACTIVE, "near")
    assert not (pair.here.compute.home / "servers" / server_id / "disk" / "written").exists()
    assert server.fault is not None
    assert server.fault["message"] == sync_states.DISK_LOST
    assert [action for action, _ in actions(pair, server_id)] == ["rebuild"]
    pair.tend()
    assert len(actions(pair, server_id)) == 1
    assert do(pair, server_id, STOP, START) == ACTIVE
    assert pair.here.look(server_id).fault is None


def test_a_report_waits_until_nothing_is_under_way_for_the_server(pair: Pair) -> None:
    server_id = booted(pair, "far")
    pair.fails()
    asking.request_task(pair.here.compute, server_id, PAUSE)
    pair.here.rings.rung.clear()
    sync_states.reconcile(pair.here.compute)
    assert actions(pair, server_id) == []
    pair.here.rings(SERVICE, server_id)
    pair.here.settle()
    assert pair.status(server_id) == PAUSED
    pair.tend()
    assert [action for action, _ in actions(pair, server_id)] == ["rebuild"]


def test_a_server_that_is_shut_off_is_started_with_its_disk_while_its_member_is_down(pair: Pair) -> None:
    share_disks(pair)
    server_id = booted(pair, "far")
    file = wrote(pair, server_id, pair.rack.home)
    assert do(pair, server_id, STOP) == SHUTOFF
    pair.fails()
    pair.tend()
    assert (pair.status(server_id), processes(server_id)) == (SHUTOFF, 0)
    assert do(pair, server_id, START) == ACTIVE
    assert (pair.member(server_id), processes(server_id), file.exists()) == ("near", 1, True)


@pytest.mark.parametrize(
    ("tasks", "status", "recorded"),
    [
        ([STOP], SHUTOFF, State.DEAD),
        ([PAUSE], PAUSED, State.PAUSED),
        ([PAUSE, UNPAUSE], ACTIVE, State.RUNNING),
        ([SUSPEND], SUSPENDED, State.SUSPENDED),
        ([SUSPEND, RESUME], ACTIVE, State.RUNNING),
    ],
)
def test_an_action_is_recorded_though_the_member_then_does_not_say_how_its_servers_are(
    pair: Pair, tasks: list[str], status: str, recorded: State
) -> None:
    server_id = booted(pair, "far")
    pair.hurry()
    pair.deaf_to = "states"
    assert do(pair, server_id, *tasks) == status
    entry = ServerPlacements.of(pair.here.compute.home, "sum").get(server_id)
    assert entry is not None
    assert entry.state is recorded


def test_a_server_that_was_stopped_is_not_started_elsewhere_when_its_silent_member_fails(pair: Pair) -> None:
    share_disks(pair)
    server_id = booted(pair, "far")
    pair.hurry()
    pair.deaf_to = "states"
    assert do(pair, server_id, STOP) == SHUTOFF
    pair.fails()
    for _ in range(2):
        pair.tend()
    assert (pair.status(server_id), processes(server_id)) == (SHUTOFF, 0)
    assert actions(pair, server_id) == []


def test_services_that_share_the_folder_of_their_guests_leave_each_others_alone(pair: Pair) -> None:
    services.furnish(pair.here.compute)
    share_disks(pair)
    with (pair.here.compute.home / "nodes.yaml").open("a") as file:
        file.write("- {name: plain, driver: process, vcpus: 4, memory_mb: 4096, local_gb: 40, zone: apart}\n")
    services.refresh(pair.here.compute)
    server = pair.here.boot_one(SMALL, zone="apart")
    assert (server.status, server.node) == (ACTIVE, "plain")
    for _ in range(2):
        pair.tend()
    assert (pair.status(server.id), processes(server.id)) == (ACTIVE, 1)
    asking.request_task(pair.here.compute, server.id, DELETE)
    pair.here.settle()
    assert processes(server.id) == 0


def test_a_server_that_is_deleted_leaves_no_process_on_a_member_that_shares_its_disk(pair: Pair) -> None:
    share_disks(pair)
    server_id = booted(pair, "far")
    asking.request_task(pair.here.compute, server_id, DELETE)
    pair.here.settle()
    assert processes(server_id) == 0
    assert not (pair.rack.home / "servers" / server_id).exists()
    verbs = [verb for verb in pair.asked if verb == "delete"]
    assert len(verbs) == 1, "the member that has the process was asked before the folder went"


def test_a_server_that_was_unshelved_is_restarted_from_its_ordinary_image(pair: Pair) -> None:
    by = {"project_id": "demo", "user_id": "dora", "request_id": "req-1"}
    server_id = booted(pair, "far", image_id=pair.here.image())
    asking.shelve(pair.here.compute, server_id, project_id="demo", by=by)
    pair.here.settle()
    unshelve.unshelve(pair.here.compute, server_id, project_id="demo", by=by)
    pair.here.settle()
    assert pair.status(server_id) == ACTIVE
    entry = ServerPlacements.of(pair.here.compute.home, "sum").get(server_id)
    assert entry is not None
    assert entry.guest.image == image_data.content_file(pair.here.compute, pair.here.look(server_id).image_id or "")


def test_nothing_is_restarted_while_the_fence_command_fails(pair: Pair, tmp_path: Path) -> None:
    done = tmp_path / "fenced"
    entry = "{name: far, service: rack-7, fence: [/bin/sh, -c, 'test -e " + str(done) + "']}"
    (tmp_path / "here" / "nodes.yaml").write_text(CLUSTER.replace("{name: far, service: rack-7}", entry))
    server_id = booted(pair, "far")
    pair.fails()
    pair.tend()
    assert (pair.member(server_id), pair.status(server_id), processes(server_id)) == ("far", ACTIVE, 1)
    done.touch()
    for pid in carrying({MARK: server_id}):
        os.kill(pid.number, signal.SIGKILL)
    pair.tend()
    assert (pair.member(server_id), pair.status(server_id), processes(server_id)) == ("near", ACTIVE, 1)


def test_a_member_that_cannot_be_fenced_is_not_named_to_owners(pair: Pair) -> None:
    server_id = booted(pair, "far")
    cluster = pair.driver.read_nodes()[0].cluster
    assert cluster is not None
    member = RemoteMember(cluster.members[1], pair.driver, "another machine", up=False)
    with pytest.raises(VirtError) as caught:
        member.fence(Guest(server_id, "s", "far"))
    assert str(caught.value) == "its member has failed, and the entry of the member names no command that fences it"
    assert processes(server_id) == 1


def test_a_service_that_does_not_answer_gets_no_later_order(pair: Pair) -> None:
    pair.hurry()
    pair.answers = False
    placed = [pair.here.boot_one(SMALL) for _ in range(2)]
    lost = [server for server in placed if server.status == ERROR]
    assert len(lost) == 1
    assert lost[0].fault is not None
    assert RACK not in str(lost[0].fault)
    assert pair.here.count("compute_member_orders", "verb = 'run'") == 0
    pair.answers = True
    pair.ring()
    assert processes(lost[0].id) == 0


def test_an_order_for_a_server_that_is_elsewhere_by_now_is_refused(pair: Pair) -> None:
    server_id = booted(pair, "near")
    cluster = pair.driver.read_nodes()[0].cluster
    assert cluster is not None
    far = RemoteMembers(pair.here.compute.engine, pair.here.compute.home, "another", pair.ring, 60.0)
    with pytest.raises(VirtError, match="is not on the cluster any more"):
        RemoteDriver(far, cluster.members[1], "sum").run(Guest(server_id, "s", "far"))
    assert processes(server_id) == 1


def test_what_fits_no_member_is_refused_by_the_scheduler(pair: Pair) -> None:
    for _ in range(2):
        assert pair.here.boot_one(Flavor("m", "m", 1, 2000, 1)).status == ACTIVE
    services.refresh(pair.here.compute)
    refused = pair.here.boot_one(WIDE)
    assert refused.status == ERROR
    assert refused.node is None
    assert pair.driver.states().get(refused.id) is None


def test_a_restart_of_the_service_adopts_what_runs_everywhere(pair: Pair) -> None:
    near, far = booted(pair, "near"), booted(pair, "far")
    far_elsewhere = RemoteMembers(pair.here.compute.engine, pair.here.compute.home, SERVICE, pair.ring, 60.0)
    anew = drivers(pair.here.compute.home, clusters=ClusterOptions(PLENTY, far_elsewhere.find))
    assert {near: State.RUNNING, far: State.RUNNING}.items() <= dict(anew.states()).items()
    assert [anew.member_of(Guest(one, "", "sum")) for one in (near, far)] == ["near", "far"]
