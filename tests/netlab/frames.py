"""Frames as guests send them, and as they might forge them: each ends in a word of its own, by which it is known."""

import socket
import struct
from contextlib import suppress
from ipaddress import IPv4Address, IPv6Address

ALL = "ff:ff:ff:ff:ff:ff"
IPV4, ARP, RARP, VLAN, IPV6 = 0x0800, 0x0806, 0x8035, 0x8100, 0x86DD
UDP, ICMPV6 = 17, 58


def ether(source: str, kind: int, payload: bytes) -> bytes:
    """To everybody."""
    return _mac(ALL) + _mac(source) + struct.pack("!H", kind) + payload


def tagged(source: str, vlan: int, kind: int, payload: bytes) -> bytes:
    return ether(source, VLAN, struct.pack("!HH", vlan, kind) + payload)


def arp(source: str, address: str, word: str, target: str | None = None) -> bytes:
    """An answer that nobody has asked for: about the sender's own address, or another."""
    sender = _mac(source) + IPv4Address(address).packed
    return (
        struct.pack("!HHBBH", 1, IPV4, 6, 4, 2)
        + sender
        + _mac(ALL)
        + IPv4Address(target or address).packed
        + word.encode()
    )


def rarp(source: str, target: str, word: str, operation: int = 3) -> bytes:
    """What QEMU says of a machine that goes on at another place: it asks for the address of its own MAC."""
    own = struct.pack("!HHBBH", 1, IPV4, 6, 4, operation)
    return own + _mac(source) + bytes(4) + _mac(target) + bytes(4) + word.encode()


def bootp(mac: str, word: str) -> bytes:
    """What a DHCP client with that hardware address asks, as far as this matters here."""
    text = bytes(28) + _mac(mac) + word.encode()
    return struct.pack("!HHHH", 68, 67, 8 + len(text), 0) + text


def ipv4(source: str, payload: bytes, protocol: int = UDP) -> bytes:
    ends = IPv4Address(source).packed + IPv4Address("255.255.255.255").packed
    words = (0x45, 0, 20 + len(payload), 0, 0, 64, protocol)
    total = sum(struct.unpack("!10H", struct.pack("!BBHHHBBH", *words, 0) + ends))
    total = (total & 0xFFFF) + (total >> 16)
    return struct.pack("!BBHHHBBH", *words, ~(total + (total >> 16)) & 0xFFFF) + ends + payload


def ipv6(source: str, payload: bytes, protocol: int = UDP) -> bytes:
    head = struct.pack("!IHBB", 0x60000000, len(payload), protocol, 255)
    return head + IPv6Address(source).packed + IPv6Address("ff02::1").packed + payload


def udp(source: int, destination: int, word: str) -> bytes:
    return struct.pack("!HHHH", source, destination, 8 + len(word), 0) + word.encode()


def icmpv6(kind: int, word: str, target: str = "::") -> bytes:
    """As for finding neighbours: what it is about comes in the second eight octets."""
    return struct.pack("!BBHI", kind, 0, 0, 0) + IPv6Address(target).packed + word.encode()


def arrived(frames: dict[str, bytes], sender: socket.socket, receiver: socket.socket) -> set[str]:
    """Words of those that get from one to the other.  The last has to: when it is there, so are all before it."""
    *_, last = frames
    for frame in frames.values():
        sender.send(frame)
    came: set[str] = set()
    while last not in came:
        heard = receiver.recv(65536)
        came |= {word for word in frames if heard.endswith(word.encode())}
    return came


def waiting(receiver: socket.socket, word: str) -> int:
    """How many frames that end in this word have come and were not yet read."""
    receiver.setblocking(False)
    heard = []
    with suppress(BlockingIOError):
        while True:
            heard.append(receiver.recv(65536))
    return sum(frame.endswith(word.encode()) for frame in heard)


def _mac(text: str) -> bytes:
    return bytes.fromhex(text.replace(":", ""))
