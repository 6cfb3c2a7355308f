"""/etc/network/interfaces of guests without a DHCP server."""

from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Interface, IPv6Address, IPv6Interface


@dataclass(frozen=True, slots=True)
class GuestInterface:
    """Interface of a guest, as written to its file."""

    device: str
    address: IPv4Interface
    gateway: IPv4Address | None = None
    dns: tuple[IPv4Address, ...] = ()
    address_v6: IPv6Interface | None = None
    gateway_v6: IPv6Address | None = None


def interfaces(cards: Sequence[GuestInterface]) -> str:
    """Return the file: loopback, then each interface with its addresses."""
    blocks = ["auto lo\niface lo inet loopback\n", *(block for card in cards for block in _blocks(card))]
    return "\n".join(blocks)


def _blocks(interface: GuestInterface) -> list[str]:
    network = interface.address.network
    v4 = [
        f"auto {interface.device}",
        f"iface {interface.device} inet static",
        f"    address {interface.address.ip}",
        f"    netmask {network.netmask}",
        f"    broadcast {network.broadcast_address}",
        *([f"    gateway {interface.gateway}"] if interface.gateway else []),
        *([f"    dns-nameservers {' '.join(map(str, interface.dns))}"] if interface.dns else []),
        "",
    ]
    if interface.address_v6 is None:
        return ["\n".join(v4)]
    v6 = [
        f"iface {interface.device} inet6 static",
        f"    address {interface.address_v6.ip}",
        f"    netmask {interface.address_v6.network.prefixlen}",
        *([f"    gateway {interface.gateway_v6}"] if interface.gateway_v6 else []),
        "",
    ]
    return ["\n".join(v4), "\n".join(v6)]
