"""What the drivers say to the kernel over netlink, and how they know what is theirs."""

import errno
import os
import socket
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from ipaddress import IPv4Interface, IPv6Address, IPv6Interface, ip_interface
from pathlib import Path
from typing import Any, TypeVar

from climate.compute.errors import NetworkError
from climate.compute.linux import netns

GROUP = 0x636C
"""Interfaces of ours are in this group from the moment they exist: the kernel takes it with the order to make one."""

_SIGN = "climate:"
_UP, _GLOBAL, _PERMANENT, _NO_DAD = 0x1, 0, 0x80, 0x02
_FAMILIES = {4: 2, 6: 10}
_SYSCTL = Path("/proc/sys/net")

_LONGEST_WITH_BROADCAST = 30
_ANSWER, _LONGEST = struct.Struct("=16xi"), 65536
_DONE_ALREADY = frozenset((errno.EEXIST, errno.EADDRNOTAVAIL, errno.ESRCH))

Interface = IPv4Interface | IPv6Interface
Step = tuple[str, str, dict[str, Any]]
"""`("addr", "add", {…})` and so on: a method of pyroute2's and what it is given."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Mark:
    """What an interface of ours is for, written where it cannot get lost: into the interface's alias."""

    of: str
    """Id of a network, or of a guest's interface."""
    words: tuple[str, ...] = ()
    """How it was made: one that was to be made otherwise is made anew."""

    def __str__(self) -> str:
        return " ".join([f"{_SIGN}{self.of}", *self.words])

    @classmethod
    def read(cls, alias: str | None) -> "Mark | None":
        """What an alias says; None when it is not one of ours."""
        if not alias or not alias.startswith(_SIGN):
            return None
        of, *words = alias.removeprefix(_SIGN).split()
        return cls(of, tuple(words))


@dataclass(frozen=True, slots=True)
class Device:
    """An interface as it is."""

    index: int
    name: str
    kind: str | None
    mark: Mark | None
    ours: bool
    mac: str
    mtu: int
    up: bool
    master: int | None
    peer: int | None
    """Index of the one it is tied to, for a pair in that one's namespace."""


def inside(name: str | None, doing: str, work: Callable[[Any], T]) -> T:
    """What `work` answers, given a netlink connection in a namespace; all that it starts is in that namespace too.

    What the kernel refuses is a NetworkError that says what was being done.
    """

    def connected() -> T:
        from pyroute2 import IPRoute

        with IPRoute() as ip:
            return work(ip)

    with saying(doing):
        return netns.inside(name, connected)


@contextmanager
def saying(doing: str) -> Iterator[None]:
    """What the kernel refuses in here is a NetworkError that says what was being done."""
    try:
        from pyroute2.netlink.exceptions import NetlinkError
    except ImportError as error:
        raise NetworkError(f"{doing}: pyroute2 is not installed; pip install 'climate[net]' brings it") from error
    try:
        yield
    except (OSError, NetlinkError) as error:
        raise NetworkError(f"{doing}: {error.args[1] if len(error.args) > 1 else error}") from error


@contextmanager
def tolerating(*numbers: int) -> Iterator[None]:
    """What the kernel refuses in here with one of these error numbers is as good as done."""
    from pyroute2.netlink.exceptions import NetlinkError

    try:
        yield
    except NetlinkError as error:
        if error.code not in numbers:
            raise


def devices(ip: Any) -> dict[str, Device]:
    """All interfaces of the namespace, by name."""
    return {device.name: device for device in map(_device, ip.get_links())}


def find(ip: Any, name: str) -> Device | None:
    """The interface of that name; None when there is none."""
    found: list[Device] = []
    with tolerating(errno.ENODEV):
        found = [_device(ip.link("get", ifname=name)[0])]
    return found[0] if found else None


def device(ip: Any, name: str) -> Device:
    """The interface of that name; NetworkError when there is none."""
    found = find(ip, name)
    if found is None:
        raise NetworkError(f"There is no interface {name} on this host.")
    return found


def mark(ip: Any, target: Device, wanted: Mark) -> None:
    """Write down what an interface is for."""
    if target.mark != wanted:
        ip.link("set", index=target.index, ifalias=str(wanted))


