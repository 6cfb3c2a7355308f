"""Steps of the cluster demo: members of one node fail, return and join while their servers keep running."""

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from climate.cli.dates import wire
from climate.cli.demo import cleanup, clusters, lease_steps
from climate.cli.demo.actors import MARK, Play, require, status
from climate.cli.demo.clusters import FAR, NEAR, NODE, RACK, SPARE, Ground, Rack
from climate.cli.demo.journal_steps import history_is_told, journal_agrees

if TYPE_CHECKING:
    from climate.cli.response_types.servers import ServerAction

HOME = f"var/demo-{clusters.FOLDER}"
FLAVOR = {"ram": 1024, "vcpus": 1, "disk": 1}
"""Size of the servers: MB of memory, GB of disk."""
SERVERS = 4
LENGTH = timedelta(minutes=20)
"""Length of the lease unless it is ended."""
SERVER_MARK = b"CLIMATE_SERVER="
"""Environment variable with the id of a server in its process."""
WORD = "written before its member failed"
OF_DRIVER = {"headers": {"OpenStack-API-Version": "compute 2.47"}}
"""Headers of a request for diagnostics with the keys of the driver; since 2.48 all drivers have the same."""

PATIENCE = 180.0
"""Timeout in seconds for the detection of a lost service and the next report."""


@dataclass
class ClusterPlay(Play):
    """State of the cluster demo."""

    rack: Rack = field(default_factory=lambda: Rack({}))
    ground: Ground = field(default_factory=lambda: Ground(Path()))
    servers: list[str] = field(default_factory=list)

    def members(self) -> dict[str, str]:
        """Return the member of each server."""
        diagnostics = {
            server: self.admin.json("compute", "GET", f"/servers/{server}/diagnostics", **OF_DRIVER)
            for server in self.servers
        }
        return {one: str(known["member"]) for one, known in diagnostics.items()}

    def processes(self) -> dict[str, list[int]]:
        """Return the process ids of each server."""
        result: dict[str, list[int]] = {server: [] for server in self.servers}
        for number, server_id in _processes():
            if server_id in result:
                result[server_id].append(number)
        return {one: sorted(numbers) for one, numbers in result.items()}

    def server_statuses(self) -> set[tuple[str, str]]:
        """Return the statuses of the servers, and their nodes."""
        shown = [self.server_now(server, self.admin) for server in self.servers]
        return {(status(one), lease_steps.node_of(one)) for one in shown}

    def has_memory(self) -> int:
        """Wait until the node has the memory of all present members."""
        return self.awaits(self.ground.memory_mb)

    def awaits(self, memory_mb: int) -> int:
        """Wait until the node has this memory in MB."""
        what = f"node {NODE} to have {memory_mb} MB"
        result = self.until(what, lambda: clusters.memory_mb(self.admin), lambda now: now == memory_mb, PATIENCE)
        return int(result)

    def disk(self, server_id: str) -> Path:
        """Return the path of a file on the disk of a server."""
        return self.ground.home / "servers" / server_id / "disk" / "word"


def cluster_is_a_node(play: ClusterPlay) -> str:
    """A cluster of two members is one node with the memory of both"""
    cleanup.clear(play)
    memory = play.has_memory()
    listed = play.admin.json("compute", "GET", "/os-hypervisors")["hypervisors"]
    names = sorted(one["hypervisor_hostname"] for one in listed)
    require(names == [NODE], f"the nodes are {', '.join(names)}")
    return f"{NODE} has {memory} MB: {NEAR} at its own service, {FAR} behind {RACK}; neither is a node itself"


def cluster_is_kept(play: ClusterPlay) -> str:
    """The cluster is kept for leases"""
    flavor = {"name": f"{MARK}member", **FLAVOR}
    play.flavor = str(play.admin.json("compute", "POST", "/flavors", json={"flavor": flavor})["flavor"]["id"])
    images = [one for one in play.member.pages("image", "/v2/images", "images") if one["status"] == "active"]
    require(bool(images), "no image exists")
    play.image = str(images[0]["id"])
    known = [host["hypervisor_hostname"] for host in play.admin.pages("reservation", "/os-hosts", "hosts")]
    if NODE not in known:
        play.admin.call("reservation", "POST", "/os-hosts", json={"name": NODE})
    hosts = play.admin.pages("reservation", "/os-hosts", "hosts")
    play.hosts = {NODE: next(host for host in hosts if host["hypervisor_hostname"] == NODE)}
    play.until("freepool to hold it", lambda: sorted(play.aggregates().get("freepool", ())), lambda now: NODE in now)
    return f"{NODE} is in freepool"


def lease_starts(play: ClusterPlay) -> str:
    """A lease of the cluster is ACTIVE"""
    start = play.member.now().replace(microsecond=0) + timedelta(seconds=2)
    wanted = {"min": 1, "max": 1, "hypervisor_properties": f'["==", "$hypervisor_hostname", "{NODE}"]'}
    body = {
        "name": f"{MARK}cluster",
        "start_date": wire(start),
        "end_date": wire(start + LENGTH),
        "before_end_date": None,
        "events": [],
        "reservations": [{"resource_type": "physical:host", "resource_properties": "", **wanted}],
    }
    play.lease = play.member.json("reservation", "POST", "/leases", json=body)["lease"]
    lease = lease_steps.settled_lease(play, play.lease["id"], "ACTIVE")
    pool = play.aggregates().get(play.reservation, frozenset())
    require(pool == {NODE}, f"its pool holds {sorted(pool)}")
    return f"{lease['status']}; its pool holds {NODE}"


