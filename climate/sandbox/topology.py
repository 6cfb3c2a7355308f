"""Lab: hosts as network namespaces, two switches between them, and an outside network, in a sandbox.

`ip` creates everything from a description; whatever exists already is not changed.
"""

import re
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Interface, IPv4Network
from pathlib import Path

OUTER, INNER, FLAT = "eth0", "eth1", "eth2"
"""Interface to the outside; on every host, interfaces to the switch and to that of flat networks."""

_MTU = 1600
"""MTU of the switches, with room for encapsulation."""
_NAMESPACES = Path("/run/netns")
_DEAF = Path("/proc/sys/net/ipv6/conf/all")
_SECONDS = 30


class LabError(Exception):
    """Raised if the lab cannot be created; the message is that of `ip`."""


@dataclass(frozen=True, slots=True)
class Cable:
    """An interface of a host and its other end: a switch, or the interface of that name of another host."""

    host: str
    interface: str
    address: IPv4Interface | None
    """None: no address until a bridge has one."""
    peer: tuple[str, IPv4Interface] | None = None
    switch: str = "sw"


@dataclass(frozen=True, slots=True)
class Lab:
    """Hosts and cables.  The processes of climate run beside the switches, with an address on one of them."""

    switch: str
    address: IPv4Interface
    """Address of the switch on which the APIs listen."""
    computes: tuple[str, ...]
    network: str
    """The network host."""
    outside: str
    """Machine outside, which has a route to the public network only."""
    cables: tuple[Cable, ...]
    floating: IPv4Network
    """Public addresses for servers."""
    routes: tuple[tuple[str, str], ...] = field(default=())
    """Host -> its default gateway."""

    @property
    def public(self) -> IPv4Interface:
        """Return the outside address of the network host."""
        return next(cable.address for cable in self.cables if cable.peer is not None and cable.address is not None)

    @property
    def switches(self) -> frozenset[str]:
        return frozenset(cable.switch for cable in self.cables if cable.peer is None)

    @property
    def hosts(self) -> tuple[str, ...]:
        return (*self.computes, self.network, self.outside)


def described(computes: Sequence[str] = ("c1", "c2"), network: str = "n1", outside: str = "outside") -> Lab:
    """Return compute hosts and a network host, connected to two switches and to the outside.

    eth1 is on the switch of all hosts (192.0.2.0/24), and eth2 on that of flat networks. The interface eth0 of the
    network host leads to the outside (203.0.113.0/24; floating IPs from .64/26).
    """
    hosts = (network, *computes)
    inner = [Cable(host, INNER, IPv4Interface(f"192.0.2.{n}/24")) for n, host in enumerate(hosts, 1)]
    # Guests of flat networks need a wire of their own, apart from that of the hosts.
    flat = [Cable(host, FLAT, None, switch="flat") for host in hosts]
    public = Cable(network, OUTER, IPv4Interface("203.0.113.1/24"), (outside, IPv4Interface("203.0.113.254/24")))
    return Lab(
        switch="sw",
        address=IPv4Interface("192.0.2.254/24"),
        computes=tuple(computes),
        network=network,
        outside=outside,
        cables=(*inner, *flat, public),
        floating=IPv4Network("203.0.113.64/26"),
        routes=((network, "203.0.113.254"),),
    )


def up(lab: Lab) -> None:
    """Create what is missing; LabError if that fails.  Call it only in a sandbox, because it creates switches."""
    there = set(_names())
    for host in lab.hosts:
        if host not in there:
            _ip("netns", "add", host)
    here = set(_interfaces(None))
    lines = [line for switch in sorted(lab.switches - here) for line in _switch(lab, switch)]
    known = {host: set(_interfaces(host)) for host in lab.hosts}
    lines += [line for cable in lab.cables if cable.interface not in known[cable.host] for line in _cable(cable)]
    _batch(None, lines)
    for switch in lab.switches:
        # The bridge forwards router advertisements to guests, and must not accept them itself.
        _DEAF.with_name(switch).joinpath("accept_ra").write_text("0", encoding="ascii")
    for host in lab.hosts:
        _batch(host, _settings(lab, host))


