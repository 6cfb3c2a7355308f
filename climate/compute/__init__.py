"""The bundled cloud. It does not depend on the reservation engine and can be used without it."""

from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from sqlalchemy import Connection, Engine

from climate.compute.clusters.cluster_spec import CLUSTER
from climate.compute.context import Cast, Compute
from climate.compute.nodes.nodes_file import FILE, NodesFile, demo_nodes
from climate.compute.store.clock import database_time
from climate.compute.virt import VirtDriver
from climate.compute.virt.containers.driver import BubblewrapContainer
from climate.compute.virt.hypervisor_cluster.driver import ClusterOptions, HypervisorClusterDriver, unconnected
from climate.compute.virt.in_memory import MemoryDriver
from climate.compute.virt.multi_node import MultiNodeDriver
from climate.compute.virt.process import ProcessDriver
from climate.compute.virt.qemu.driver import MachineOptions, QemuDriver

__all__ = ["Cast", "Compute", "build", "demo_nodes", "drivers"]


def build(
    engine: Engine,
    *,
    home: Path,
    service_host: str,
    cast: Cast,
    now: Callable[[Connection], datetime] = database_time,
    driver: VirtDriver | None = None,
) -> Compute:
    """Return the bundled cloud on `engine`, with its files in `home`; `driver` None: the driver of nodes.yaml there."""
    home = home.resolve()
    return Compute(engine, home, service_host, driver or drivers(home), cast, now)


def drivers(
    home: Path,
    nodes_file: str = FILE,
    machines: MachineOptions = MachineOptions(),  # noqa: B008  (it does not change)
    *,
    wired: bool = False,
    clusters: ClusterOptions = ClusterOptions(),  # noqa: B008  (it does not change)
) -> MultiNodeDriver:
    """Return the driver of a service: the nodes of its file (relative to `home` or absolute), each with its own driver.

    `wired`: networks are real, and guests are connected to them. `clusters`: dependencies of nodes that are clusters.
    """
    home = home.resolve()
    read_nodes = NodesFile(home, nodes_file).nodes
    members: dict[str, VirtDriver] = {
        "memory": MemoryDriver(),
        "process": ProcessDriver(home / "servers", wired=wired),
        "container": ProcessDriver(home / "containers", BubblewrapContainer(), wired=wired),
        "qemu": QemuDriver(home / "machines", machines.accel, wired=wired, listening=machines.listening),
    }
    connect = clusters.connect if wired else unconnected
    # The cluster driver comes last: its report on servers of clusters overrides that of the drivers of members.
    members[CLUSTER] = HypervisorClusterDriver(
        read_nodes,
        dict(members),
        home,
        clusters.defaults,
        clusters.find_elsewhere,
        machines.limits,
        clusters.vault,
        connect,
    )
    return MultiNodeDriver(read_nodes, members, connect)