def shape(ip: Any, target: Device, *, up: bool, mtu: int | None = None, master: int | None = None) -> None:
    """Change of an interface what is not as it should be; what is None stays as it is."""
    changes: dict[str, Any] = {}
    if mtu is not None and target.mtu != mtu:
        changes["mtu"] = mtu
    if master is not None and target.master != master:
        changes["master"] = master
    if target.up is not up:
        changes["state"] = "up" if up else "down"
    if changes:
        ip.link("set", index=target.index, **changes)


def delete(ip: Any, target: Device) -> None:
    """Delete an interface; nothing when it has gone by itself, as with its other end or that one's namespace."""
    with tolerating(errno.ENODEV):
        ip.link("del", index=target.index)


def addresses(ip: Any, index: int, version: int) -> dict[Interface, str | None]:
    """The global, lasting addresses of an interface and their broadcast addresses, in the order that they have."""
    rows = ip.get_addr(index=index, family=_FAMILIES[version])
    lasting = [row for row in rows if row["scope"] == _GLOBAL and row.get_attr("IFA_FLAGS") & _PERMANENT]
    return {_address(row): row.get_attr("IFA_BROADCAST") for row in lasting}


def lent(ip: Any, index: int) -> list[str]:
    """The addresses of version 4 that an interface has for a time only: somebody renews them there."""
    rows = ip.get_addr(index=index, family=_FAMILIES[4])
    return [str(_address(row)) for row in rows if not row.get_attr("IFA_FLAGS") & _PERMANENT]


def address(target: int, wanted: Interface, broadcast: str | None = None) -> dict[str, Any]:
    """An address as netlink wants to hear of it; those of version 6 are not asked for on the wire first."""
    words = {"index": target, "address": str(wanted.ip), "prefixlen": wanted.network.prefixlen}
    if wanted.version == 6:
        return {**words, "flags": _NO_DAD}
    return words if broadcast is None else {**words, "broadcast": broadcast}


def own_address(target: int, wanted: Interface) -> dict[str, Any]:
    """The same of one that is of our making: with its network's broadcast address."""
    plain = wanted.version == 6 or wanted.network.prefixlen > _LONGEST_WITH_BROADCAST
    return address(target, wanted, None if plain else str(wanted.network.broadcast_address))


def at_once(steps: Sequence[Step]) -> None:
    """Have the kernel do all of this by one call, in the middle of which nobody can be killed.

    A step that is done already is passed over; OSError of the first that failed, after all were tried.
    """
    from pyroute2 import IPBatch

    with IPBatch() as batch:
        for noun, verb, words in steps:
            getattr(batch, noun)(verb, **words)
        data = bytes(batch.batch)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as kernel:
        kernel.bind((0, 0))
        kernel.send(data)
        answers = [_ANSWER.unpack_from(kernel.recv(_LONGEST, socket.MSG_DONTWAIT))[0] for _ in steps]
    failed = [-answer for answer in answers if answer and -answer not in _DONE_ALREADY]
    if failed:
        raise OSError(failed[0], os.strerror(failed[0]))


def link_local(mac: str) -> IPv6Address:
    """The link-local address that is made of a MAC (RFC 4291, appendix A)."""
    octets = bytes.fromhex(mac.replace(":", ""))
    half = bytes([octets[0] ^ 0x02]) + octets[1:3] + b"\xff\xfe" + octets[3:]
    return IPv6Address(b"\xfe\x80" + bytes(6) + half)


def sysctl(key: str, value: int) -> None:
    """Set what is under /proc/sys/net in the namespace of this thread; nothing where the kernel has no such thing."""
    path = _SYSCTL / key
    if path.exists() and path.read_text(encoding="ascii").strip() != str(value):
        path.write_text(str(value), encoding="ascii")


def _address(row: Any) -> Interface:
    return ip_interface(f"{row.get_attr('IFA_LOCAL') or row.get_attr('IFA_ADDRESS')}/{row['prefixlen']}")


def _device(link: Any) -> Device:
    return Device(
        index=link["index"],
        name=link.get_attr("IFLA_IFNAME"),
        kind=link.get_nested("IFLA_LINKINFO", "IFLA_INFO_KIND"),
        mark=Mark.read(link.get_attr("IFLA_IFALIAS")),
        ours=link.get_attr("IFLA_GROUP") == GROUP,
        mac=link.get_attr("IFLA_ADDRESS") or "",
        mtu=link.get_attr("IFLA_MTU"),
        up=bool(link["flags"] & _UP),
        master=link.get_attr("IFLA_MASTER") or None,
        peer=link.get_attr("IFLA_LINK"),
    )
