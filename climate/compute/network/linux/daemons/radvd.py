"""Router advertisements of a host: one radvd for each bridge with an IPv6 prefix."""

import hashlib
import shutil
from dataclasses import dataclass
from ipaddress import IPv6Network
from pathlib import Path

from climate.compute.linux import netns
from climate.compute.network.driver import Link
from climate.compute.network.linux import atomic_files, netlink
from climate.compute.network.linux.daemons.daemon import Daemon
from climate.compute.network.render import radvd

_CONF = "radvd.conf"
_SETTINGS = Path("/proc/sys/net/ipv6/conf")
_ALSO_WHILE_FORWARDING = 2


@dataclass(frozen=True, slots=True)
class RouterAdverts:
    """Router advertisements of one host; their files are in `folder`."""

    netns: str | None
    folder: Path

    def start(self, link: Link, prefix: IPv6Network) -> None:
        """Announce exactly this prefix on the bridge."""
        home = self.folder / link.network_id
        text = radvd.conf(link, prefix)
        command = radvd.command(home / _CONF, home / "pid", home / "log")
        # radvd reads its file once, so its environment records the configuration it was started with.
        environment = {"CLIMATE_CONF": hashlib.sha256(text.encode()).hexdigest()}
        with atomic_files.alone(self.folder):
            atomic_files.folder(home)
            atomic_files.write(home / _CONF, text)
            netns.inside(self.netns, _forward)
            daemon = self._daemon(home, link.bridge)
            if daemon.as_wanted(command, environment) is None:
                daemon.start(command, environment)

    def stop(self, network_id: str) -> None:
        """Stop the router advertisements of a network."""
        home = self.folder / network_id
        if not home.is_dir():
            return
        with atomic_files.alone(self.folder):
            self._daemon(home).stop()
            shutil.rmtree(home, ignore_errors=True)

    def running(self) -> frozenset[str]:
        """Return the ids of the networks that are announced."""
        homes = self.folder.iterdir() if self.folder.is_dir() else ()
        known = [home for home in homes if (home / _CONF).exists()]
        return frozenset(home.name for home in known if self._daemon(home).process() is not None)

    def _daemon(self, home: Path, bridge: str = "") -> Daemon:
        return Daemon(self.netns, home, home / "pid", bridge)


def _forward() -> None:
    """Enable IPv6 forwarding in this namespace, and keep addresses from the host's own router."""
    if (_SETTINGS / "all" / "forwarding").read_text(encoding="ascii").strip() == "1":
        return
    for setting in _SETTINGS.glob("*/accept_ra"):
        if setting.read_text(encoding="ascii").strip() == "1":
            setting.write_text(str(_ALSO_WHILE_FORWARDING), encoding="ascii")
    netlink.sysctl("ipv6/conf/all/forwarding", 1)
