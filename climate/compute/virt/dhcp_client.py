"""DHCP clients of guests that have no machine of their own: one for each interface, in the guest's network namespace.

A client is a companion of its guest's process: it is started when the guest
runs, ended with it, goes on while the guest is paused (or its lease would run
out) and while the service is restarted.  In the guest's folder are `dhcp.sh`,
`dhcp.log`, `dhcp-eth0.pid` and so on, and `resolv.conf`, which names the servers
that the client was told of.
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
"""In a client's environment: its guest's id, so that it is found when its pid file was never written."""
_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"

# A question a second, for ever: the server may learn of the guest a moment after it is started.
_ASKS = ("-f", "-t", "10", "-T", "1", "-A", "1", "-O", "mtu")

# What is told about names goes into the guest's own folder: /etc/resolv.conf is the host's.
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
    """Why no client can work here; None: they can."""
    missing = next((name for name in PACKAGES if _found(name) is None), None)
    return f"{missing} is not installed (Debian: {PACKAGES[missing]})" if missing else None


def ensure(home: Path, guest: Guest) -> None:
    """Have a client for each of the guest's interfaces that need one; when all are there they go on."""
    wanted = [one for one in guest.interfaces if one.dhcp and one.netns is not None]
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
    """The file that names the servers which a guest's client was told of; there from now on."""
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
        raise VirtError(f"{PROGRAM} on {one.device} of server {server_id} ended at once")
    processes.write(_pid_file(home, one), pid)


def _pid_file(home: Path, one: Interface) -> Path:
    return home / f"dhcp-{one.device}.pid"


def _found(program: str) -> str | None:
    """Where a program is; ordinary users do not look everywhere."""
    return shutil.which(program) or shutil.which(program, path=_PATH)
