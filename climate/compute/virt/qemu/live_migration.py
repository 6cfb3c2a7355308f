"""Live migration of virtual machines between two QEMUs, on one machine or on two.

The destination's QEMU waits in the folder `incoming` of the server's folder. That folder holds its `pid`, its monitor
`qmp`, and files of the route: see `local_route` and `remote_route`.

A QEMU that received all memory is paused until it gets the order to continue. It gets this order only after the source
has ended. So both never run at once, and until then the source can continue.
"""

import json
import os
import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from io import FileIO
from pathlib import Path
from typing import Any
from uuid import uuid4

from climate.compute.errors import VirtError
from climate.compute.linux import processes
from climate.compute.virt import Guest, Interface, config_drive
from climate.compute.virt.guest_folders import CONSOLE, PID, PREPARED, Homes, as_virt_error, kill
from climate.compute.virt.live_migrator import APART, SECRETS, Limits, Watch
from climate.compute.virt.qemu import disks, migration_tls, network_devices, qmp, remote_route
from climate.compute.virt.qemu.command_line import (
    DISK,
    DISK_NODE,
    DISK_PROGRAM,
    PROGRAM,
    Machine,
    accelerator,
    command,
    program_path,
)
from climate.compute.virt.qemu.local_route import RouteOnOneMachine
from climate.compute.virt.qemu.memory_transfer import Handover, Route
from climate.compute.virt.qemu.migration_ports import SETTING, PortRange
from climate.compute.virt.qemu.migration_tls import Credentials
from climate.compute.virt.qemu.remote_route import RouteBetweenMachines

INCOMING, TOKEN, COPY, LOG = "incoming", remote_route.OFFERED, "copy", "qemu.log"
"""Marker file in the folder of a QEMU that waits for its disk too."""

FROM_AFAR = "from-afar"
"""File in the folder of a QEMU that waits for a guest of another machine: True if the guest shall run, as JSON."""

WAITS_IN = "CLIMATE_INCOMING"
"""Environment variable of a waiting QEMU with the server's folder, by which it is found without its pid file."""

