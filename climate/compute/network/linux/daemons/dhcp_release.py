"""DHCPRELEASE message sent on behalf of a client (RFC 2131, section 4.4.6)."""

import os
import socket
import struct
from ipaddress import IPv4Address

_SERVER_PORT = 67
_REQUEST, _ETHERNET, _MAC_BYTES = 1, 1, 6
_COOKIE = bytes((99, 130, 83, 99))
_TYPE, _RELEASE, _SERVER_ID, _END = 53, 7, 54, 255


def message(mac: str, address: IPv4Address, server: IPv4Address) -> bytes:
    """Return the message of the client with this hardware address."""
    head = struct.pack("!BBBB4sHH", _REQUEST, _ETHERNET, _MAC_BYTES, 0, os.urandom(4), 0, 0)
    addresses = address.packed + bytes(12)
    hardware = bytes.fromhex(mac.replace(":", "")).ljust(16, b"\0")
    options = _COOKIE + bytes((_TYPE, 1, _RELEASE, _SERVER_ID, 4)) + server.packed + bytes((_END,))
    return head + addresses + hardware + bytes(64 + 128) + options


def send(device: str, mac: str, address: IPv4Address, server: IPv4Address) -> None:
    """Send the message from this namespace to the server on `device`; DHCPRELEASE has no answer."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, device.encode())
        sender.sendto(message(mac, address, server), (str(server), _SERVER_PORT))
