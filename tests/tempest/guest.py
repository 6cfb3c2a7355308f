"""Images of servers that scenarios sign in to: guests with SSH, and the programs that Tempest runs in them.

    python -m tests.tempest.guest

It takes half a minute, most of it for the download. Needs apt-get and dpkg of Debian 12.
"""

import tempfile
from pathlib import Path

from climate.sandbox import guest_image
from tests.netlab.guest import build

FOLDER = build.TARGET.parent
CONTAINER = FOLDER / "test-tempest-container.tar.gz"
MACHINE = FOLDER / "test-tempest-machine.img"

PACKAGES = (
    *("util-linux", "libblkid1", "libmount1", "libpcre2-8-0"),
    *("libselinux1", "libsmartcols1", "libtinfo6", "libudev1"),
)
LINKED = ("bin/lsblk", "sbin/blkid")

SUDO = """#!/bin/sh
exec "$@"
"""
CURL = """#!/bin/sh
data=
while [ $# -gt 1 ]; do
    [ "$1" != -d ] || data=$2
    shift 2
done
exec wget -q -O - ${data:+--post-data "$data"} "$1"
"""
SCRIPTS = {"bin/sudo": SUDO, "bin/curl": CURL}
"""Root is the only user of the guests, and wget of busybox does what Tempest wants of curl."""


def ensure() -> None:
    """Build the images that are missing. Raise ImageError."""
    if CONTAINER.exists() and MACHINE.exists():
        return
    with tempfile.TemporaryDirectory(prefix="climate-guest-") as scratch:
        root = guest_image.unpacked(Path(scratch), (*build.machine_packages(), *PACKAGES))
        more = programs(root)
        build.write(CONTAINER, guest_image.container_image(root, more))
        build.write(MACHINE, build.disk(Path(scratch), root, {**guest_image.ssh_files(root), **more}))


def programs(root: Path) -> dict[str, bytes]:
    """Return the programs that Tempest runs, from unpacked packages, by their paths in the guest."""
    files = {path: text.encode() for path, text in SCRIPTS.items()}
    for program in LINKED:
        linked = guest_image.linked(root, program)
        # A command of busybox of the same name is in /bin, which comes first.
        files |= {f"bin/{Path(program).name}": linked.pop(program), **linked}
    return files


if __name__ == "__main__":
    ensure()
