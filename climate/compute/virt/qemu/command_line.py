"""Command line of a virtual machine, and its accelerator."""

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from climate.compute.errors import VirtError
from climate.compute.virt import Guest, config_drive
from climate.compute.virt.guest_folders import CONSOLE
from climate.compute.virt.guest_volumes import Attached
from climate.compute.virt.qemu import network_devices

AUTO, KVM, TCG = "auto", "kvm", "tcg"
PROGRAM, DISK_PROGRAM = "qemu-system-x86_64", "qemu-img"
PACKAGES = {PROGRAM: "qemu-system-x86", DISK_PROGRAM: "qemu-utils"}

DISK, DISK_NODE = "disk.qcow2", "disk"
RESCUE_DISK, RESCUE_NODE = "rescue.qcow2", "rescue"
CONFIG_NODE = "config"

_PROMISES_KVM = frozenset({"vmx", "svm"})
_SANDBOX = "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny"


@dataclass(frozen=True, slots=True)
class Machine:
    """Parameters of a QEMU process; `monitor`, `memory` and `taps` are inherited file descriptors."""

    program: str
    accel: str
    home: Path
    monitor: int
    memory: int | None = None
    """File descriptor of saved memory; None: the guest boots."""
    taps: Mapping[str, int] = field(default_factory=dict)
    """MAC -> file descriptor of the tap device."""
    incoming: bool = False
    """True if it waits for an incoming migration."""
    board: str = "pc"
    """QEMU's machine type; the versioned one for a migrated guest."""


def command(machine: Machine, guest: Guest) -> list[str]:
    """Return the command line of a machine that waits at its first instruction."""
    console = _in_option(machine.home / CONSOLE)
    return [
        machine.program,
        *("-nodefaults", "-no-user-config", "-display", "none", "-sandbox", _SANDBOX),
        *("-machine", machine.board, "-accel", "tcg,tb-size=64" if machine.accel == TCG else machine.accel),
        *("-uuid", guest.id, "-smp", str(guest.vcpus), "-m", f"{guest.ram_mb}M", "-S"),
        *("-chardev", f"socket,id=monitor,fd={machine.monitor},server=on,wait=off"),
        *("-mon", "chardev=monitor,mode=control"),
        *("-chardev", f"file,id=console,path={console},append=on", "-serial", "chardev:console"),
        *_disks(machine.home, guest),
        *(word for index, one in enumerate(guest.interfaces) for word in _interface(index, one.mac, machine.taps)),
        *(word for volume in guest.volumes for word in _volume(volume)),
        *(_config_drive(machine.home) if (machine.home / config_drive.DISK).exists() else ()),
        *(_injected(machine.home) if (machine.home / network_devices.FILE).exists() else ()),
        *(() if machine.memory is None else ("-incoming", f"fd:{machine.memory}")),
        *(("-incoming", "defer") if machine.incoming else ()),
    ]


def program_path(program: str) -> str:
    """Return the path of a program. Raise VirtError if it is not installed."""
    result = shutil.which(program)
    if result is None:
        raise VirtError(f"{program} is not installed (Debian: {PACKAGES[program]})")
    return result


def accelerator(wanted: str, device: Path = Path("/dev/kvm"), cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """Return the accelerator for `auto`: the KVM device must exist, and the CPU must support it for
    ordinary kernels.
    """
    if wanted != AUTO:
        return wanted
    try:
        os.close(os.open(device, os.O_RDWR | os.O_CLOEXEC))
        words = cpuinfo.read_text(encoding="ascii", errors="replace").split()
    except OSError:
        return TCG
    return KVM if _PROMISES_KVM.intersection(words) else TCG


def _disks(home: Path, guest: Guest) -> list[str]:
    """Return the options of the disk that a guest boots from, and of the own disk of a rescued guest behind it."""
    if not guest.rescued:
        return [*_disk(home / DISK, DISK_NODE, ",bootindex=1")]
    own = _disk(home / DISK, DISK_NODE) if (home / DISK).exists() else ()
    return [*_disk(home / RESCUE_DISK, RESCUE_NODE, ",bootindex=1"), *own]


def _disk(path: Path, node: str, more: str = "") -> tuple[str, ...]:
    file = {"driver": "file", "filename": str(path)}
    block = {"driver": "qcow2", "node-name": node, "discard": "unmap", "file": file}
    return "-blockdev", json.dumps(block), "-device", f"virtio-blk-pci,drive={node}{more}"


def _interface(place: int, mac: str, taps: Mapping[str, int]) -> tuple[str, ...]:
    """Return the options of a network interface on a tap, or on its own hub without a tap."""
    netdev = f"tap,id=net{place},fd={taps[mac]},vhost=off" if mac in taps else f"hubport,id=net{place},hubid={place}"
    return (
        *("-netdev", netdev),
        *("-device", f"virtio-net-pci,netdev=net{place},mac={mac},romfile="),
    )


def _volume(one: Attached) -> tuple[str, ...]:
    return "-blockdev", json.dumps(one.block()), "-device", json.dumps(one.device_options())


def _config_drive(home: Path) -> tuple[str, ...]:
    """Return the options of a CD drive, which leaves the names of disks to the server's disk and volumes."""
    disk = {"driver": "file", "filename": str(home / config_drive.DISK)}
    block = {"driver": "raw", "node-name": CONFIG_NODE, "read-only": True, "file": disk}
    return "-blockdev", json.dumps(block), "-device", f"ide-cd,drive={CONFIG_NODE}"


def _injected(home: Path) -> tuple[str, str]:
    """Return the options of the injected network file, which guests find in /sys/firmware/qemu_fw_cfg/by_name."""
    return "-fw_cfg", f"name={network_devices.INJECTED},file={_in_option(home / network_devices.FILE)}"


def _in_option(path: Path) -> str:
    return str(path).replace(",", ",,")
