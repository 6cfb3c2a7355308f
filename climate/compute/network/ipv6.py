"""IPv6 addresses derived from MACs, as Nova's ipv6 backends rfc2462 and account_identifier do."""

import hashlib
from ipaddress import IPv6Address, IPv6Network

from climate.compute.network.network_options import ACCOUNT

_UNIVERSAL = 0x0200_0000_0000_0000


def address(backend: str, prefix: IPv6Network, mac: str, project_id: str) -> IPv6Address:
    """Return the address of an interface in a /64, by the backend that the operator configured."""
    return of_account(prefix, mac, project_id) if backend == ACCOUNT else of_mac(prefix, mac)


def of_mac(prefix: IPv6Network, mac: str) -> IPv6Address:
    """Return the SLAAC address of a MAC: EUI-64 with the universal bit flipped (RFC 4291, Appendix A)."""
    number = _number(mac)
    eui = (number >> 24) << 40 | 0xFFFE << 24 | number & 0xFFFFFF
    return IPv6Address(int(prefix.network_address) | eui ^ _UNIVERSAL)


def of_account(prefix: IPv6Network, mac: str, project_id: str) -> IPv6Address:
    """Return the address made of 32 bits of a hash of the project's name and 24 bits of the MAC."""
    digest = hashlib.sha1(project_id.encode(), usedforsecurity=False).digest()
    account = int.from_bytes(digest[:4], "big") << 32
    return IPv6Address(int(prefix.network_address) | account ^ 0xFF << 24 ^ _number(mac) & 0xFFFFFF)


def mac_of(address: IPv6Address) -> str:
    """Return the MAC of an EUI-64 address."""
    eui = int(address) & 0xFFFF_FFFF_FFFF_FFFF ^ _UNIVERSAL
    return _text((eui >> 40) << 24 | eui & 0xFFFFFF)


def mac_of_account(address: IPv6Address) -> str:
    """Return the MAC of an address by `of_account`: climate's MAC prefix and the last 24 bits."""
    return _text(0x02163E << 24 | int(address) & 0xFFFFFF)


def _number(mac: str) -> int:
    return int(mac.replace(":", ""), 16)


def _text(number: int) -> str:
    return ":".join(f"{byte:02x}" for byte in number.to_bytes(6, "big"))
