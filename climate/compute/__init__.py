"""The bundled cloud: knows no lease; could be lifted out."""

from collections.abc import Callable
from datetime import datetime
from functools import partial
from pathlib import Path

from sqlalchemy import Connection, Engine

from climate.compute import nodes
from climate.compute.context import Cast, Compute
from climate.compute.nodes import demo_nodes
from climate.compute.store.clock import database_time
from climate.compute.virt import VirtDriver
from climate.compute.virt.cluster import ClusterDriver
from climate.compute.virt.memory import MemoryDriver
from climate.compute.virt.process import ProcessDriver

__all__ = ["Cast", "Compute", "build", "demo_nodes"]


def build(
    engine: Engine,
    *,
    home: Path,
    service_host: str,
    cast: Cast,
    now: Callable[[Connection], datetime] = database_time,
    driver: VirtDriver | None = None,
) -> Compute:
    """The bundled cloud over `engine`, with what changes kept in `home`; `driver` None: by nodes.yaml there."""
    home = home.resolve()
    members: dict[str, VirtDriver] = {"process": ProcessDriver(home / "servers"), "memory": MemoryDriver()}
    cluster = ClusterDriver(partial(nodes.read, home), members)
    return Compute(engine, home, service_host, driver or cluster, cast, now)
