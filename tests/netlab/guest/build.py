"""Builds the disk of the machine, from packages that apt downloads and nobody installs.

    python -m tests.netlab.guest.build [FILE]

It takes half a minute, most of it for the download.  Needs apt-get and dpkg of Debian 12.  Beside the first disk are
that of a machine that serves SSH, and the image of such a container.  Where OpenVPN is installed there is also the disk
of a machine that has it: the image of cloudpipes.
"""

import gzip
import io
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

from climate.sandbox import guest_image

HERE = Path(__file__).parent
TARGET = HERE.parents[2] / "var" / "test-machine.img"
CLOUDPIPE = TARGET.with_name("test-cloudpipe.img")
SSH_MACHINE = TARGET.with_name("test-ssh-machine.img")
SSH_CONTAINER = TARGET.with_name("test-ssh-container.tar.gz")
OPENVPN = Path("/usr/sbin/openvpn")

KERNEL = "linux-image-cloud-amd64"
PROGRAMS = ("busybox-static", "grub-common", "grub-pc-bin", "libdevmapper1.02.1")
MODULES = (
    "virtio_pci",
    "virtio_net",
    "virtio_blk",
    "button",
    "evdev",
    "qemu_fw_cfg",
    "ata_piix",
    "sr_mod",
    "isofs",
    "tun",
)

SECTOR = 512
KERNEL_AT = 4096
"""Sector; before it is what the BIOS starts."""

_GRUB = "linux (hd0){kernel} console=ttyS0 quiet panic=-1 mitigations=off nokaslr\ninitrd (hd0){initrd}\nboot\n"
_GRUB_MODULES = ("biosdisk", "linux", "boot")
_DEPENDS = re.compile(rb"\0depends=([^\0]*)\0")
_FOLDER, _PROGRAM, _DEVICE, _FILE = 0o040755, 0o100755, 0o020600, 0o100644


def build(target: Path) -> None:
    """Make the disk, in one step; all others first."""
    with tempfile.TemporaryDirectory(prefix="climate-machine-") as scratch:
        root = guest_image.unpacked(Path(scratch), machine_packages())
        machines = {SSH_MACHINE.name: guest_image.ssh_files(root)}
        if OPENVPN.exists():
            machines[CLOUDPIPE.name] = _with_libraries(OPENVPN)
        write(target.with_name(SSH_CONTAINER.name), guest_image.container_image(root))
        for name, more in {**machines, target.name: {}}.items():
            write(target.with_name(name), disk(Path(scratch), root, more))


def machine_packages() -> tuple[str, ...]:
    """Return the packages of a machine that serves SSH."""
    return tuple(dict.fromkeys((_kernel_package(), *PROGRAMS, *guest_image.PACKAGES)))


def disk(scratch: Path, root: Path, more: Mapping[str, bytes] = MappingProxyType({})) -> bytes:
    """Return the disk of a machine from unpacked packages; `more`: further programs by their paths."""
    kernel = next((root / "boot").glob("vmlinuz-*")).read_bytes()
    return _disk(scratch, root, kernel, gzip.compress(_initramfs(root, more), 6))


def write(target: Path, content: bytes) -> None:
    """Write an image in one step."""
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = target.with_name(f"{target.name}.new")
    draft.write_bytes(content)
    draft.replace(target)


def _kernel_package() -> str:
    depends = guest_image.output("apt-cache", "depends", KERNEL)
    kernel = re.search(r"Depends: (linux-image-\S+)", depends)
    assert kernel is not None, depends
    return kernel[1]


def _disk(scratch: Path, root: Path, kernel: bytes, initrd: bytes) -> bytes:
    """GRUB, which finds the kernel and its files by their sectors."""
    initrd_at = KERNEL_AT + _sectors(kernel)
    words = _GRUB.format(kernel=_place(KERNEL_AT, kernel), initrd=_place(initrd_at, initrd))
    (scratch / "grub.cfg").write_text(words)
    grub, core = root / "usr/lib/grub/i386-pc", scratch / "core.img"
    given = ("-O", "i386-pc", "-d", str(grub), "-p", "/", "-c", str(scratch / "grub.cfg"), "-o", str(core))
    libraries = {"LD_LIBRARY_PATH": str(next(root.glob("lib/*-linux-gnu")))}
    subprocess.run([root / "usr/bin/grub-mkimage", *given, *_GRUB_MODULES], env=libraries, check=True)
    head = (grub / "boot.img").read_bytes() + core.read_bytes()
    assert len(head) <= KERNEL_AT * SECTOR
    return b"".join((head.ljust(KERNEL_AT * SECTOR, b"\0"), _whole(kernel), _whole(initrd)))


def _with_libraries(program: Path) -> dict[str, bytes]:
    """A program of this system and the libraries that it is linked with, by their paths."""
    linked = re.findall(r"(/\S+) \(0x", guest_image.output("ldd", str(program)))
    return {str(path).removeprefix("/"): path.read_bytes() for path in (program, *map(Path, linked))}


def _initramfs(root: Path, more: Mapping[str, bytes] = MappingProxyType({})) -> bytes:
    """The machine's files, as the kernel unpacks them (format newc of cpio); `more`: programs, by their paths."""
    found = {path.stem: path for path in root.glob("lib/modules/*/kernel/**/*.ko")}
    order = list(dict.fromkeys(name for wanted in MODULES for name in _with_needed(found, wanted)))
    files: list[tuple[str, int, bytes]] = [(name, _FOLDER, b"") for name in ("bin", "dev", "etc", "modules")]
    files += [("dev/console", _DEVICE, b""), ("bin/busybox", _PROGRAM, (root / "bin/busybox").read_bytes())]
    files += [(name, _PROGRAM, (HERE / name).read_bytes()) for name in ("init", "lease.sh")]
    files += [(f"modules/{name}.ko", _FILE, found[name].read_bytes()) for name in order]
    folders = {str(folder) for name in more for folder in Path(name).parents} - {"."}
    files += [(name, _FOLDER, b"") for name in sorted(folders, key=len) if name not in ("bin", "etc")]
    files += [(name, _PROGRAM, content) for name, content in more.items()]
    files += [("modules/order", _FILE, "".join(f"{name}.ko\n" for name in order).encode())]
    return _archive([*files, ("TRAILER!!!", 0, b"")])


def _with_needed(found: dict[str, Path], name: str) -> Iterator[str]:
    needed = _DEPENDS.search(found[name].read_bytes())
    for other in needed[1].decode().split(",") if needed and needed[1] else ():
        yield from _with_needed(found, other)
    yield name


def _archive(files: Iterable[tuple[str, int, bytes]]) -> bytes:
    out = io.BytesIO()
    for number, (name, mode, content) in enumerate(files, 1):
        device = (5, 1) if mode == _DEVICE else (0, 0)
        encoded = name.encode() + b"\0"
        fields = (number, mode, 0, 0, 1, 0, len(content), 0, 0, *device, len(encoded), 0)
        out.write(b"070701" + b"".join(b"%08x" % field for field in fields) + encoded)
        out.write(b"\0" * (-out.tell() % 4) + content)
        out.write(b"\0" * (-out.tell() % 4))
    return out.getvalue()


def _sectors(content: bytes) -> int:
    return -(-len(content) // SECTOR)


def _place(first: int, content: bytes) -> str:
    return f"{first}+{_sectors(content)}"


def _whole(content: bytes) -> bytes:
    return content.ljust(_sectors(content) * SECTOR, b"\0")


if __name__ == "__main__":
    build(Path(sys.argv[1]) if len(sys.argv) > 1 else TARGET)
