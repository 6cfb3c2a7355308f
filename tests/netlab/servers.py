"""Servers on the lab's hosts: real drivers of both kinds, put together as a compute service does it."""

import itertools
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from ipaddress import IPv4Address, IPv4Interface, IPv4Network
from pathlib import Path
from uuid import uuid4

from climate.compute.network.driver import Dhcp, Entry, Kind, Link, NetworkServices, Plug, interface_name
from climate.compute.network.linux.driver import LinuxNetwork
from climate.compute.servers.interfaces.vif_plugging import netns_of
from climate.compute.virt import Guest, Interface, VirtDriver, Wiring
from climate.compute.virt.containers.driver import BubblewrapContainer
from climate.compute.virt.process import ProcessDriver
from climate.compute.virt.qemu.driver import QemuDriver
from tests.netlab.bridge_bench import mac_of
from tests.netlab.guests import reaches, run

SERVING = "n1"
NETWORK, GATEWAY = IPv4Network("10.0.0.0/24"), IPv4Interface("10.0.0.1/24")
LINK = Link("shared", "br100", interface="eth1")

PATIENCE = 90.0
"""Seconds until a guest that should answer is given up."""

MAKERS: dict[str, Callable[[Path], VirtDriver]] = {
    "process": lambda folder: ProcessDriver(folder / "servers", stop_seconds=2, wired=True),
    "container": lambda folder: ProcessDriver(folder / "containers", BubblewrapContainer(), stop_seconds=2, wired=True),
    "qemu": lambda folder: QemuDriver(folder / "machines", accel="tcg", stop_seconds=60, wired=True),
}


@dataclass
class Placed:
    """A guest and where it is."""

    driver: VirtDriver
    host: str
    plug: Plug
    guest: Guest

    @property
    def address(self) -> str:
        return str(self.plug.addresses[0])

    def answers(self, place: str = SERVING) -> bool:
        """Whether it does at once, seen from a namespace."""
        return run(place, "ping", "-c", "1", "-W", "1", self.address).returncode == 0

    def reaches(self, other: "Placed") -> bool:
        return reaches(self.plug.netns, other.address)


def answering(one: Placed) -> None:
    """Return when it answers."""
    _awaited(one, one.answers, "answers")


def hears(one: Placed, words: str) -> None:
    """Return when it has printed these words."""
    _awaited(one, lambda: words in one.driver.console(one.guest, None), f"says {words!r}")


def _awaited(one: Placed, happens: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not happens():
        said = one.driver.console(one.guest, 5)
        assert time.monotonic() < deadline, f"{one.address} never {what}; its console ends with {said!r}"
        time.sleep(0.02)


@dataclass
class Site:
    """One network over all hosts, with DHCP on the network host, and guests of one driver on it."""

    hosts: Mapping[str, LinuxNetwork]
    driver: VirtDriver
    image: Path | None = None
    dhcp: bool = True
    folder: Path = Path()
    placed: list[Placed] = field(default_factory=list)
    """All on this network, of other sites too."""
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(2))

    def place(self, host: str, **wanted: object) -> Placed:
        """A guest to be made on a host: it has an address, of which DHCP knows."""
        number = next(self.numbers)
        server_id, vif_id, address = str(uuid4()), str(uuid4()), NETWORK[number]
        tapped = self.driver.wiring("any") is Wiring.TAP
        kind = Kind.TAP if tapped else Kind.VETH
        static = () if self.dhcp else (IPv4Interface(f"{address}/{NETWORK.prefixlen}"),)
        plug = Plug(vif_id, mac_of(number), kind, LINK, (address,), netns_of(server_id), static=static)
        card = Interface(plug.mac, (str(address),), host_netns=host, dhcp=self.dhcp)
        card = replace(card, tap=interface_name(vif_id) if tapped else None, netns=None if tapped else plug.netns)
        given: dict[str, object] = {"ram_mb": 96, "image": self.image, "interfaces": (card,), **wanted}
        made = Placed(self.driver, host, plug, Guest(server_id, "web", host, **given))  # type: ignore[arg-type]
        self.placed.append(made)
        if self.dhcp:
            self.serve()
        return made

    def serve(self) -> None:
        """Have DHCP hand out the addresses of all guests."""
        entries = tuple(
            Entry(each.plug.mac, IPv4Address(each.address), f"vm{number}", each.plug.vif_id)
            for number, each in enumerate(self.placed)
        )
        served = Dhcp(NETWORK, NETWORK[2], "novalocal", 120, entries)
        self.hosts[SERVING].serve(NetworkServices(replace(LINK, gateway=GATEWAY), served))

    def connect(self, one: Placed, *, up: bool = True) -> None:
        """Plug its interface in, or set it up or down."""
        self.hosts[one.host].ensure(LINK)
        self.hosts[one.host].plug(replace(one.plug, up=up))

    def run(self, one: Placed) -> None:
        self.connect(one)
        one.driver.run(one.guest)

    def delete(self, one: Placed) -> None:
        """In the order of a compute service."""
        one.driver.delete(one.guest.id)
        self.hosts[one.host].unplug(one.plug.name)
        if one.plug.kind is Kind.VETH:
            self.hosts[one.host].drop_netns(one.plug.netns)
        self.placed.remove(one)
