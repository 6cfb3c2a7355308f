"""Netlink access of the drivers, and the marks by which they recognise their interfaces."""

import errno
import os
import socket
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from ipaddress import IPv4Interface, IPv6Address, IPv6Interface, ip_interface
from pathlib import Path
from typing import Any, Protocol, TypeVar

from climate.compute.errors import NetworkError
from climate.compute.linux import netns

GROUP = 0x636C
"""Interface group of climate's interfaces, set by the kernel in the same call that creates them."""

_SIGN = "climate:"
_UP, _GLOBAL, _PERMANENT, _NO_DAD = 0x1, 0, 0x80, 0x02
_FAMILIES = {4: 2, 6: 10}
_SYSCTL = Path("/proc/sys/net")

_LONGEST_WITH_BROADCAST = 30
_ANSWER, _LONGEST = struct.Struct("=16xi"), 65536
_DONE_ALREADY = frozenset((errno.EEXIST, errno.EADDRNOTAVAIL, errno.ESRCH))

Interface = IPv4Interface | IPv6Interface
Step = tuple[str, str, Mapping[str, object]]
"""`("addr", "add", {…})` and so on: a method of pyroute2 and its arguments."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Mark:
    """Purpose of an interface, stored in its alias."""

    of: str
    """Id of the network, or of the guest's interface."""
    words: tuple[str, ...] = ()
    """Parameters of its creation; an interface with others is recreated."""

    def __str__(self) -> str:
        return " ".join([f"{_SIGN}{self.of}", *self.words])

    @classmethod
    def read(cls, alias: str | None) -> "Mark | None":
        """Parse an alias; return None if it is not climate's."""
        if not alias or not alias.startswith(_SIGN):
            return None
        of, *words = alias.removeprefix(_SIGN).split()
        return cls(of, tuple(words))


@dataclass(frozen=True, slots=True)
class Device:
    """Interface of the kernel."""

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
    """Index of the linked interface; for a veth pair, in the namespace of the peer."""


class Row(Protocol):
    """Answer of the kernel about one object, with header fields as keys and attributes by the kernel's names."""

    def __getitem__(self, field: str, /) -> Any: ...

    def get_attr(self, name: str, /) -> Any:
        """Return the value of an attribute; None if it is missing."""

    def get_nested(self, *names: str) -> Any:
        """Return the value of an attribute inside others; None if one of them is missing."""


class Netlink(Protocol):
    """The part of pyroute2's `IPRoute` that the drivers use: a connection to the kernel in one namespace."""

    def link(self, command: str, /, **words: object) -> Sequence[Row]: ...

    def tc(self, command: str, kind: str, /, index: int, **words: object) -> object: ...

    def get_links(self) -> Iterable[Row]: ...

    def get_addr(self, *, index: int, family: int) -> Iterable[Row]: ...

    def get_routes(self, *, family: int, table: int) -> Iterable[Row]: ...

    def get_qdiscs(self) -> Iterable[Row]: ...

    def get_filters(self, *, index: int, parent: int) -> Iterable[Row]: ...


def inside(name: str | None, doing: str, work: Callable[[Netlink], T]) -> T:
    """Run `work` with a netlink connection in a namespace, and return its result; its child processes inherit the
    namespace.

    Raise NetworkError that names `doing` when the kernel refuses.
    """

    def connected() -> T:
        from pyroute2 import IPRoute

        with IPRoute() as ip:
            return work(ip)

    with saying(doing):
        return netns.inside(name, connected)


@contextmanager
def saying(doing: str) -> Iterator[None]:
    """Convert errors of the kernel to NetworkError with the current operation."""
    try:
        from pyroute2.netlink.exceptions import NetlinkError
    except ImportError as error:
        raise NetworkError(f"{doing}: pyroute2 is not installed; pip install 'climate-reservation[net]'") from error
    try:
        yield
    except (OSError, NetlinkError) as error:
        raise NetworkError(f"{doing}: {error.args[1] if len(error.args) > 1 else error}") from error


@contextmanager
def tolerating(*numbers: int) -> Iterator[None]:
    """Ignore errors of the kernel with one of these numbers: the work is done already."""
    from pyroute2.netlink.exceptions import NetlinkError

    try:
        yield
    except NetlinkError as error:
        if error.code not in numbers:
            raise


