"""Floating addresses on a host's interfaces: added with a label, and removed by it.

An address without climate's label is foreign: it is used but never removed.
"""

import json
import socket
import struct
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from ipaddress import IPv4Address

from climate.compute.errors import NetworkError
from climate.compute.linux import netns
from climate.compute.network.linux import commands
from climate.compute.network.render.interface_names import interface

_LABEL = ":c"
_LONGEST = 15 - len(_LABEL)
"""Maximum length of a label, which begins with the name of its interface."""

_NONE_LEFT = "0 flow entries have been deleted"
_ARP = struct.Struct("!6s6sHHHBBH6s4s6s4s")
_EVERYBODY, _NOBODY = b"\xff" * 6, b"\0" * 6
_ARP_TYPE, _ETHERNET, _IPV4, _REQUEST = 0x0806, 1, 0x0800, 1


@dataclass(frozen=True, order=True, slots=True)
class Held:
    """Address of climate on an interface; `scope` is its kernel scope."""

    address: IPv4Address
    interface: str
    scope: str = field(default="global", compare=False)


def addresses(namespace: str | None) -> dict[Held, bool]:
    """Return all addresses in a namespace, and whether they are climate's."""
    links = json.loads(commands.run(namespace, ("ip", "-json", "-4", "address", "show")) or "[]")
    return {
        Held(IPv4Address(one["local"]), link["ifname"]): one.get("label") == f"{link['ifname']}{_LABEL}"
        for link in links
        for one in link.get("addr_info", ())
    }


def add_addresses(namespace: str | None, wanted: Iterable[Held]) -> None:
    """Add addresses to their interfaces and announce them.

    Raise NetworkError if an interface is missing, after all others were handled.
    """
    new = sorted(wanted)
    problems = [problem for one in new if (problem := _problem(namespace, one)) is not None]
    netns.inside(namespace, lambda: _announce(new))
    if problems:
        raise NetworkError("; ".join(problems))


def take(namespace: str | None, unwanted: Iterable[Held]) -> None:
    """Remove addresses from their interfaces."""
    lines = "".join(f"address delete {one.address}/32 dev {one.interface}\n" for one in sorted(unwanted))
    if lines:
        commands.run(namespace, ("ip", "-batch", "-"), text=lines)


def cut(namespace: str | None, changed: Iterable[IPv4Address]) -> None:
    """Delete the tracked connections of these addresses in both directions."""
    for address in sorted(changed):
        for direction in ("--orig-dst", "--reply-dst"):
            _end(namespace, direction, str(address))


def _end(namespace: str | None, direction: str, address: str) -> None:
    try:
        commands.run(namespace, ("conntrack", "-D", direction, address))
    except NetworkError as error:
        if _NONE_LEFT not in str(error):
            raise


def _problem(namespace: str | None, one: Held) -> str | None:
    """Return why an address could not be added to its interface."""
    if len(one.interface) > _LONGEST:
        return (
            f"{one.address} cannot be added to {one.interface}: the interface name has more than {_LONGEST} characters"
        )
    try:
        name = interface(one.interface)
        words = ("address", "add", f"{one.address}/32", "dev", name, "scope", one.scope, "label", f"{name}{_LABEL}")
        commands.run(namespace, ("ip", *words))
    except NetworkError as error:
        return f"{one.address} cannot be added to {one.interface}: {error}"
    return None


def _announce(new: Iterable[Held]) -> None:
    """Announce new addresses by gratuitous ARP, so that neighbours update their caches (RFC 5227, section 3)."""
    for one in new:
        # An interface without neighbours needs no announcement.
        with suppress(OSError), socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sender:
            sender.bind((one.interface, _ARP_TYPE))
            mac = sender.getsockname()[4]
            address = one.address.packed
            head = (_EVERYBODY, mac, _ARP_TYPE, _ETHERNET, _IPV4, 6, 4, _REQUEST)
            sender.send(_ARP.pack(*head, mac, address, _NOBODY, address))