def bridge(lab: Lab, name: str) -> None:
    """Create the bridge of flat networks, attached to eth2, on every compute host."""
    for host in lab.computes:
        if name not in _interfaces(host):
            made = f"link add {name} type bridge stp_state 0 forward_delay 0"
            _batch(host, (made, f"link set {FLAT} master {name}", f"link set {name} up"))


def down(lab: Lab) -> None:
    """Delete everything: the hosts with their networks, the namespaces of guests, and the switches."""
    ports = [_port(cable) for cable in lab.cables if cable.peer is None]
    here = _interfaces(None)
    _batch(None, [f"link delete {name}" for name in (*ports, *sorted(lab.switches)) if name in here])
    for name in _names():
        _ip("netns", "delete", name)


def _switch(lab: Lab, name: str) -> Iterable[str]:
    yield f"link add {name} mtu {_MTU} type bridge stp_state 0 forward_delay 0 mcast_snooping 0"
    yield f"link set {name} addrgenmode none"
    yield f"link set {name} up"
    if name == lab.switch:
        yield f"address replace {lab.address} dev {name}"


def _cable(cable: Cable) -> Iterable[str]:
    if cable.peer is not None:
        host, _ = cable.peer
        yield (f"link add {cable.interface} netns {cable.host} type veth peer name {cable.interface} netns {host}")
        return
    port = _port(cable)
    yield f"link add {port} mtu {_MTU} type veth peer name {cable.interface} mtu {_MTU} netns {cable.host}"
    yield f"link set {port} master {cable.switch} addrgenmode none"
    yield f"link set {port} up"


def _settings(lab: Lab, host: str) -> Iterable[str]:
    """Return the settings of a host; an address that is on a bridge by now is not added again."""
    yield "link set lo up"
    held = _addresses(host)
    for interface, address in _ends(lab, host):
        yield f"link set {interface} up"
        if address is not None and str(address) not in held:
            yield f"address add {address} dev {interface}"
    for gateway in [gateway for name, gateway in lab.routes if name == host]:
        yield f"route replace default via {gateway}"


def _ends(lab: Lab, host: str) -> Iterable[tuple[str, IPv4Interface | None]]:
    for cable in lab.cables:
        if cable.host == host:
            yield cable.interface, cable.address
        if cable.peer is not None and cable.peer[0] == host:
            yield cable.interface, cable.peer[1]


def _port(cable: Cable) -> str:
    return f"{cable.switch}-{cable.host}"


def _names() -> list[str]:
    return sorted(entry.name for entry in _NAMESPACES.iterdir()) if _NAMESPACES.is_dir() else []


def _interfaces(host: str | None) -> list[str]:
    lines = _ip(*_at(host), "-oneline", "link", "show").splitlines()
    return [line.split(": ")[1].partition("@")[0] for line in lines]


def _addresses(host: str) -> set[str]:
    return {line.split()[3] for line in _ip(*_at(host), "-oneline", "-4", "address", "show").splitlines()}


def _batch(host: str | None, given: Iterable[str]) -> None:
    lines = list(given)
    if not lines:
        return
    try:
        _ip(*_at(host), "-batch", "-", stdin="\n".join([*lines, ""]))
    except LabError as error:
        failed = re.search(r"Command failed -:(\d+)", str(error))
        raise LabError(f"{lines[int(failed[1]) - 1]}: {error}" if failed else str(error)) from None


def _at(host: str | None) -> tuple[str, ...]:
    return () if host is None else ("-netns", host)


def _ip(*words: str, stdin: str = "") -> str:
    argv = ("ip", *words)
    try:
        done = subprocess.run(argv, input=stdin, capture_output=True, text=True, timeout=_SECONDS, check=False)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired) as error:
        raise LabError(f"{' '.join(argv)}: {error}") from None
    if done.returncode:
        raise LabError(f"{' '.join(argv)}: {done.stderr.strip() or done.returncode}")
    return done.stdout
