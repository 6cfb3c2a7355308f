"""DHCP clients of guests that are not virtual machines: one per interface, in the guest's network namespace.

A client starts and ends with its guest's process. It continues while the guest is paused, because its lease would
expire, and while the service restarts. The guest's folder has `dhcp.sh`, `dhcp.log`, `dhcp-eth0.pid` and so on, and
`resolv.conf` with the name servers from DHCP.
"""

import os
import shutil
from io import FileIO
from pathlib import Path

from climate.compute.errors import VirtError
from climate.compute.linux import netns, processes
from climate.compute.virt import Guest, Interface
from climate.compute.virt.guest_folders import kill

PROGRAM, CONFIGURER = "udhcpc", "ip"
PACKAGES = {PROGRAM: "udhcpc", CONFIGURER: "iproute2"}

LOG, RESOLV = "dhcp.log", "resolv.conf"

_SCRIPT, _FILES = "dhcp.sh", "dhcp-*.pid"
_MARK, _RESOLV = "CLIMATE_DHCP_OF", "CLIMATE_RESOLV"
"""Environment variable of a client with its guest's id, by which it is found without its pid file."""
_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"

# Retry every second without end: the server may learn of the guest after its start.
_ASKS = ("-f", "-t", "10", "-T", "1", "-A", "1", "-O", "mtu")

# Name servers are written to the guest's folder, because /etc/resolv.conf belongs to the host.
_TEXT = """#!/bin/sh
case "$1" in
deconfig)
    ip -4 address flush dev "$interface"
    ip link set dev "$interface" up
    ;;
bound | renew)
    [ -z "$mtu" ] || ip link set dev "$interface" mtu "$mtu"
    ip -4 address replace "$ip/$mask" broadcast + dev "$interface"
    [ -z "$router" ] || ip -4 route replace default via "${router%% *}" dev "$interface"
    if [ -n "$dns" ]; then
        { [ -z "$domain" ] || echo "search $domain"; for server in $dns; do echo "nameserver $server"; done; } \\
            >"$CLIMATE_RESOLV"
    fi
    ;;
esac
"""


def trouble() -> str | None:
    """Return why no client can run here, or None if they can."""
    missing = next((name for name in PACKAGES if _found(name) is None), None)
    return f"{missing} is not installed (Debian: {PACKAGES[missing]})" if missing else None


def ensure(home: Path, guest: Guest) -> None:
    """Ensure that a client runs for each of the guest's interfaces that use DHCP; keep them if all do."""
    wanted = [interface for interface in guest.interfaces if interface.dhcp and interface.netns is not None]
    files = [_pid_file(home, one) for one in wanted]
    if all(processes.state(processes.read(file)) is not None for file in files) and set(files) == set(
        home.glob(_FILES)
    ):
        return
    end(home)
    if wanted:
        script = home / _SCRIPT
        script.write_text(_TEXT, encoding="ascii")
        script.chmod(0o700)
    for one in wanted:
        _start(home, guest.id, one)


def end(home: Path) -> None:
    """End all clients of the guest in a folder."""
    if not (home / _SCRIPT).exists():
        return
    files = list(home.glob(_FILES))
    kill(pid for file in files if (pid := processes.read(file)) is not None)
    kill(processes.carrying({_MARK: home.name, _RESOLV: str(home / RESOLV)}))
    for file in files:
        file.unlink(missing_ok=True)
    (home / _SCRIPT).unlink(missing_ok=True)


def resolv(home: Path) -> Path:
    """Return the file with the name servers of a guest's client, created if missing."""
    file = home / RESOLV
    file.touch(mode=0o644)
    return file


def _start(home: Path, server_id: str, one: Interface) -> None:
    program = _found(PROGRAM)
    if program is None:
        raise VirtError(f"{PROGRAM} is not installed (Debian: {PACKAGES[PROGRAM]})")
    argv = [program, "-i", one.device, "-s", str(home / _SCRIPT), *_ASKS]
    environment = {"PATH": _PATH, _MARK: server_id, _RESOLV: str(resolv(home))}
    with FileIO(home / LOG, "ab") as log, FileIO(os.devnull) as nothing:
        started = netns.inside(one.netns, lambda: processes.spawn(argv, environment, nothing.fileno(), log.fileno()))
    pid = processes.of(started)
    if pid is None:
        raise VirtError(f"{PROGRAM} on {one.device} of server {server_id} exited immediately")
    processes.write(_pid_file(home, one), pid)


def _pid_file(home: Path, one: Interface) -> Path:
    return home / f"dhcp-{one.device}.pid"


def _found(program: str) -> str | None:
    """Return the path of a program, also outside an ordinary user's PATH."""
    return shutil.which(program) or shutil.which(program, path=_PATH)
