"""Ledger of a cluster: the member of each server, in files that outlive the compute service.

There is one file per server, written atomically. Placement holds the lock of the ledger; work on a server holds the
server's lock. Both are file locks, which the kernel releases when a process dies.
"""

import fcntl
import json
import os
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import structlog

from climate.compute.errors import VirtError
from climate.compute.models.server import is_id
from climate.compute.virt import Guest, Interface, State
from climate.compute.virt.guest_volumes import Attached
from climate.compute.virt.hypervisor_cluster.member_capacity import Size

KEPT, LOST = "kept", "lost"
"""Result for a server's disk when the server was restarted on another member."""

REST_SECONDS = 600.0
"""Pause in seconds before a server is migrated again after a failure, so that no round tries in vain."""

_LOCK_WORD = 4
"""Number of digits of a server's id that select its lock; the number of lock files is thus bounded."""

log = structlog.get_logger("climate.compute.virt")


class Place(NamedTuple):
    """Location of a server: its member, and the machine of the member."""

    member: str
    machine: str


@dataclass(frozen=True, slots=True)
class LiveMove:
    """Live migration of a server between two machines of the cluster."""

    other: Place
    """Destination; once the server has left its source, the source."""
    arrangement: Mapping[str, object] | None = None
    """Answer of the destination that waits for the server, with its keys sealed; None: not asked yet."""
    sent: Mapping[str, object] | None = None
    """Answer of the source that has sent the server, with its keys sealed; None: the server is still there."""
    unanswered: bool = False
    """True if the last order of this migration had no answer: other migrations do not wait for this one."""


@dataclass(frozen=True, slots=True)
class Entry:
    """Server of a cluster."""

    guest: Guest
    """Last requested guest: enough to start it on another member."""
    place: Place
    state: State
    """Last known state."""
    leaves: Place | None = None
    """Location where it may still run after a move; it is ended there first."""
    starts: bool = False
    """True if its member failed and it must be restored on this one."""
    keeps: bool = False
    """True if this member can reach the disk of the failed one."""
    restarted: str = ""
    """Unreported result for its disk at a restart: KEPT or LOST; empty: none."""
    moving: LiveMove | None = None
    """Its live migration; None: it has none."""
    rests_until: float = 0.0
    """Seconds since the epoch (UTC) before which it is not moved: a migration failed, or an order has no answer."""
    refused: tuple[str, ...] = ()
    """Members to which its live migration failed since its last move: others are tried first."""
    left: tuple[str, ...] = ()
    """Machines that it left when their members failed, on which something of it may remain."""

    @property
    def size(self) -> Size:
        """Return the capacity that it uses."""
        return size_of(self.guest)

    def is_resting(self, now: float) -> bool:
        """Return whether it is not to be moved yet. A clock that was set back prolongs no rest."""
        return now < self.rests_until <= now + REST_SECONDS


def size_of(guest: Guest) -> Size:
    """Return the capacity that a guest uses."""
    return Size(guest.vcpus, guest.ram_mb, guest.disk_gb)