def servers_are_on_both(play: ClusterPlay) -> str:
    """Servers of the lease are ACTIVE, and the cluster has put them on both members"""
    for number in range(1, SERVERS + 1):
        server_id = play.boot(play.member, f"member-{number}", play.flavor, {"reservation": play.reservation})
        play.servers.append(server_id)
        play.active(server_id)
        play.disk(server_id).write_text(f"{WORD}: {server_id}", encoding="ascii")
    there = sorted(play.members().values())
    require(there == [FAR] * 2 + [NEAR] * 2, f"they are on {', '.join(there)}")
    require(play.server_statuses() == {("ACTIVE", NODE)}, f"they are seen as {sorted(play.server_statuses())}")
    return f"{SERVERS} servers on {NODE}: two on {NEAR}, two on {FAR}"


def member_fails(play: ClusterPlay) -> str:
    """The service of a member is killed: its servers run on the other one, with their disks, ACTIVE all the time"""
    gone = {one for one, member in play.members().items() if member == FAR}
    before, seen = play.processes(), play.server_statuses()
    play.rack.kill()

    def look() -> list[str]:
        seen.update(play.server_statuses())
        return sorted(set(play.members().values()))

    play.until(f"the servers of {FAR} to be on {NEAR}", look, lambda now: now == [NEAR], PATIENCE)
    after = play.until("each server to have a process", play.processes, lambda now: all(now.values()), PATIENCE)
    require(all(len(numbers) == 1 for numbers in after.values()), f"their processes are {after}")
    started = {one for one, numbers in after.items() if numbers != before[one]}
    require(started == gone, f"{len(started)} servers were started anew, and {len(gone)} were on {FAR}")
    _keep_their_disks(play)
    require(seen == {("ACTIVE", NODE)}, f"they were seen as {sorted(seen)}")
    return f"{len(gone)} servers were started on {NEAR}, once each; the scheduler still has all of them on {NODE}"


def restarts_are_told(play: ClusterPlay) -> str:
    """The actions of their owners show that they have kept their disks"""

    def look() -> list[str]:
        return [action for server in play.servers for action in _actions(play, server)]

    result = play.until("the actions of the servers", look, lambda now: now.count("reboot") == 2, PATIENCE)
    shown = [play.server_now(server) for server in play.servers]
    faults = [one for one in shown if one is not None and one.get("fault")]
    require(not faults, f"{len(faults)} servers have a fault")
    return f"their actions tell {result.count('reboot')} restarts, and no fault"


def node_is_smaller(play: ClusterPlay) -> str:
    """The node is smaller by the member from the next report on"""
    memory = play.awaits(clusters.SIZES["memory_mb"])
    return f"{NODE} has {memory} MB; it is the same node, in the same lease"


def member_returns(play: ClusterPlay) -> str:
    """The member comes back: the node has its memory again, and no server runs twice"""
    before = play.processes()
    play.rack.start()
    memory = play.has_memory()
    require(play.processes() == before, f"the processes are {play.processes()}")
    _keep_their_disks(play)
    return f"{NODE} has {memory} MB, and each server is the process that it was"


def member_joins(play: ClusterPlay) -> str:
    """A third member joins, and servers move to it for balance without being stopped"""
    before = play.processes()
    play.ground.join(SPARE)
    memory = play.has_memory()
    result = play.until("servers to move", play.members, lambda now: SPARE in now.values(), PATIENCE)
    there = [member for member in result.values() if member == SPARE]
    require(play.processes() == before, f"the processes are {play.processes()}")
    require(play.server_statuses() == {("ACTIVE", NODE)}, f"they are seen as {sorted(play.server_statuses())}")
    return f"{NODE} has {memory} MB, {len(there)} of {SERVERS} servers are on {SPARE}, as the processes that they were"


def lease_ends(play: ClusterPlay) -> str:
    """The lease is ended: its servers are gone, and the cluster is back"""
    lease_steps.lease_ends(play)
    for server_id in play.servers:
        play.until("the servers to go", partial(play.server_now, server_id), lambda now: now is None)
    processes = play.until("the processes to end", play.processes, lambda now: not any(now.values()))
    pools = play.until("the node to be back", play.aggregates, lambda now: NODE in now.get("freepool", ()))
    require(play.reservation not in pools, "its pool is still there")
    left = [server for server in play.servers if os.path.lexists(play.disk(server).parent)]
    require(not left and not any(processes.values()), f"{len(left)} disks are left")
    return f"404, no process and no disk is left; freepool holds {NODE}"


def _processes() -> Iterator[tuple[int, str]]:
    """Yield the process id and the server id of each server process on this machine."""
    for folder in Path("/proc").glob("[0-9]*"):
        marks = [one for one in _environment(folder) if one.startswith(SERVER_MARK)]
        yield from ((int(folder.name), mark.removeprefix(SERVER_MARK).decode("ascii", "replace")) for mark in marks)


def _environment(folder: Path) -> list[bytes]:
    """Return the environment of a process; empty if it has ended or belongs to another user."""
    with suppress(OSError):
        return (folder / "environ").read_bytes().split(b"\0")
    return []


def _keep_their_disks(play: ClusterPlay) -> None:
    lost = [server for server in play.servers if play.disk(server).read_text(encoding="ascii") != f"{WORD}: {server}"]
    require(not lost, f"{len(lost)} servers have lost their disks")


def _actions(play: ClusterPlay, server_id: str) -> list[str]:
    listed: list[ServerAction] = play.member.json("compute", "GET", f"/servers/{server_id}/os-instance-actions")[
        "instanceActions"
    ]
    return [str(one["action"]) for one in listed]


STEPS = (
    cluster_is_a_node,
    cluster_is_kept,
    lease_starts,
    servers_are_on_both,
    member_fails,
    restarts_are_told,
    node_is_smaller,
    member_returns,
    member_joins,
    lease_ends,
    journal_agrees,
    history_is_told,
)
"""Steps in their order; the first line of each docstring is the title."""
