"""Guests for tests of the lab's networks: their interfaces and what they reach."""

import json
import socket
import subprocess
from dataclasses import dataclass, replace
from ipaddress import IPv4Address, IPv4Interface, IPv6Address
from uuid import uuid4

from climate.compute.linux import netns
from climate.compute.network.driver import Kind, Link, Plug

GUEST = "guest-"
"""What the names of their namespaces begin with."""

PATIENCE = 20.0
"""Seconds until what should come is given up."""


@dataclass(frozen=True)
class Guest:
    """A namespace that plays a server, and its interface."""

    plug: Plug

    @property
    def address(self) -> str:
        return str(self.plug.static[0].ip)

    def with_addresses(self, *addresses: IPv4Address | IPv6Address) -> "Guest":
        """The same one, that is allowed these."""
        return Guest(replace(self.plug, addresses=addresses))

    def runs(self, *words: str) -> subprocess.CompletedProcess[str]:
        return run(self.plug.netns, *words)

    def reaches(self, address: str) -> bool:
        return reaches(self.plug.netns, address)

    def socket(self) -> socket.socket:
        """Of all frames on its interface."""
        return wire(self.plug.netns, self.plug.device)


def guest(
    link: Link, address: str, *, number: int, up: bool = True, router: str | None = None, vif_id: str | None = None
) -> Guest:
    """One that is told its address by the host; its MAC ends in `number`."""
    interface = IPv4Interface(address)
    return Guest(
        Plug(
            vif_id=vif_id or str(uuid4()),
            mac=f"02:16:3e:00:00:{number:02x}",
            kind=Kind.VETH,
            link=link,
            addresses=(interface.ip,),
            netns=f"{GUEST}{number}",
            static=(interface,),
            router=None if router is None else IPv4Address(router),
            up=up,
        )
    )


def run(place: str | None, *words: str, told: str | None = None) -> subprocess.CompletedProcess[str]:
    """A program run in a namespace."""
    return netns.inside(
        place, lambda: subprocess.run(words, input=told, capture_output=True, text=True, check=False, timeout=30)
    )


def said(place: str | None, *words: str) -> str:
    """What a program says that has to succeed."""
    done = run(place, *words)
    assert done.returncode == 0, f"{words}: {done.stderr}"
    return done.stdout


def reaches(place: str | None, address: str) -> bool:
    """Whether an answer comes before the patience ends."""
    return run(place, "ping", "-c", "1", "-W", str(PATIENCE), address).returncode == 0


def silent(place: str, address: str) -> bool:
    """Whether nothing answers, for as long as an answer in this machine would ever take."""
    return run(place, "ping", "-c", "3", "-i", "0.2", "-W", "1", address).returncode != 0


def packets_from(place: str, port: str) -> int:
    """How many packets have ever come from the guest at a port of its host."""
    (link,) = json.loads(said(place, "ip", "-json", "-statistics", "link", "show", "dev", port))
    return int(link["stats64"]["rx"]["packets"])


def wire(place: str, interface: str) -> socket.socket:
    """All frames on an interface."""

    def opened() -> socket.socket:
        packets = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.ntohs(0x0003))
        packets.bind((interface, 0))
        packets.settimeout(PATIENCE)
        return packets

    return netns.inside(place, opened)
