"""What radvd is told.  Source: cloud.md D.8."""

from ipaddress import IPv6Network
from pathlib import Path

from climate.compute.network.driver import Link
from climate.compute.network.render.validation import ORDINARY_MTU, interface

PROGRAM = "radvd"


def command(conf: Path, pid: Path, log: Path) -> tuple[str, ...]:
    """The command of the router advertisements of one bridge."""
    return PROGRAM, "-C", str(conf), "-p", str(pid), "-m", "logfile", "-l", str(log)


def conf(link: Link, prefix: IPv6Network) -> str:
    """The file that it is configured by; the size of packets is told where it is not the ordinary one."""
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
