"""DHCP and DNS servers of a host: one dnsmasq for each served bridge, as Nova's linux_net configures it."""

import shutil
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from climate.compute.errors import NetworkError
from climate.compute.linux import netns, processes
from climate.compute.network.driver import Dhcp, DhcpEvent, Entry, Link
from climate.compute.network.linux import atomic_files
from climate.compute.network.linux.daemons import dhcp_release
from climate.compute.network.linux.daemons.daemon import Daemon
from climate.compute.network.linux.daemons.dhcp_events import Spool
from climate.compute.network.render import dnsmasq

# dnsmasq up to 2.90 crashes on SIGHUP after it served a client whose line has a tag. A server with tags is restarted
# instead, with the leases that it had.
_STALE = "stale"
"""Marker file that exists from before a file is changed until the server has read it, so that an interruption is
noticed.
"""

_STAYS = ("--user=", "--group=")
_ORDINARY_USERS = 65536


@dataclass(frozen=True, slots=True)
class DhcpServers:
    """DHCP servers of one host; their files are in `folder`, and `config` is an optional file of the
    operator for all.
    """

    netns: str | None
    folder: Path
    config: str = ""

    def start(self, link: Link, dhcp: Dhcp) -> None:
        """Ensure that a server on the bridge assigns exactly these addresses; the bridge has its own
        address already.
        """
        kept = self._files(link.network_id)
        command = (*dnsmasq.command(link, dhcp, kept, self.config), *self._user())
        environment = dnsmasq.environment(link, kept)
        with atomic_files.alone(self.folder):
            daemon = self._daemon(kept, link.bridge)
            running = daemon.as_wanted(command, environment)
            tagged = (kept.home / _STALE).exists() or dnsmasq.tagged(atomic_files.read(kept.hosts))
            changed = self._write(kept, dhcp)
            leases = dnsmasq.leases(dhcp.entries, dhcp.lease_seconds)
            if running is None or (changed and tagged):
                atomic_files.write(
                    kept.leases, leases + dnsmasq.unassigned_lines(atomic_files.read(kept.leases), dhcp.entries)
                )
                daemon.start(command, environment)
            else:
                atomic_files.write(kept.leases, leases)
                if changed:
                    processes.send_one(running, signal.SIGHUP)
            (kept.home / _STALE).unlink(missing_ok=True)

    def stop(self, network_id: str) -> None:
        """Stop the server of a network and delete its files, except unread events."""
        kept = self._files(network_id)
        if not kept.home.is_dir():
            return
        with atomic_files.alone(self.folder):
            self._daemon(kept).stop()
            shutil.rmtree(kept.home, ignore_errors=True)
            self._tidy()

    def running(self) -> frozenset[str]:
        """Return the ids of the networks whose server runs."""
        return frozenset(each for each in self._ids() if self._daemon(self._files(each)).process() is not None)

    def release(self, link: Link, entry: Entry) -> None:
        """Release a DHCP lease on behalf of its client; a lease that was never given is ignored."""
        if link.gateway is None:
            raise NetworkError(f"bridge {link.bridge} has no DHCP server to release {entry.address} to")
        server = link.gateway.ip
        try:
            netns.inside(self.netns, lambda: dhcp_release.send(link.bridge, entry.mac, entry.address, server))
        except (OSError, ValueError) as error:
            raise NetworkError(f"{entry.address} could not be released on {link.bridge}: {error}") from error

    def happened(self) -> Sequence[DhcpEvent]:
        """Return the unacknowledged events of all servers, oldest first."""
        return self._spool.read()

    def forget(self, keys: Sequence[str]) -> None:
        """Acknowledge events, so that they are not reported again."""
        self._spool.forget(keys)
        if not self._ids() and self.folder.is_dir():
            with atomic_files.alone(self.folder):
                self._tidy()

    @property
    def _spool(self) -> Spool:
        return Spool(self._files("any").spool)

    def _files(self, network_id: str) -> dnsmasq.Files:
        return dnsmasq.Files(self.folder, network_id)

    def _daemon(self, kept: dnsmasq.Files, bridge: str = "") -> Daemon:
        return Daemon(self.netns, kept.home, kept.pid, bridge)

    def _ids(self) -> list[str]:
        homes = self.folder.iterdir() if self.folder.is_dir() else ()
        return sorted(home.name for home in homes if (home / "hosts").exists())

    def _write(self, kept: dnsmasq.Files, dhcp: Dhcp) -> bool:
        """Write the files that a running server rereads; return whether it must reread them."""
        atomic_files.folder(kept.spool)
        atomic_files.folder(kept.home)
        atomic_files.write(kept.script, dnsmasq.SCRIPT, 0o755)
        wanted = {
            kept.hosts: dnsmasq.hosts(dhcp.entries, dhcp.domain),
            kept.options: dnsmasq.options(dhcp.entries, dhcp),
        }
        stale = kept.home / _STALE
        if any(atomic_files.read(path) != text for path, text in wanted.items()):
            stale.touch()
        for path, text in wanted.items():
            atomic_files.write(path, text)
        return stale.exists()

    def _tidy(self) -> None:
        """Remove the shared files after the last server stopped."""
        if not self._ids():
            kept = self._files("any")
            kept.script.unlink(missing_ok=True)
            self._spool.remove()

    def _user(self) -> tuple[str, ...]:
        """Return the options that keep the server's user, if it cannot switch or another user could
        not read its files.
        """
        users = sum(int(line.split()[2]) for line in Path("/proc/self/uid_map").read_text("ascii").splitlines())
        way = [self.folder, *self.folder.absolute().parents]
        readable = all(path.stat().st_mode & 0o001 for path in way if path.is_dir())
        return () if users >= _ORDINARY_USERS and readable else _STAYS
