"""A host's bridges with guests on them, made by `ip`: what services are tried out on."""

import itertools
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from ipaddress import IPv4Interface, IPv6Interface

from climate.compute.linux import netns
from climate.compute.network.driver import Link
from tests.netlab.guests import run, said

HOST = "n1"
PATIENCE = 60.0
"""Seconds until what should happen is given up."""

SHORT = 1.0
"""Seconds in which what may not come would have come."""


@dataclass
class Bench:
    """Bridges and guests on the network host, all gone in the end."""

    bridges: list[str] = field(default_factory=list)
    guests: list[str] = field(default_factory=list)
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def bridge(self, name: str, address: str, v6: str | None = None, mtu: int = 1500) -> Link:
        """A bridge with these addresses of its own."""
        said(HOST, "ip", "link", "add", name, "type", "bridge", "forward_delay", "0", "mcast_snooping", "0")
        said(HOST, "ip", "link", "set", name, "up", "mtu", str(mtu))
        said(HOST, "ip", "address", "add", address, "broadcast", "+", "dev", name)
        if v6:
            said(HOST, "ip", "address", "add", v6, "dev", name, "nodad")
        self.bridges.append(name)
        inner = None if v6 is None else IPv6Interface(v6)
        return Link(f"net-{name}", name, mtu=mtu, gateway=IPv4Interface(address), gateway_v6=inner)

    def guest(self, link: Link, address: str | None = None, number: int | None = None) -> str:
        """A guest on that bridge, with this address and its way out, or with none yet; its MAC ends in `number`."""
        count = next(self.numbers) if number is None else number
        name, port = f"g{count}", f"p{count}"
        netns.create(name)
        self.guests.append(name)
        mac = ("address", mac_of(count))
        said(None, "ip", "link", "add", port, "netns", HOST, "type", "veth", "peer", "eth0", *mac, "netns", name)
        said(HOST, "ip", "link", "set", port, "master", link.bridge, "up")
        said(name, "ip", "link", "set", "eth0", "up")
        if address is not None:
            said(name, "ip", "address", "add", address, "dev", "eth0")
            said(name, "ip", "route", "add", "default", "via", str(link.gateway and link.gateway.ip))
        return name

    def close(self) -> None:
        for guest in self.guests:
            run(guest, "ip", "link", "delete", "eth0")
            netns.drop(guest)
        for bridge in self.bridges:
            run(HOST, "ip", "link", "delete", bridge)


def mac_of(number: int) -> str:
    return f"02:16:3e:00:00:{number:02x}"


def until(happens: Callable[[], bool], what: str) -> None:
    """Return when something has happened of which nobody sends word."""
    deadline = time.monotonic() + PATIENCE
    while not happens():
        assert time.monotonic() < deadline, f"{what} did not happen"
        time.sleep(0.01)


def listen(place: str, port: int, address: str = "0.0.0.0") -> socket.socket:
    """A TCP server."""

    def opened() -> socket.socket:
        server = socket.create_server((address, port))
        server.settimeout(PATIENCE)
        return server

    return netns.inside(place, opened)


def call(place: str, address: str, port: int, patience: float = PATIENCE) -> socket.socket:
    """A TCP connection; OSError when there is none."""
    return netns.inside(place, lambda: socket.create_connection((address, port), timeout=patience))


def connected(caller: str, address: str, server: socket.socket, port: int) -> tuple[socket.socket, socket.socket, str]:
    """Both ends of a connection, and who the caller is for the server."""
    here = call(caller, address, port)
    there, (seen, _) = server.accept()
    there.settimeout(PATIENCE)
    return here, there, seen


def seen_as(caller: str, address: str, place: str, port: int) -> str:
    """Who a caller is for a server that it reaches at this address, and that is in `place`."""
    with closing(listen(place, port)) as server:
        here, there, seen = connected(caller, address, server, port)
        here.close()
        there.close()
        return seen


def refused(caller: str, address: str, port: int) -> bool:
    """Whether nobody answers there."""
    try:
        call(caller, address, port, SHORT).close()
    except OSError:
        return True
    return False