@dataclass(frozen=True)
class ServerPlacements:
    """Servers of one cluster, in `folder`."""

    folder: Path
    logged: set[str] = field(default_factory=set, compare=False)
    """Unreadable files that were logged."""

    @staticmethod
    def of(home: Path, cluster: str) -> "ServerPlacements":
        """Return the ledger of the cluster of that name, below the home of its compute service."""
        return ServerPlacements(home / "clusters" / f"c-{quote(cluster, safe='')}")

    def entries(self) -> dict[str, Entry]:
        """Return all servers of the cluster by id; log and omit unreadable files."""
        if not self.folder.is_dir():
            return {}
        ids = [path.stem for path in self.folder.glob("*.json") if is_id(path.stem)]
        return {server_id: entry for server_id in sorted(ids) if (entry := self.get(server_id)) is not None}

    def get(self, server_id: str) -> Entry | None:
        """Return one server; None if it is not on the cluster."""
        path = self._path(server_id)
        try:
            return _read(json.loads(path.read_text(encoding="utf-8")))
        except FileNotFoundError:
            return None
        except (KeyError, TypeError, ValueError) as error:
            if path.name not in self.logged:
                self.logged.add(path.name)
                log.error("ledger entry of a cluster cannot be read", file=str(path), reason=str(error)[:200])
            return None

    def write(self, entry: Entry) -> None:
        """Write an entry durably and atomically."""
        path = self._path(entry.guest.id)
        self._create_folder()
        draft = path.with_suffix(".new")
        with draft.open("w", encoding="utf-8") as file:
            json.dump(_written(entry), file)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)

    def drop(self, server_id: str) -> None:
        """Delete the entry of a server."""
        self._path(server_id).unlink(missing_ok=True)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock of the ledger, for a placement; never during a driver call."""
        with self._lock("members") as held:
            assert held
            yield

    @contextmanager
    def holding(self, server_id: str, *, wait: bool = True) -> Iterator[bool]:
        """Hold the lock of a server; yield False without it if another worker has it and `wait` is False."""
        self._path(server_id)
        with self._lock(f"servers-{server_id[:_LOCK_WORD]}", wait=wait) as held:
            yield held

    @contextmanager
    def _lock(self, name: str, *, wait: bool = True) -> Iterator[bool]:
        self._create_folder()
        handle = os.open(self.folder / f"{name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            except BlockingIOError:
                yield False
                return
            yield True
        finally:
            os.close(handle)

    def _create_folder(self) -> None:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def _path(self, server_id: str) -> Path:
        if not is_id(server_id):
            raise VirtError(f"{server_id!r} is not a server's id")
        return self.folder / f"{server_id}.json"


def _written(entry: Entry) -> Mapping[str, object]:
    where = {"place": entry.place, "leaves": entry.leaves}
    restart = {"starts": entry.starts, "keeps": entry.keeps, "restarted": entry.restarted}
    moving = None if entry.moving is None else asdict(entry.moving)
    move = {"moving": moving, "rests_until": entry.rests_until, "refused": entry.refused, "left": entry.left}
    return {"guest": guest_said(entry.guest), **where, "state": entry.state.value, **restart, **move}


def guest_said(guest: Guest) -> Mapping[str, object]:
    """Return a guest as JSON values; `guest_of` reads them."""
    said = asdict(guest)
    said["image"] = None if guest.image is None else str(guest.image)
    said["again"] = None if guest.again is None else str(guest.again)
    said["properties"] = dict(guest.properties)
    said["volumes"] = [{**asdict(volume), "home": str(volume.home)} for volume in guest.volumes]
    said["config"] = {path: b64encode(content).decode("ascii") for path, content in guest.config.items()}
    return said


def _read(said: Mapping[str, Any]) -> Entry:
    leaves = None if said["leaves"] is None else Place(*said["leaves"])
    # Files of older releases lack the last fields.
    restart = (said["starts"], said.get("keeps", False), said.get("restarted", ""))
    move = (_move_of(said.get("moving")), float(said.get("rests_until", 0)), tuple(said.get("refused", ())))
    left = tuple(said.get("left", ()))
    return Entry(guest_of(said["guest"]), Place(*said["place"]), State(said["state"]), leaves, *restart, *move, left)


def _move_of(said: Mapping[str, Any] | None) -> LiveMove | None:
    if said is None:
        return None
    return LiveMove(Place(*said["other"]), said["arrangement"], said["sent"], bool(said.get("unanswered", False)))


def guest_of(said: Mapping[str, Any]) -> Guest:
    """Return the guest of JSON values. Raise KeyError, TypeError or ValueError if they are invalid."""
    read = dict(said)
    read["image"] = None if said["image"] is None else Path(said["image"])
    read["again"] = None if said.get("again") is None else Path(said["again"])
    read["interfaces"] = tuple(Interface(**{**one, "addresses": tuple(one["addresses"])}) for one in said["interfaces"])
    read["volumes"] = tuple(Attached(one["id"], one["device"], Path(one["home"])) for one in said["volumes"])
    read["config"] = {path: b64decode(content) for path, content in said.get("config", {}).items()}
    return Guest(**read)