def devices(ip: Netlink) -> dict[str, Device]:
    """Return all interfaces of the namespace, by name."""
    return {device.name: device for device in map(_device, ip.get_links())}


def find(ip: Netlink, name: str) -> Device | None:
    """Return the interface of that name, or None."""
    result: list[Device] = []
    with tolerating(errno.ENODEV):
        result = [_device(ip.link("get", ifname=name)[0])]
    return result[0] if result else None


def device(ip: Netlink, name: str) -> Device:
    """Return the interface of that name. Raise NetworkError if it is missing."""
    result = find(ip, name)
    if result is None:
        raise NetworkError(f"There is no interface {name} on this host.")
    return result


def mark(ip: Netlink, target: Device, wanted: Mark) -> None:
    """Write the mark of an interface."""
    if target.mark != wanted:
        ip.link("set", index=target.index, ifalias=str(wanted))


def shape(ip: Netlink, target: Device, *, up: bool, mtu: int | None = None, master: int | None = None) -> None:
    """Change attributes of an interface that differ; None leaves an attribute unchanged."""
    changes: dict[str, object] = {}
    if mtu is not None and target.mtu != mtu:
        changes["mtu"] = mtu
    if master is not None and target.master != master:
        changes["master"] = master
    if target.up is not up:
        changes["state"] = "up" if up else "down"
    if changes:
        ip.link("set", index=target.index, **changes)


def delete(ip: Netlink, target: Device) -> None:
    """Delete an interface; ignore one that is gone, as when its peer or its namespace was deleted."""
    with tolerating(errno.ENODEV):
        ip.link("del", index=target.index)


def addresses(ip: Netlink, index: int, version: int) -> dict[Interface, str | None]:
    """Return the global, permanent addresses of an interface and their broadcast addresses, in the kernel's order."""
    rows = ip.get_addr(index=index, family=_FAMILIES[version])
    lasting = [row for row in rows if row["scope"] == _GLOBAL and row.get_attr("IFA_FLAGS") & _PERMANENT]
    return {_address(row): row.get_attr("IFA_BROADCAST") for row in lasting}


def temporary_addresses(ip: Netlink, index: int) -> list[str]:
    """Return the temporary IPv4 addresses of an interface, which a DHCP client renews."""
    rows = ip.get_addr(index=index, family=_FAMILIES[4])
    return [str(_address(row)) for row in rows if not row.get_attr("IFA_FLAGS") & _PERMANENT]


def address(target: int, interface: Interface, broadcast: str | None = None) -> dict[str, object]:
    """Return the netlink arguments of an address; IPv6 duplicate address detection is disabled."""
    words = {"index": target, "address": str(interface.ip), "prefixlen": interface.network.prefixlen}
    if interface.version == 6:
        return {**words, "flags": _NO_DAD}
    return words if broadcast is None else {**words, "broadcast": broadcast}


def own_address(target: int, interface: Interface) -> dict[str, object]:
    """Return the netlink arguments of an address of climate, with the broadcast address of its network."""
    plain = interface.version == 6 or interface.network.prefixlen > _LONGEST_WITH_BROADCAST
    return address(target, interface, None if plain else str(interface.network.broadcast_address))


def at_once(steps: Sequence[Step]) -> None:
    """Send all steps in one system call, so that a kill cannot interrupt them.

    Steps that are done already are skipped. Raise the OSError of the first failure after all were tried.
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
    """Return the link-local address of a MAC (RFC 4291, appendix A)."""
    octets = bytes.fromhex(mac.replace(":", ""))
    half = bytes([octets[0] ^ 0x02]) + octets[1:3] + b"\xff\xfe" + octets[3:]
    return IPv6Address(b"\xfe\x80" + bytes(6) + half)


def sysctl(key: str, value: int) -> None:
    """Write a key under /proc/sys/net in this thread's namespace; ignore keys that the kernel lacks."""
    path = _SYSCTL / key
    if path.exists() and path.read_text(encoding="ascii").strip() != str(value):
        path.write_text(str(value), encoding="ascii")


def _address(row: Row) -> Interface:
    return ip_interface(f"{row.get_attr('IFA_LOCAL') or row.get_attr('IFA_ADDRESS')}/{row['prefixlen']}")


def _device(link: Row) -> Device:
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
