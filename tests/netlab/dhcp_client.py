"""A guest that asks for its address by a real DHCP client, and for names by DNS."""

import socket
import struct
import subprocess
from pathlib import Path

from climate.compute.linux import netns
from tests.netlab.guests import run

_SCRIPT = """#!/bin/sh
[ "$1" = renew ] && echo "$ip" >> "${0%/*}/renewed"
[ "$1" = bound ] || exit 0
ip address add "$ip/$mask" dev "$interface"
echo "ip=$ip router=$router mtu=$mtu dns=$dns domain=$domain hostname=$hostname" > "$0.told"
"""
NOT_THERE = 3
"""What a name server answers about a name that nobody has."""

REFUSED = 5


def lease(place: str, folder: Path, tries: int = 20) -> dict[str, str]:
    """What the client was told, with its address on its interface; empty when nobody told it anything."""
    script = folder / f"{place}.sh"
    told = folder / f"{place}.sh.told"
    told.unlink(missing_ok=True)
    script.write_text(_SCRIPT, encoding="ascii")
    script.chmod(0o755)
    run(place, "udhcpc", "-i", "eth0", "-n", "-q", "-f", "-t", str(tries), "-T", "1", "-s", str(script))
    if not told.exists():
        return {}
    return dict(word.split("=", 1) for word in told.read_text(encoding="ascii").split())


def client(place: str, folder: Path) -> subprocess.Popen[bytes]:
    """A client that goes on, and renews its lease when it gets SIGUSR1."""
    script = folder / f"{place}.sh"
    script.write_text(_SCRIPT, encoding="ascii")
    script.chmod(0o755)
    words = ("udhcpc", "-i", "eth0", "-f", "-T", "1", "-s", str(script))
    return netns.inside(place, lambda: subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))


def renewals(folder: Path) -> int:
    """How often clients were told that they may keep their addresses."""
    path = folder / "renewed"
    return len(path.read_text(encoding="ascii").splitlines()) if path.exists() else 0


def ask(place: str, server: str, name: str, kind: int = 1) -> tuple[int, list[str]]:
    """The code of the answer, and the addresses or names in it, to a question of this kind (1: address, 12: name)."""
    question = b"".join(bytes((len(part),)) + part.encode() for part in name.split(".")) + b"\0"
    query = struct.pack("!6H", 7, 0x0100, 1, 0, 0, 0) + question + struct.pack("!2H", kind, 1)

    def asked() -> bytes:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asker:
            asker.settimeout(20)
            asker.sendto(query, (server, 53))
            return asker.recv(4096)

    answer = netns.inside(place, asked)
    _, flags, _, count, _, _ = struct.unpack_from("!6H", answer)
    found, at = [], len(query)
    for _ in range(count):
        size = struct.unpack_from("!H", answer, at + 10)[0]
        data = answer[at + 12 : at + 12 + size]
        found.append(socket.inet_ntoa(data) if kind == 1 else _name(data))
        at += 12 + size
    return flags & 0xF, found


def _name(data: bytes) -> str:
    parts = []
    while data and data[0]:
        parts.append(data[1 : 1 + data[0]].decode())
        data = data[1 + data[0] :]
    return ".".join(parts)