_KEY, _CONSOLE = "key", "console"
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True)
class QemuMigrator:
    """Live migration for the guests of `homes`; `seconds` is the monitor's timeout."""

    homes: Homes
    accel: str
    seconds: float
    listening: PortRange | None = None
    """Address for guests of other machines; None: they are refused."""

    @as_virt_error
    def offer(self, guest: Guest) -> Mapping[str, object]:
        home, pid = self.homes.of(guest.id), self.homes.pid(guest.id)
        if pid is None:
            raise VirtError(f"server {guest.id} has no process: only one that is running or paused is migrated live")
        if guest.rescued:
            raise VirtError(f"server {guest.id} is rescued: it is migrated live after the rescue has ended")
        with qmp.connect(home, self.seconds) as monitor:
            status = monitor.status()
            cards = [card["main-mac"] for card in monitor.execute("query-rx-filter")]
            nodes = monitor.execute("query-named-block-nodes", flat=True)
            board = str(monitor.execute("qom-get", path="/machine", property="type")).removesuffix("-machine")
        if status not in ("running", "paused"):
            raise VirtError(f"server {guest.id} is in state {status} of QEMU: it must be running or paused")
        token = str(uuid4())
        (home / TOKEN).write_text(token, encoding="ascii")
        size = next(int(node["image"]["virtual-size"]) for node in nodes if node["node-name"] == DISK_NODE)
        state = {"token": token, "machine": _machine(), "pid": str(pid), "running": status == "running"}
        place: dict[str, object] = {"from": str(home), "board": board, "accel": accelerator(self.accel)}
        drive = home / config_drive.DISK
        if drive.exists():
            place |= {"config_drive": str(drive), "config_bytes": drive.stat().st_size}
        return {**state, **place, "macs": cards, "disk_bytes": size}

    @as_virt_error
    def receive(self, guest: Guest, offer: Mapping[str, Any]) -> Mapping[str, object]:
        home = self.homes.of(guest.id)
        shared = _token(home) == offer["token"]
        apart = offer["machine"] != _machine() or _token(Path(offer["from"])) != offer["token"]
        if apart:
            self._check_apart(offer, shared=shared)
        self.drop(guest.id)
        if not shared and self.homes.pid(guest.id) is not None:
            raise VirtError(f"server {guest.id} is running here already")
        waits = home / INCOMING
        home.mkdir(mode=0o700, parents=True, exist_ok=True)  # parents that `mkdir` creates are open to everybody
        waits.mkdir(mode=0o700)
        if apart:
            (waits / FROM_AFAR).write_text(json.dumps(offer["running"]), encoding="ascii")
        if not shared:
            (waits / COPY).touch()
            _create_disks(home, offer, apart=apart)
        wanted = replace(guest, interfaces=_as_sent(guest.interfaces, offer["macs"]))
        network_devices.write_file(home, wanted)
        with self._dropped_on_error(guest.id):
            self._spawn(wanted, home, None if apart else processes.parsed(offer["pid"]), offer["board"])
            with qmp.connect(waits, self.seconds) as monitor:
                monitor.status()
                remote = self._open_ports(monitor, home, offer) if apart else {}
        return {**offer, "home": str(home), "shared": shared, **remote}

    @as_virt_error
    def send(self, guest: Guest, arrangement: Mapping[str, Any], limits: Limits, watch: Watch) -> Mapping[str, object]:
        home, source = self.homes.of(guest.id), processes.parsed(arrangement["pid"])
        if source is None:
            raise VirtError(f"the machine of server {guest.id} cannot be found")
        apart, running = APART in arrangement, arrangement["running"]
        route = self._route_apart(home, arrangement) if apart else self._route_here(home, arrangement)
        Handover(home, source, route, running, limits, self.seconds).run(watch)
        return {SECRETS: {_CONSOLE: self._printed(guest.id)}} if apart else {}

    @as_virt_error
    def keep(self, guest: Guest, sent: Mapping[str, object]) -> None:
        home = self.homes.of(guest.id)
        waits = home / INCOMING
        if waits.is_dir():
            if (waits / PID).exists():
                self._take_over(guest, waits, sent)
            # Move the process last: from then on it uses the monitor in the folder.
            for name in (qmp.SOCKET, PID):
                if (waits / name).exists():
                    (waits / name).replace(home / name)
            for name in (TOKEN, PREPARED):
                (home / name).unlink(missing_ok=True)
            shutil.rmtree(waits)
        if self.homes.pid(guest.id) is None:
            raise VirtError(f"server {guest.id} has ended{self.homes.last_words(guest.id, LOG)}")

    @as_virt_error
    def drop(self, server_id: str, *, spare_disk: bool = False) -> None:
        home = self.homes.of(server_id)
        waits, ordinary = home / INCOMING, self.homes.pid(server_id)
        recorded = processes.read(waits / PID)
        waiting = [*((recorded,) if recorded else ()), *processes.carrying({WAITS_IN: str(home)})]
        kill(pid for pid in waiting if pid != ordinary)
        if (waits / COPY).exists() and ordinary is None and not spare_disk:
            self.homes.remove(server_id)
        elif waits.is_dir():
            shutil.rmtree(waits)

    @as_virt_error
    def clear(self, guest: Guest, arrangement: Mapping[str, object]) -> None:
        if not arrangement["shared"]:
            self.homes.remove(guest.id)

    @as_virt_error
    def waiting(self) -> Collection[str]:
        return [server_id for server_id in self.homes.ids() if (self.homes.of(server_id) / INCOMING).is_dir()]

    def _check_apart(self, offer: Mapping[str, object], *, shared: bool) -> None:
        """Check that a guest of another machine can be received. Raise VirtError with the setting to change."""
        if shared:
            raise VirtError(
                f"the two nodes are on different machines and share the folder {self.homes.folder}: "
                "give each compute service a folder of its own, or use cold migration"
            )
        if self.listening is None:
            raise VirtError(
                "the two nodes are on different machines, and the service of the destination takes no running "
                f"servers of others: set its {SETTING}, or use cold migration"
            )
        if (here := accelerator(self.accel)) != offer["accel"]:
            raise VirtError(
                f"the server runs under {offer['accel']} and the destination has {here}: use cold migration"
            )

    def _printed(self, server_id: str) -> str:
        """Return the console output of a sent guest; empty if unreadable, which must not stop the guest."""
        try:
            return self.homes.console(server_id, None)
        except OSError:
            return ""

    def _open_ports(self, monitor: qmp.Monitor, home: Path, offer: Mapping[str, Any]) -> Mapping[str, object]:
        own = Credentials(offer["token"], migration_tls.new_key())
        config = home / config_drive.DISK if "config_drive" in offer else None
        if self.listening is None:
            raise VirtError(f"{SETTING} is not set")
        ports = remote_route.open_ports(monitor, home / INCOMING, self.listening, own, config)
        return {APART: True, **ports, SECRETS: {_KEY: own.key}}

    def _route_here(self, home: Path, arrangement: Mapping[str, Any]) -> Route:
        waits = Path(arrangement["home"]) / INCOMING
        target = processes.read(waits / PID)
        if target is None:
            raise VirtError(f"the machine that waits for server {home.name} cannot be found")
        running, is_copied = arrangement["running"], not arrangement["shared"]
        return RouteOnOneMachine(home, waits, target, running, is_copied, self.seconds)

    def _route_apart(self, home: Path, arrangement: Mapping[str, Any]) -> Route:
        own = Credentials(arrangement["token"], arrangement[SECRETS][_KEY])
        address, memory, disk = (arrangement[name] for name in ("address", "memory_port", "disk_port"))
        return RouteBetweenMachines(home, address, memory, disk, own, arrangement["disks"], self.seconds)

    def _take_over(self, guest: Guest, waits: Path, sent: Mapping[str, object]) -> None:
        """Let the waiting guest run. After VirtError it has ended, and its disk stays."""
        pid = processes.read(waits / PID)
        try:
            if processes.state(pid) is None:
                raise VirtError(f"server {guest.id} has ended{self.homes.last_words(guest.id, LOG)}")
            # A worker that died may have moved the monitor already: then the guest goes on.
            if (waits / FROM_AFAR).exists() and (waits / qmp.SOCKET).exists():
                self._begin_from_afar(waits, sent)
        except VirtError:
            self.drop(guest.id, spare_disk=True)
            raise

    def _begin_from_afar(self, waits: Path, sent: Mapping[str, Any]) -> None:
        with qmp.connect(waits, self.seconds) as monitor:
            if remote_route.settled(monitor) == "paused":
                with suppress(OSError):  # a full disk must not stop the guest
                    (waits.parent / CONSOLE).write_text(sent.get(SECRETS, {}).get(_CONSOLE, ""), encoding="utf-8")
            running = bool(json.loads((waits / FROM_AFAR).read_text(encoding="ascii")))
            remote_route.take_over(monitor, waits, running=running)

    @contextmanager
    def _dropped_on_error(self, server_id: str) -> Iterator[None]:
        try:
            yield
        except VirtError as error:
            words = self.homes.last_words(server_id, LOG)
            self.drop(server_id)
            raise VirtError(f"{error}{words}") from error

    def _spawn(self, guest: Guest, home: Path, source: processes.Pid | None, board: str) -> None:
        environment, waits = {"PATH": "/usr/bin:/bin", WAITS_IN: str(home)}, home / INCOMING
        with (
            qmp.listen(waits) as monitor,
            self.homes.open_log(guest.id, LOG) as log,
            FileIO(os.devnull) as nothing,
            network_devices.opened(guest, beside=source.number if source else None) as taps,
        ):
            kind = accelerator(self.accel)
            machine = Machine(
                program_path(PROGRAM), kind, home, monitor.fileno(), taps=taps, incoming=True, board=board
            )
            passed = [monitor.fileno(), *taps.values()]
            number = processes.spawn(command(machine, guest), environment, nothing.fileno(), log.fileno(), passed)
        pid = processes.of(number)
        if pid is None:
            raise VirtError("the waiting QEMU exited immediately")
        processes.write(waits / PID, pid)


def _create_disks(home: Path, offer: Mapping[str, Any], *, apart: bool) -> None:
    """Create an empty disk, and an identical config drive, because the guest has parts of it in memory."""
    (home / DISK).unlink(missing_ok=True)
    disks.create(program_path(DISK_PROGRAM), home / DISK, offer["disk_bytes"])
    drive = home / config_drive.DISK
    drive.unlink(missing_ok=True)
    if "config_drive" not in offer:
        return
    with os.fdopen(os.open(drive, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        if apart:
            file.truncate(offer["config_bytes"])
        else:
            file.write(Path(offer["config_drive"]).read_bytes())


def _as_sent(interfaces: Sequence[Interface], macs: Sequence[str]) -> tuple[Interface, ...]:
    """Return the interfaces that the guest was started with; later ones apply after its next start."""
    there = {interface.mac: interface for interface in interfaces}
    return tuple(there.get(mac, Interface(mac)) for mac in macs)


def _machine() -> str:
    """Return the identity of the machine until its reboot."""
    return _BOOT_ID.read_text(encoding="ascii").strip()


def _token(home: Path) -> str | None:
    try:
        return (home / TOKEN).read_text(encoding="ascii")
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return None  # another machine may have any file under that name
