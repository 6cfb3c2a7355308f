"""The system's programs that the drivers run in a host's namespace, and the Debian packages that bring them."""

import shutil
import subprocess
from collections.abc import Mapping, Sequence

from climate.compute.errors import NetworkError
from climate.compute.linux import netns

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""Where they are, also for a user who has no administrator's programs in the PATH."""

PACKAGES = {
    "conntrack": "conntrack",
    "dnsmasq": "dnsmasq-base",
    "ip": "iproute2",
    "ip6tables-restore": "iptables",
    "ip6tables-save": "iptables",
    "iptables-restore": "iptables",
    "iptables-save": "iptables",
    "nft": "nftables",
    "radvd": "radvd",
}
PATIENCE_SECONDS = 30.0
"""Longest time that any of them may take."""


def missing(*programs: str) -> str | None:
    """What has to be installed before these can be run; None: they can."""
    absent = [program for program in programs if shutil.which(program, path=PATH) is None]
    return "; ".join(map(_absent, absent)) or None


def run(
    place: str | None, command: Sequence[str], *, text: str = "", environment: Mapping[str, str] | None = None
) -> str:
    """What a program says when it is run in the namespace `place` and reads `text`; NetworkError when it fails."""
    found = shutil.which(command[0], path=PATH)
    if found is None:
        raise NetworkError(_absent(command[0]))

    def work() -> subprocess.CompletedProcess[str]:
        return subprocess.run(  # noqa: S603  (no shell; what goes in is rendered by us)
            command,
            executable=found,
            input=text,
            env={"PATH": PATH, "LC_ALL": "C", **(environment or {})},
            capture_output=True,
            text=True,
            check=False,
            start_new_session=True,
            timeout=PATIENCE_SECONDS,
        )

    try:
        done = netns.inside(place, work)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NetworkError(f"{command[0]}: {error}") from error
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip() or f"it ended with {done.returncode}"
        raise NetworkError(f"{command[0]}: {said}")
    return done.stdout


def _absent(program: str) -> str:
    return f"{program} is not installed (Debian: {PACKAGES.get(program, program)})"
