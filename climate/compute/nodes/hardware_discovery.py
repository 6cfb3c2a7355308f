"""NUMA cells and PCI devices of this machine, read from Linux for the report of nodes."""

from pathlib import Path

SYS = Path("/sys")


def numa_cells(root: Path = SYS) -> list[dict[str, object]]:
    """Return {cpus, memory_mb} of each NUMA cell in the order of their numbers; none if the kernel shows none."""
    folders = [folder for folder in (root / "devices/system/node").glob("node*") if folder.name[4:].isdecimal()]
    return [
        {"cpus": _cpus(_text(folder / "cpulist")), "memory_mb": _memory_mb(_text(folder / "meminfo"))}
        for folder in sorted(folders, key=lambda folder: int(folder.name[4:]))
    ]


def pci_devices(root: Path = SYS) -> list[dict[str, object]]:
    """Return {address, vendor_id, product_id} of each PCI device in the order of their addresses."""
    return [
        {"address": folder.name, "vendor_id": _id(folder / "vendor"), "product_id": _id(folder / "device")}
        for folder in sorted((root / "bus/pci/devices").glob("*"))
    ]


def _text(path: Path) -> str:
    try:
        return path.read_text("ascii").strip()
    except OSError:
        return ""


def _id(path: Path) -> str:
    return _text(path).removeprefix("0x").lower()


def _cpus(listed: str) -> int:
    """Return the number of CPUs in a list such as `0-3,8`."""
    result = 0
    for part in filter(None, listed.split(",")):
        first, _, last = part.partition("-")
        result += int(last or first) - int(first) + 1
    return result


def _memory_mb(meminfo: str) -> int:
    """Return MemTotal in MB; the kernel shows kB."""
    totals = [line.split()[-2] for line in meminfo.splitlines() if "MemTotal:" in line]
    return int(totals[0]) // 1024 if totals else 0
