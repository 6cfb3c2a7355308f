"""A cloud whose networks are only written down: its network hosts, its clock, and what must always be true of it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from typing import Any

from sqlalchemy import event, text

from climate.compute import Compute, build
from climate.compute.models.server import DELETE, Server
from climate.compute.network import fixed_ips, floating_ips, networks
from climate.compute.network.creation_request import CreationRequest
from climate.compute.network.driver import DhcpAction, DhcpEvent, Entry
from climate.compute.network.driver.recording import RecordingNetwork
from climate.compute.network.driver.registry import DriverCache
from climate.compute.network.models import Network, Vif
from climate.compute.network.network_options import NetworkOptions
from climate.compute.network.service import network_service
from climate.compute.nodes import services
from climate.compute.servers import actions
from climate.compute.store.networks import fixed_ips as addresses
from climate.compute.store.networks import networks as rows
from climate.compute.store.projects import flavors
from climate.compute.virt.in_memory import MemoryDriver
from tests.compute.cloud_factory import SERVICE, TINY, Place, Rings, empty, node
from tests.conftest import Clock
from tests.databases import connected

ONE, TWO = "net-1", "net-2"
"""Network hosts."""


@dataclass
class Books:
    """The cloud, and the network hosts that it has."""

    place: Place
    clock: Clock
    hosts: dict[str, Compute] = field(default_factory=dict)
    wires: dict[str, RecordingNetwork] = field(default_factory=dict)

    @property
    def compute(self) -> Compute:
        return self.place.compute

    def host(self, name: str = ONE) -> Compute:
        """The network service of that name, with a driver of its own."""
        if name not in self.hosts:
            wire = self.wires[name] = RecordingNetwork()
            self.hosts[name] = replace(self.compute, network_service=name, network_drivers=DriverCache(lambda _: wire))
        return self.hosts[name]

    def wire(self, name: str = ONE) -> RecordingNetwork:
        self.host(name)
        return self.wires[name]

    def tend(self, *names: str, thorough: bool = False) -> None:
        for name in names or (ONE,):
            network_service.run_round(self.host(name), thorough=thorough)

    def settle(self, *names: str) -> None:
        """Beats until nothing is left to be claimed or noted."""
        for _ in range(4):
            self.tend(*names)

    def forward(self, seconds: float) -> None:
        """Let time pass; the nodes stay up."""
        self.clock.forward(seconds=seconds)
        services.refresh(self.compute)

    def make(self, label: str, cidr: str, manager: str | None = None, **wanted: Any) -> list[Network]:
        with self.compute.engine.begin() as conn:
            return networks.create(
                conn, self.compute.network, CreationRequest(label, IPv4Network(cidr), **wanted), manager
            )

    def served(self, label: str, cidr: str, manager: str | None = None, **wanted: Any) -> list[Network]:
        """Networks that the first host serves."""
        made = self.make(label, cidr, manager, **wanted)
        for _ in made:
            self.tend()
        return [self.network(one.id) for one in made]

    def network(self, network_id: str) -> Network:
        with self.compute.engine.begin() as conn:
            return networks.get(conn, network_id)

    def listed(self) -> list[Network]:
        with self.compute.engine.connect() as conn:
            return rows.listed(conn)

    def boot(self, count: int = 1, **wanted: Any) -> list[Server]:
        made = self.place.boot(TINY, count=count, least=wanted.pop("least", count), **wanted)
        self.place.settle()
        return made

    def delete(self, server_id: str) -> None:
        actions.request_task(self.compute, server_id, DELETE)
        self.place.settle()

    def vifs(self, server_id: str) -> list[Vif]:
        with self.compute.engine.connect() as conn:
            return addresses.vifs_of(conn, [server_id])

    def fixed(self, server_id: str) -> list[str]:
        """The addresses of a server, in the order of its interfaces."""
        return [str(address) for vif in self.vifs(server_id) for address in vif.addresses]

    def tell(self, what: DhcpAction, network_id: str, address: str, mac: str, host: str = ONE) -> None:
        """Have a DHCP client do something."""
        self.wire(host).simulate(network_id, what, Entry(mac, IPv4Address(address), "", ""))

    def row(self, address: str) -> tuple[bool, bool, bool]:
        """(associated, allocated, leased) of a fixed address."""
        where = {"address": address}
        with self.compute.engine.connect() as conn:
            columns = "server_id IS NOT NULL, vif_id IS NOT NULL, leased"
            row = conn.execute(text(f"SELECT {columns} FROM compute_addresses WHERE host(address) = :address"), where)
            return tuple(row.one())  # type: ignore[return-value]

    def floating(self, project_id: str = "demo", fixed_address: str | None = None) -> "floating_ips.Floating":
        """A floating address of a project, which stands for a fixed one if that is given."""
        with self.compute.engine.begin() as conn:
            now = self.compute.now(conn)
            pool = floating_ips.pool(conn, None, "public")
            got = floating_ips.allocate(conn, project_id, pool, now)
            if fixed_address is not None:
                floating_ips.associate(conn, got, floating_ips.fixed(conn, project_id, address=fixed_address), now)
            return floating_ips.get(conn, got.id)

    def pool(self, cidr: str = "172.24.4.0/28") -> str:
        """A pool of floating addresses, all of the range but its ends."""
        with self.compute.engine.begin() as conn:
            made = floating_ips.create_pool(conn, "public", IPv4Network(cidr), interface="eth0")
            floating_ips.add(conn, made, IPv4Network(cidr)[0], IPv4Network(cidr)[-1])
            return made

    def note(self, happened: DhcpEvent) -> None:
        with self.compute.engine.begin() as conn:
            fixed_ips.note(conn, happened, self.compute.now(conn))

    def wrong(self) -> list[str]:
        """What is not as it must always be."""
        with self.compute.engine.connect() as conn:
            return [
                f"{what}: {[tuple(row) for row in found]}"
                for what, query in MUST_BE_EMPTY.items()
                if (found := conn.execute(text(query)).all())
            ]

    @contextmanager
    def counted(self) -> Iterator[list[str]]:
        """The statements that are sent meanwhile."""
        sent: list[str] = []

        def note(_conn: Any, _cursor: Any, statement: str, *_: Any) -> None:
            sent.append(statement)

        event.listen(self.compute.engine, "before_cursor_execute", note)
        try:
            yield sent
        finally:
            event.remove(self.compute.engine, "before_cursor_execute", note)


MUST_BE_EMPTY = {
    "available, reserved and held are not the whole network": """
        SELECT n.label, count(a.address) FROM compute_networks n LEFT JOIN compute_addresses a ON a.network_id = n.id
        GROUP BY n.id HAVING count(a.address) <> 2 ^ (32 - masklen(n.cidr)) OR NOT bool_and(a.address << n.cidr)""",
    "an interface without an address": """
        SELECT v.id FROM compute_vifs v
        WHERE v.project_id IS NULL AND NOT EXISTS (SELECT FROM compute_addresses a WHERE a.vif_id = v.id)""",
    "an address on an interface of another server, network or MAC": """
        SELECT a.address FROM compute_addresses a JOIN compute_vifs v ON v.id = a.vif_id
        WHERE (a.server_id, a.network_id, a.mac) IS DISTINCT FROM
              (CASE WHEN v.project_id IS NULL THEN v.server_id ELSE v.id END, v.network_id, v.mac)""",
    "a reserved address in the pool's hands": """
        SELECT a.address FROM compute_addresses a JOIN compute_networks n ON n.id = a.network_id
        WHERE a.reserved AND a.server_id IS NOT NULL AND a.address IS DISTINCT FROM n.vpn_private_address""",
    "leased, and nobody's": "SELECT address FROM compute_addresses WHERE leased AND server_id IS NULL",
    "waiting in a flat network": """
        SELECT a.address FROM compute_addresses a JOIN compute_networks n ON n.id = a.network_id
        WHERE n.manager = 'flat' AND a.server_id IS NOT NULL AND a.vif_id IS NULL AND a.grant_id IS NULL""",
    "a floating address that stands for one which is nobody's, or another project's": """
        SELECT f.address FROM compute_floating_addresses f
        LEFT JOIN compute_addresses a ON a.network_id = f.fixed_network_id AND a.address = f.fixed_address
        LEFT JOIN compute_vifs v ON v.id = a.vif_id LEFT JOIN compute_servers s ON s.id = v.server_id
        WHERE f.fixed_address IS NOT NULL AND coalesce(v.project_id, s.project_id) IS DISTINCT FROM f.project_id""",
    "a server in a network of another project": """
        SELECT s.id FROM compute_servers s JOIN compute_vifs v ON v.server_id = s.id
        JOIN compute_networks n ON n.id = v.network_id
        WHERE n.vlan IS NOT NULL AND n.project_id IS DISTINCT FROM s.project_id""",
}
"""What is wrong -> a query that finds it."""


@contextmanager
def books(database: str, home: Path, clock: Clock, **options: Any) -> Iterator[Books]:
    """A cloud of two large nodes and no network; the tables are made anew."""
    with connected(database) as engine:
        empty(engine)
        specs = [node(name, vcpus=200, memory_mb=200_000, local_gb=2000) for name in ("n1", "n2")]
        rings = Rings()
        made = build(engine, home=home, service_host=SERVICE, cast=rings, now=clock, driver=MemoryDriver(specs))
        made = replace(made, network=NetworkOptions(**options))
        services.refresh(made)
        with engine.begin() as conn:
            flavors.insert(conn, TINY)
        yield Books(Place(made, rings, made.driver), clock)
