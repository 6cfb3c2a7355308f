"""A bundled cloud to test in, over a scratch database."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

from sqlalchemy import Engine, Table, text

from climate.compute import Compute, build
from climate.compute.cells.options import CellOptions
from climate.compute.images import image_data
from climate.compute.models.flavor import Flavor
from climate.compute.models.image import Image
from climate.compute.models.node import NodeSpec
from climate.compute.models.request import BootRequest
from climate.compute.models.server import Server
from climate.compute.nodes import services
from climate.compute.servers import actions, create
from climate.compute.servers.tasks import task_worker
from climate.compute.store.projects import flavors
from climate.compute.store.projects import images as image_rows
from climate.compute.store.tables import metadata
from climate.compute.virt import VirtDriver
from climate.compute.virt.in_memory import MemoryDriver
from climate.compute.zones.options import Zones
from climate.sealed_secrets import Vault
from tests import databases
from tests.compute import network_factory

SERVICE = "compute-1"
DOWN_SECONDS = 1800.0
"""A service is down when it did not report for so long: no busy machine makes a test that slow."""
TINY = Flavor("t", "tiny", 1, 512, 1)
HALF = Flavor("h", "half", 4, 4096, 10)
"""Two of it fill the memory of a small node once."""
HUGE = Flavor("x", "huge", 1, 10**5, 1)
"""No node has the memory for it."""


@dataclass
class Rings:
    """A doorbell that only remembers; `answer` does what was rung for."""

    rung: list[tuple[str, str]] = field(default_factory=list)

    def __call__(self, service_host: str, /, *server_ids: str) -> None:
        self.rung += [(service_host, server_id) for server_id in server_ids]

    def answer(self, compute: Compute) -> None:
        while self.rung:
            task_worker.run_task(compute, self.rung.pop(0)[1])


@dataclass
class Place:
    """A cloud, its doorbell and its driver."""

    compute: Compute
    rings: Rings
    driver: Any

    def settle(self) -> None:
        """Do all work that was rung for."""
        self.rings.answer(self.compute)

    def boot(self, flavor: Flavor = TINY, **wanted: Any) -> list[Server]:
        return create.boot(self.compute, request(flavor, **wanted))

    def boot_one(self, flavor: Flavor = TINY, **wanted: Any) -> Server:
        """Boot one server, and see it through."""
        made = self.boot(flavor, **wanted)[0]
        self.settle()
        return self.look(made.id)

    def look(self, server_id: str) -> Server:
        return actions.get(self.compute, server_id)

    def image(self, content: bytes = b"bytes") -> str:
        """The id of an image that holds this."""
        made = Image(str(uuid4()), "i", "demo", "active", "private", "raw", "bare", len(content), None)
        image_data.content_file(self.compute, made.id).write_bytes(content)
        with self.compute.engine.begin() as conn:
            image_rows.insert(conn, made)
        return made.id

    def drop_image(self, image_id: str) -> None:
        """Delete an image as its owner does it."""
        with self.compute.engine.begin() as conn:
            image_data.drop(conn, image_id)
        image_data.forget(self.compute, image_id)

    def used(self, name: str) -> tuple[int, int, int]:
        """(vcpus, MB of memory, MB of disk) that are taken of a node."""
        with self.compute.engine.connect() as conn:
            columns = "used_vcpus, used_ram_mb, used_disk_mb"
            row = conn.execute(text(f"SELECT {columns} FROM compute_nodes WHERE name = :name"), {"name": name}).one()
        return row[0], row[1], row[2]

    def drift(self) -> list[str]:
        """Nodes whose taken room is not the sum of their servers'."""
        with self.compute.engine.connect() as conn:
            return list(conn.execute(text(_DRIFT)).scalars())

    def count(self, table: str, where: str = "true") -> int:
        with self.compute.engine.connect() as conn:
            return int(conn.execute(text(f"SELECT count(*) FROM {table} WHERE {where}")).scalar_one())


_DRIFT = """
    SELECT n.name FROM compute_nodes n LEFT JOIN (
        SELECT node_id, vcpus, ram_mb, disk_mb FROM compute_servers
        UNION ALL SELECT held_node_id, vcpus, ram_mb, disk_mb FROM compute_migrations) s ON s.node_id = n.id
    GROUP BY n.id
    HAVING (n.used_vcpus, n.used_ram_mb, n.used_disk_mb) IS DISTINCT FROM
           (coalesce(sum(s.vcpus), 0), coalesce(sum(s.ram_mb), 0), coalesce(sum(s.disk_mb), 0))
"""


def request(flavor: Flavor = TINY, **wanted: Any) -> BootRequest:
    given = {"project_id": "demo", "user_id": "dora", "name": "s", "image_id": None} | wanted
    return BootRequest(flavor=flavor, **given)


def node(name: str, **sizes: Any) -> NodeSpec:
    """A node that only pretends, and keeps nothing for itself."""
    return replace(NodeSpec(name, 8, 8192, 100, driver="memory", reserved_ram_mb=0), **sizes)


def empty(engine: Engine) -> None:
    """All tables of the cloud, with nothing in them."""
    databases.create_tables(engine.url, metadata)
    with engine.begin() as conn:
        databases.empty(conn, metadata.sorted_tables)


Furnish = Callable[[Compute], None]
"""Writes the rows of a cloud beyond its nodes."""


def _turned(text: str) -> str:
    return text[::-1]


@contextmanager
def place(
    database: str,
    home: Path,
    nodes: Sequence[NodeSpec],
    driver: VirtDriver | None = None,
    *,
    tables: Sequence[Table] = (),
    furnish: Furnish | None = None,
) -> Iterator[Place]:
    """A cloud with these nodes, in tables that are emptied before; `furnish` writes more, in further tables."""
    with databases.connected(database) as engine:
        databases.create_tables(engine.url, metadata)
        rings, chosen = Rings(), driver or MemoryDriver(nodes)
        compute = build(engine, home=home, service_host=SERVICE, cast=rings, driver=chosen)
        cells = CellOptions(vault=Vault.of_this_process())
        compute = replace(compute, zones=Zones(seal=_turned, unseal=_turned), cells=cells, down_seconds=DOWN_SECONDS)

        def write() -> None:
            services.refresh(compute)
            with engine.begin() as conn:
                network_factory.network(conn, "private", "10.10.0.0/26")
                for flavor in (TINY, HALF):
                    flavors.insert(conn, flavor)
            if furnish is not None:
                furnish(compute)

        everything = (*metadata.sorted_tables, *tables)
        if driver is not None:  # its nodes may differ the next time
            empty(engine)
            write()
        elif not databases.furnish(engine, f"{getattr(furnish, '__qualname__', '')} {nodes}", everything, write):
            services.refresh(compute, services.Report(chosen.nodes(), time.monotonic()))
        yield Place(compute, rings, chosen)
