"""System programs that the drivers run in a host's namespace, and their Debian packages."""

import shutil
import subprocess
from collections.abc import Mapping, Sequence

from climate.compute.errors import NetworkError
from climate.compute.linux import netns

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""Search path, including the administrator's programs for users without them in PATH."""

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
"""Timeout of any program, in seconds."""


def missing(*programs: str) -> str | None:
    """Return the programs that are missing, as a message; None if all are installed."""
    absent = [program for program in programs if shutil.which(program, path=PATH) is None]
    return "; ".join(map(_absent, absent)) or None


def run(
    namespace: str | None, command: Sequence[str], *, text: str = "", environment: Mapping[str, str] | None = None
) -> str:
    """Run a program in a network namespace, or with None in the machine's own; return its output.

    `text` is its input. Raise NetworkError if it fails.
    """
    result = shutil.which(command[0], path=PATH)
    if result is None:
        raise NetworkError(_absent(command[0]))

    def work() -> subprocess.CompletedProcess[str]:
        return subprocess.run(  # noqa: S603  (no shell; what goes in is rendered by us)
            command,
            executable=result,
            input=text,
            env={"PATH": PATH, "LC_ALL": "C", **(environment or {})},
            capture_output=True,
            text=True,
            check=False,
            start_new_session=True,
            timeout=PATIENCE_SECONDS,
        )

    try:
        done = netns.inside(namespace, work)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NetworkError(f"{command[0]}: {error}") from error
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip() or f"exit code {done.returncode}"
        raise NetworkError(f"{command[0]}: {said}")
    return done.stdout


def _absent(program: str) -> str:
    return f"{program} is not installed (Debian: {PACKAGES.get(program, program)})"
