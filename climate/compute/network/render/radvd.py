"""Command and configuration file of radvd."""

from ipaddress import IPv6Network
from pathlib import Path

from climate.compute.network.driver import Link
from climate.compute.network.render.interface_names import ORDINARY_MTU, interface

PROGRAM = "radvd"


def command(conf: Path, pid: Path, log: Path) -> tuple[str, ...]:
    """Return the command of radvd for one bridge."""
    return PROGRAM, "-C", str(conf), "-p", str(pid), "-m", "logfile", "-l", str(log)


def conf(link: Link, prefix: IPv6Network) -> str:
    """Return the configuration file; the MTU is announced only if it is not the default."""
    mtu = [f"   AdvLinkMTU {link.mtu};"] if link.mtu != ORDINARY_MTU else []
    lines = [
        f"interface {interface(link.bridge)}",
        "{",
        "   AdvSendAdvert on;",
        "   MinRtrAdvInterval 3;",
        "   MaxRtrAdvInterval 10;",
        *mtu,
        f"   prefix {prefix}",
        "   {",
        "        AdvOnLink on;",
        "        AdvAutonomous on;",
        "   };",
        "};",
        "",
    ]
    return "\n".join(lines)
