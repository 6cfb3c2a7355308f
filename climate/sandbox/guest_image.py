"""Image of a small container that serves SSH, from Debian packages that apt downloads and nobody installs.

    python -m climate.sandbox.guest_image FILE

A server of the image authorizes the key pair of its boot, which it reads from its config drive or from the metadata
service. It runs its user data if they are a shell script.
"""

import io
import re
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

PACKAGES = (
    *("busybox-static", "dropbear-bin", "libc6", "libcrypt1"),
    *("libgmp10", "libtomcrypt1", "libtommath1", "zlib1g"),
)
BUSYBOX, DROPBEAR = "bin/busybox", "usr/sbin/dropbear"

INIT = """#!/bin/sh
trap 'exit 0' TERM
/sbin/serve-ssh &
while :; do sleep 3600 & wait $!; done
"""

SERVE_SSH = """#!/bin/sh
keys=/root/.ssh/authorized_keys
fetch() { timeout 10 wget -q -O - "http://169.254.169.254/latest/$1" 2>/dev/null; }
mkdir -p -m 700 /root/.ssh /etc/dropbear
for drive in /run/climate/config /config; do
    file=$drive/openstack/latest/meta_data.json
    [ ! -r $file ] || sed -n 's/.*"type": "ssh", "data": "\\([^"\\]*\\)".*/\\1/p' $file >$keys
done
if [ ! -s $keys ]; then
    until names=$(fetch meta-data/); do sleep 1; done
    hostname "$(fetch meta-data/local-hostname | cut -d . -f 1)" 2>/dev/null
    case $names in *public-keys*) fetch meta-data/public-keys/0/openssh-key >$keys ;; esac
    fetch user-data >/tmp/user-data
    [ "$(head -c 2 /tmp/user-data)" != '#!' ] || sh /tmp/user-data
fi
touch $keys && chmod 600 $keys
echo "ssh: keys that may enter: $(grep -c . $keys)"
exec dropbear -F -E -R -s -p 22
"""
"""Program of the guest. Dropbear creates the keys of the host, and accepts no passwords."""

_FILES: Mapping[str, str] = {
    "sbin/init": INIT,
    "sbin/serve-ssh": SERVE_SSH,
    "etc/passwd": "root:x:0:0:root:/root:/bin/sh\n",
    "etc/group": "root:x:0:\n",
    "etc/shells": "/bin/sh\n",
    "etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
}
_LOADED = re.compile(r"=> (/\S+) \(0x")


class ImageError(Exception):
    """Raised if the image cannot be built; the message is that of the program that failed."""


def unpacked(scratch: Path, packages: Sequence[str] = PACKAGES) -> Path:
    """Download Debian packages, unpack them, and return the folder. Raise ImageError."""
    scratch.chmod(0o777)  # apt downloads as a user of its own
    output("apt-get", "download", "-qq", *packages, folder=scratch)
    root = scratch / "root"
    for package in sorted(scratch.glob("*.deb")):
        output("dpkg", "-x", str(package), str(root))
    return root


def ssh_files(root: Path) -> dict[str, bytes]:
    """Return the files of a guest that serves SSH by their paths, all but busybox and init."""
    texts = {path: text.encode() for path, text in _FILES.items() if path != "sbin/init"}
    return {**linked(root, DROPBEAR), **texts}


def linked(root: Path, program: str) -> dict[str, bytes]:
    """Return a program of these packages with its loader and libraries by their paths. Raise ImageError."""
    loader = next(root.glob("lib/*-linux-gnu/ld-linux-*"))
    folders = ":".join(str(folder) for folder in root.glob("**/*-linux-gnu") if folder.parent.name == "lib")
    listed = output(str(loader), "--library-path", folders, "--list", str(root / program))
    libraries = [Path(path) for path in _LOADED.findall(listed) if Path(path).is_relative_to(root)]
    # The program names its loader by a link, which leads out of the folder here.
    named = next(root.glob("lib*/ld-linux-*"))
    return {
        str(named.relative_to(root)): loader.read_bytes(),
        **{str(path.relative_to(root)): path.read_bytes() for path in (root / program, *libraries)},
    }


def container_image(root: Path, more: Mapping[str, bytes] = MappingProxyType({})) -> bytes:
    """Return the image of a container as a compressed tar archive; `more`: further programs by their paths."""
    files = {**ssh_files(root), "sbin/init": INIT.encode(), BUSYBOX: (root / BUSYBOX).read_bytes(), **more}
    commands = [name for name in output(str(root / BUSYBOX), "--list").split() if f"bin/{name}" not in files]
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as archive:
        for path, content in files.items():
            entry = tarfile.TarInfo(path)
            entry.mode, entry.size = (0o644 if path.startswith("etc/") else 0o755), len(content)
            archive.addfile(entry, io.BytesIO(content))
        for name in commands:
            entry = tarfile.TarInfo(f"bin/{name}")
            entry.type, entry.linkname = tarfile.SYMTYPE, "busybox"
            archive.addfile(entry)
        for name in ("root", "var/log"):
            entry = tarfile.TarInfo(name)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o700
            archive.addfile(entry)
    return made.getvalue()


def output(*words: str, folder: Path | None = None) -> str:
    """Return the output of a program. Raise ImageError if it fails or is not installed."""
    try:
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)  # noqa: S603
    except OSError as error:
        raise ImageError(f"{words[0]} cannot run ({error.strerror}); the image is built on Debian 12") from None
    if done.returncode:
        raise ImageError(f"{' '.join(words[:3])} failed: {done.stderr.strip() or done.returncode}")
    return done.stdout


def main(arguments: Sequence[str]) -> int:
    """Write the image to the named file; return the exit status."""
    if len(arguments) != 1:
        print("usage: python -m climate.sandbox.guest_image FILE", file=sys.stderr)  # noqa: T201
        return 2
    target = Path(arguments[0])
    try:
        with tempfile.TemporaryDirectory(prefix="climate-image-") as scratch:
            content = container_image(unpacked(Path(scratch)))
        target.parent.mkdir(parents=True, exist_ok=True)
        draft = target.with_name(f"{target.name}.new")
        draft.write_bytes(content)
        draft.replace(target)
    except (ImageError, OSError) as error:
        print(f"{target}: {error}", file=sys.stderr)  # noqa: T201
        return 1
    print(f"{target} is written: an image of {len(content)} bytes")  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
