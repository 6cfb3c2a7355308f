"""What DHCP servers told, as files: written by their script, read here, kept until they are forgotten."""

import logging
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import IPv4Address
from pathlib import Path

from climate.compute.network.driver import Happened, What

log = logging.getLogger(__name__)

AT_ONCE = 1000
"""Most that are told at a time: of more, the oldest."""

_LINE = re.compile(r"(\S+) (add|old|del) ([0-9a-f]{2}(?::[0-9a-f]{2}){5}) ([0-9.]{7,15})\n", re.ASCII)


@dataclass(frozen=True, slots=True)
class Spool:
    """A folder of files whose names are in the order of what happened; one that begins with a dot is not ready."""

    folder: Path

    def read(self) -> list[Happened]:
        """All that happened, oldest first; a file that cannot be understood is logged and dropped."""
        names = sorted(path.name for path in self.folder.iterdir()) if self.folder.is_dir() else []
        ready = [name for name in names if not name.startswith(".")][:AT_ONCE]
        return [event for name in ready if (event := self._event(name)) is not None]

    def forget(self, keys: Sequence[str]) -> None:
        """Remove what has these keys; nothing when it is gone."""
        for key in keys:
            if Path(key).name == key:
                (self.folder / key).unlink(missing_ok=True)

    def remove(self) -> None:
        """Remove the folder, unless there is something in it that was not read."""
        with suppress(FileNotFoundError, OSError):
            for draft in self.folder.glob(".*"):
                draft.unlink()
            self.folder.rmdir()

    def _event(self, name: str) -> Happened | None:
        path = self.folder / name
        try:
            found = _LINE.fullmatch(path.read_text(encoding="ascii"))
            if found is None:
                raise ValueError("not a line of the script's")
            network_id, what, mac, address = found.groups()
            return Happened(name, network_id, What(what), mac, IPv4Address(address))
        except FileNotFoundError:
            return None
        except ValueError as error:
            log.warning("dropped %s, which a DHCP server is said to have told: %s", path, error)
            path.unlink(missing_ok=True)
            return None
