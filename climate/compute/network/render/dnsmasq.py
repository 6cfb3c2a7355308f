"""What dnsmasq is told: its command, and the files that it reads.  Source: cloud.md D.8 and G.5."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from climate.compute.errors import NetworkError
from climate.compute.network.driver import Dhcp, Entry, Link
from climate.compute.network.render.validation import ORDINARY_MTU, interface

PROGRAM = "dnsmasq"

_LABEL = re.compile(r"[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?")
_WORD = re.compile(r"[A-Za-z0-9._-]+")
_SET = "net:"
_NO_ROUTER = 3
"""Number of DHCP's option for routers: named without a value, none is told."""


@dataclass(frozen=True, slots=True)
class Files:
    """Where the files of the server of one network are: in a folder of its own below `folder`."""

    folder: Path
    network_id: str

    @property
    def home(self) -> Path:
        return self.folder / self.network_id

    @property
    def hosts(self) -> Path:
        return self.home / "hosts"

    @property
    def options(self) -> Path:
        return self.home / "opts"

    @property
    def leases(self) -> Path:
        return self.home / "leases"

    @property
    def pid(self) -> Path:
        return self.home / "pid"

    @property
    def log(self) -> Path:
        return self.home / "log"

    @property
    def script(self) -> Path:
        return self.folder / "script"

    @property
    def spool(self) -> Path:
        return self.folder / "spool"


def command(link: Link, dhcp: Dhcp, files: Files, config: str = "") -> tuple[str, ...]:
    """The command of the server of one bridge; `config` is a file of the operator's that it reads too.

    It is bound to its bridge, not only to its address: several servers on a host share port 67, and what a client
    sends to one of them must not reach another.  NetworkError when the bridge has no address to listen on.
    """
    if link.gateway is None:
        raise NetworkError(f"bridge {link.bridge} has no address that a DHCP server could listen on")
    return (
        *(PROGRAM, "--strict-order", "--bind-interfaces", f"--conf-file={config}", f"--domain={dhcp.domain}"),
        *(f"--pid-file={files.pid}", f"--listen-address={link.gateway.ip}", f"--interface={interface(link.bridge)}"),
        *("--except-interface=lo", f"--dhcp-range={dhcp.start},static,{dhcp.lease_seconds}s"),
        *(f"--dhcp-lease-max={dhcp.network.num_addresses}", f"--dhcp-hostsfile={files.hosts}"),
        *(f"--dhcp-optsfile={files.options}", f"--dhcp-script={files.script}", "--leasefile-ro"),
        # A client is who its MAC says: that is its own for certain, and what else it calls itself is not.
        *("--dhcp-ignore-clid", "--dhcp-authoritative", f"--local=/{dhcp.domain}/", "-h", "-R"),
        *(f"--server={server}" for server in dhcp.servers),
        *((f"--dhcp-option-force=26,{link.mtu}",) if link.mtu != ORDINARY_MTU else ()),
        *("--quiet-dhcp", f"--log-facility={files.log}"),
    )


def environment(link: Link, files: Files) -> dict[str, str]:
    """What the server hands on to its script, besides where programs are."""
    return {
        "NETWORK_ID": link.network_id,
        "DNSMASQ_INTERFACE": link.bridge,
        "CLIMATE_LEASES": str(files.leases),
        "CLIMATE_SPOOL": str(files.spool),
    }


def hosts(entries: Iterable[Entry], domain: str) -> str:
    """The file of who gets which address.  Source: cloud.md D.8, hosts line."""
    return "".join(f"{_host(entry, domain)}\n" for entry in entries)


def options(entries: Iterable[Entry]) -> str:
    """The file of who is told of no router: interfaces that are not their server's first.  Source: NW-16."""
    return "".join(f"{_tag(entry)},{_NO_ROUTER}\n" for entry in entries if not entry.routes)


def leases(entries: Iterable[Entry], seconds: int) -> str:
    """What a server that starts takes for granted, as the script answers `init`.  Source: NW-17."""
    return "".join(
        f"{entry.since + seconds} {entry.mac} {entry.address} {named(entry.hostname) or '*'} *\n" for entry in entries
    )


def gone(before: str, entries: Iterable[Entry]) -> str:
    """Of such a file as it was, the lines about addresses that nobody has now: their clients may still hold them."""
    held = {str(entry.address) for entry in entries}
    return "".join(f"{line}\n" for line in before.splitlines() if line.split()[2] not in held)


def tagged(hosts_file: str) -> bool:
    """Whether a file of who gets which address has tags in it."""
    return f",{_SET}" in hosts_file


def named(hostname: str) -> str | None:
    """The name, when DNS can have it; None: the interface gets its address, and no name."""
    return hostname if _LABEL.fullmatch(hostname) else None


def _host(entry: Entry, domain: str) -> str:
    name = named(entry.hostname)
    fields = [entry.mac, *([f"{name}.{domain}"] if name else []), str(entry.address)]
    return ",".join(fields if entry.routes else [*fields, f"{_SET}{_tag(entry)}"])


def _tag(entry: Entry) -> str:
    if not _WORD.fullmatch(entry.vif_id):
        raise NetworkError(f"{entry.vif_id!r} is not the id of an interface")
    return f"NW-{entry.vif_id}"


SCRIPT = """#!/bin/sh
# Written by climate.  dnsmasq calls it with what its clients did; each of that is kept as a file until it is read.
case "$1" in
init)
    exec cat "$CLIMATE_LEASES"
    ;;
add | old | del)
    name="$(date +%s%N)-$$"
    printf '%s %s %s %s\\n' "$NETWORK_ID" "$1" "$2" "$3" > "$CLIMATE_SPOOL/.$name" &&
        mv "$CLIMATE_SPOOL/.$name" "$CLIMATE_SPOOL/$name"
    ;;
esac
"""
"""The program that dnsmasq calls (cloud.md D.8, dhcp-script): actions that it does not know do nothing."""
