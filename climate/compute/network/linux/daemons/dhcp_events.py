"""Events of DHCP servers as files: written by dnsmasq's script, read here, deleted when acknowledged."""

import logging
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import IPv4Address
from itertools import islice
from pathlib import Path

from climate.compute.network.driver import DhcpAction, DhcpEvent

log = logging.getLogger(__name__)

AT_ONCE = 1000
"""Maximum number of events returned at a time, oldest first."""

_LINE = re.compile(r"(\S+) (add|old|del) ([0-9a-f]{2}(?::[0-9a-f]{2}){5}) ([0-9.]{7,15})\n", re.ASCII)


@dataclass(frozen=True, slots=True)
class Spool:
    """Folder of files named in the order of the events; a name with a leading dot is incomplete."""

    folder: Path

    def read(self) -> list[DhcpEvent]:
        """Return events, oldest first; log and delete malformed files, and set unreadable ones aside."""
        names = sorted(path.name for path in self.folder.iterdir()) if self.folder.is_dir() else []
        events = (self._event(name) for name in names if not name.startswith("."))
        return list(islice((event for event in events if event is not None), AT_ONCE))

    def forget(self, keys: Sequence[str]) -> None:
        """Delete the events with these keys; missing ones are ignored."""
        for key in keys:
            if Path(key).name == key:
                (self.folder / key).unlink(missing_ok=True)

    def remove(self) -> None:
        """Delete the folder unless it has unread events."""
        with suppress(FileNotFoundError, OSError):
            for draft in self.folder.glob(".*"):
                draft.unlink()
            self.folder.rmdir()

    def _event(self, name: str) -> DhcpEvent | None:
        path = self.folder / name
        try:
            match = _LINE.fullmatch(path.read_text(encoding="ascii"))
            if match is None:
                raise ValueError("not a line that the script writes")
            network_id, what, mac, address = match.groups()
            return DhcpEvent(name, network_id, DhcpAction(what), mac, IPv4Address(address))
        except FileNotFoundError:
            return None
        except ValueError as error:
            log.warning("DHCP event %s dropped: %s", path, error)
            self._try_removal(path, path.unlink)
        except OSError as error:
            log.warning("DHCP event %s set aside: %s", path, error)
            self._try_removal(path, lambda: path.rename(self.folder / f".damaged-{name}"))
        return None

    def _try_removal(self, path: Path, act: Callable[[], object]) -> None:
        try:
            act()
        except OSError as error:
            log.warning("DHCP event %s is still there: %s", path, error)
