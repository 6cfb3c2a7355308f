"""Features of a sandbox on this machine, found by trials and never by versions."""

import ctypes
import fcntl
import json
import os
import platform
import re
import shutil
import struct
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from climate.sandbox.enter import CANNOT, run, with_system_programs
from climate.sandbox.namespace_errors import Impossible
from climate.settings import environment

LINKS: Mapping[str, str] = {
    "veth": "link add try-a type veth peer name try-b",
    "bridge": "link add try-c type bridge",
    "vxlan": "link add try-d type vxlan id 5 dstport 4789 group 239.1.1.1 dev lo",
    "vlan": "link add link try-a name try-e type vlan id 5",
}
"""Kind of interface -> the `ip` command that creates one."""
PROGRAMS: Mapping[str, str] = {
    "ip": "iproute2",
    "dnsmasq": "dnsmasq-base",
    "radvd": "radvd",
    "iptables": "iptables",
    "conntrack": "conntrack",
    "udhcpc": "udhcpc",
    "ping": "iputils-ping",
    "openvpn": "openvpn",
    "ssh": "openssh-client",
    "qemu-system-x86_64": "qemu-system-x86",
    "qemu-img": "qemu-utils",
}
"""Program -> its package in Debian and Ubuntu."""
TRIED: Mapping[str, tuple[str, ...]] = {
    "nft": (
        "nft",
        "add table ip try; add chain ip try nat { type nat hook prerouting priority -100; }; delete table ip try",
    ),
    "bwrap": ("bwrap", "--ro-bind", "/", "/", "--unshare-pid", "true"),
}
"""Program -> the command that tests whether it works."""
PACKAGES: Mapping[str, str] = {**PROGRAMS, "nft": "nftables", "bwrap": "bubblewrap"}
KERNEL = frozenset({*LINKS, "tap", "bpf"})
"""Features that no package provides."""
NEEDED = ("ip", "veth", "bridge")
"""Features that every sandbox needs."""
SECONDS = 60
"""Timeout of a probe, on a busy machine."""

_TUN, _SET_INTERFACE, _TAP, _NO_HEADER = "/dev/net/tun", 0x400454CA, 2, 0x1000
_BPF_CALL: Mapping[str, int] = {"x86_64": 321, "aarch64": 280}
_PROG_LOAD, _SCHED_CLS = 5, 3


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """Result of a probe: the features of a sandbox, or the reason why none is possible."""

    features: frozenset[str] = field(default_factory=frozenset)
    reason: str | None = None

    def lacks(self, wanted: Sequence[str]) -> str | None:
        """Return why some of these are not available, with the fix; None if all are."""
        if self.reason:
            return self.reason
        missing = [name for name in wanted if name not in self.features]
        packages = sorted({PACKAGES[name] for name in missing if name in PACKAGES})
        advice = f" (Debian, Ubuntu: apt install {' '.join(packages)})" if packages else ""
        return f"not available in a sandbox here: {', '.join(missing)}{advice}" if missing else None


def probe(environ: Mapping[str, str]) -> ProbeResult:
    """Create a sandbox, try every feature in it, and remove it; takes a tenth of a second."""
    argv = [sys.executable, "-m", "climate.sandbox.features"]
    try:
        done = subprocess.run(  # noqa: S603 - fixed words
            argv, env=dict(environ), stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS, check=False
        )
        if done.returncode == 0:
            result = ProbeResult(frozenset(json.loads(done.stdout)))
            return ProbeResult(result.features, result.lacks(NEEDED))
        said = done.stderr.decode(errors="replace").strip().splitlines()
        return ProbeResult(reason=said[-1] if said else f"the probe ended with status {done.returncode}")
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        return ProbeResult(reason=f"the probe failed: {error}")


def features(environ: Mapping[str, str]) -> frozenset[str]:
    """Return the features that work in this sandbox, whose network is empty."""
    path = with_system_programs(environ)["PATH"]
    names = {name for name in PROGRAMS if shutil.which(name, path=path)}
    names |= {name for name, words in TRIED.items() if _works(words, path)}
    if "ip" in names:
        names |= _links(path)
    with suppress(OSError):
        _try_tap()
        names.add("tap")
    with suppress(OSError):
        _try_bpf()
        names.add("bpf")
    return frozenset(names)


def main() -> int:
    """Print the features of a sandbox as JSON, or the reason on stderr if none is possible."""
    try:
        return run(lambda: print(json.dumps(sorted(features(environment())))) or 0)  # noqa: T201
    except Impossible as reason:
        print(reason, file=sys.stderr)  # noqa: T201
        return CANNOT


def _links(path: str) -> set[str]:
    """Return the kinds of interfaces that can be created; `ip` reports the numbers of the lines that failed."""
    said = _run((_program("ip", path), "-force", "-batch", "-"), "\n".join(LINKS.values()) + "\n").stderr
    failed = {int(number) for number in re.findall(r"Command failed -:(\d+)", said)}
    return {name for number, name in enumerate(LINKS, 1) if number not in failed}


def _works(words: Sequence[str], path: str) -> bool:
    try:
        return _run((_program(words[0], path), *words[1:])).returncode == 0
    except OSError:
        return False


def _program(name: str, path: str) -> str:
    return shutil.which(name, path=path) or name


def _run(words: Sequence[str], stdin: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, input=stdin, capture_output=True, text=True, check=False)  # noqa: S603


def _try_tap() -> None:
    tun = os.open(_TUN, os.O_RDWR)
    try:
        fcntl.ioctl(tun, _SET_INTERFACE, struct.pack("16sH22x", b"try-tap", _TAP | _NO_HEADER))
    finally:
        os.close(tun)


def _try_bpf() -> None:
    """Load a traffic control program that does nothing."""
    call = _BPF_CALL.get(platform.machine())
    if call is None:
        raise OSError(f"no number of bpf(2) is known for {platform.machine()}")
    steps = ctypes.create_string_buffer(struct.pack("=BBhiBBhi", 0xB7, 0, 0, 0, 0x95, 0, 0, 0))
    licence = ctypes.create_string_buffer(b"GPL")
    order = struct.pack("=IIQQIIQII", _SCHED_CLS, 2, ctypes.addressof(steps), ctypes.addressof(licence), 0, 0, 0, 0, 0)
    buffer = ctypes.create_string_buffer(order.ljust(128, b"\0"))
    loaded = ctypes.CDLL(None, use_errno=True).syscall(call, _PROG_LOAD, buffer, 128)
    if loaded < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    os.close(loaded)


if __name__ == "__main__":
    sys.exit(main())
