"""Command and configuration files of dnsmasq, following Nova's linux_net."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from climate.compute.errors import NetworkError
from climate.compute.network.driver import Dhcp, Entry, Link
from climate.compute.network.render.interface_names import ORDINARY_MTU, interface

PROGRAM = "dnsmasq"

_LABEL = re.compile(r"[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?")
_WORD = re.compile(r"[A-Za-z0-9._-]+")
_SET = "net:"
_NO_ROUTER = 3
"""Number of the DHCP option for routers; an empty value suppresses it."""
_ROUTES = 121
"""Number of the DHCP option for routes (RFC 3442)."""
_ANYWHERE = "0.0.0.0/0"


@dataclass(frozen=True, slots=True)
class Files:
    """Paths of the files of one network's server, in its own folder below `folder`."""

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
    """Return the command of the server of one bridge; `config` is an additional file of the operator.

    It is bound to its bridge, not only to its address. Several servers of a host share port 67, and a client's request
    must reach only its own. Raise NetworkError if the bridge has no address to listen on.
    """
    if link.gateway is None:
        raise NetworkError(f"bridge {link.bridge} has no address for a DHCP server to listen on")
    return (
        *(PROGRAM, "--strict-order", "--bind-interfaces", f"--conf-file={config}", f"--domain={dhcp.domain}"),
        *(f"--pid-file={files.pid}", f"--listen-address={link.gateway.ip}", f"--interface={interface(link.bridge)}"),
        *("--except-interface=lo", f"--dhcp-range={dhcp.start},static,{dhcp.lease_seconds}s"),
        *(f"--dhcp-lease-max={dhcp.network.num_addresses}", f"--dhcp-hostsfile={files.hosts}"),
        *(f"--dhcp-optsfile={files.options}", f"--dhcp-script={files.script}", "--leasefile-ro"),
        # Clients are identified by MAC, which anti-spoofing verifies; client ids are not verified.
        *("--dhcp-ignore-clid", "--dhcp-authoritative", f"--local=/{dhcp.domain}/", "-h", "-R"),
        *(f"--server={server}" for server in dhcp.servers),
        *((f"--dhcp-option-force=26,{link.mtu}",) if link.mtu != ORDINARY_MTU else ()),
        *("--quiet-dhcp", f"--log-facility={files.log}"),
    )


def environment(link: Link, files: Files) -> dict[str, str]:
    """Return the environment for the server's script."""
    return {
        "NETWORK_ID": link.network_id,
        "DNSMASQ_INTERFACE": link.bridge,
        "CLIMATE_LEASES": str(files.leases),
        "CLIMATE_SPOOL": str(files.spool),
    }


def hosts(entries: Iterable[Entry], domain: str) -> str:
    """Return the dhcp-hostsfile: the address of each MAC."""
    return "".join(f"{_host(entry, domain)}\n" for entry in entries)


def options(entries: Iterable[Entry], dhcp: Dhcp | None = None) -> str:
    """Return the dhcp-optsfile: further routes, and no router for interfaces that are not their server's first.

    A client that gets the option of routes ignores the one of routers, so the former has the default route too.
    """
    routes = "" if dhcp is None else "".join(f",{to},{hop}" for to, hop in dhcp.routes)
    lines = []
    if dhcp is not None and routes:
        lines.append(f"{_ROUTES}{routes},{_ANYWHERE},{dhcp.router}")
    for entry in entries:
        if not entry.routes:
            lines.append(f"{_tag(entry)},{_NO_ROUTER}")
            lines += [f"{_tag(entry)},{_ROUTES}{routes}"] if routes else []
    return "".join(f"{line}\n" for line in lines)


def leases(entries: Iterable[Entry], seconds: int) -> str:
    """Return the leases that a starting server assumes, as the script prints them for `init`."""
    return "".join(
        f"{entry.since + seconds} {entry.mac} {entry.address} {named(entry.hostname) or '*'} *\n" for entry in entries
    )


def unassigned_lines(before: str, entries: Iterable[Entry]) -> str:
    """Return the lines of an earlier hosts file whose addresses are no longer assigned; clients may still hold them."""
    held = {str(entry.address) for entry in entries}
    return "".join(f"{line}\n" for line in before.splitlines() if line.split()[2] not in held)


def tagged(hosts_file: str) -> bool:
    """Return whether a hosts file has tags."""
    return f",{_SET}" in hosts_file


def named(hostname: str) -> str | None:
    """Return the hostname if it is valid in DNS, else None: the interface gets an address but no name."""
    return hostname if _LABEL.fullmatch(hostname) else None


def _host(entry: Entry, domain: str) -> str:
    name = named(entry.hostname)
    fields = [entry.mac, *([f"{name}.{domain}"] if name else []), str(entry.address)]
    return ",".join(fields if entry.routes else [*fields, f"{_SET}{_tag(entry)}"])


def _tag(entry: Entry) -> str:
    if not _WORD.fullmatch(entry.vif_id):
        raise NetworkError(f"{entry.vif_id!r} is not an interface's id")
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
"""Script that dnsmasq runs for each lease event (dhcp-script); unknown actions are ignored."""
