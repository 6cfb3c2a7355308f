"""The ledger of a cluster: which member has which server, in files that outlive the compute service.

A file per server, written in one step.  Whoever chooses a member holds the lock of the
ledger meanwhile; whoever works on a server holds that of the server.  Both are
locks of the system: they go with a process that dies.
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
from climate.compute.virt.hypervisor_cluster.rooms import Size

KEPT, LOST = "kept", "lost"
"""What becomes of a server's disk when the server is restarted on another member."""

_LOCK_WORD = 4
"""So many digits of a server's id name its lock: nobody ever has to take locks away."""

log = structlog.get_logger("climate.compute.virt")


class Place(NamedTuple):
    """Where a server of a cluster is: its member, and the machine of the member."""

    member: str
    machine: str


@dataclass(frozen=True, slots=True)
class Entry:
    """A server of a cluster."""

    guest: Guest
    """As it was last asked for: enough to start it on another member."""
    place: Place
    state: State
    """Last seen, or last made so."""
    leaves: Place | None = None
    """Where it comes from, while it may still be running there: it is ended there before anything else."""
    starts: bool = False
    """Its member has failed, and it is still to be made on this one what it was there."""
    keeps: bool = False
    """This member finds the disk that the server had on the one that has failed."""
    restarted: str = ""
    """What became of its disk at a restart that nobody was told of yet: KEPT or LOST; empty: there was none."""

    @property
    def size(self) -> Size:
        """What it takes of its member."""
        return size_of(self.guest)


def size_of(guest: Guest) -> Size:
    """Return what a guest takes of a member."""
    return Size(guest.vcpus, guest.ram_mb, guest.disk_gb)


@dataclass(frozen=True)
class Ledger:
    """The servers of one cluster, in `folder`."""

    folder: Path
    told: set[str] = field(default_factory=set, compare=False)
    """Files that could not be read, and were complained about."""

    @staticmethod
    def of(home: Path, cluster: str) -> "Ledger":
        """Return the ledger of the cluster of that name, below the home of its compute service."""
        return Ledger(home / "clusters" / f"c-{quote(cluster, safe='')}")

    def entries(self) -> dict[str, Entry]:
        """Return all servers of the cluster by their ids; one whose file cannot be read is left out, and logged."""
        if not self.folder.is_dir():
            return {}
        ids = [path.stem for path in self.folder.glob("*.json") if is_id(path.stem)]
        return {server_id: entry for server_id in sorted(ids) if (entry := self.get(server_id)) is not None}

    def get(self, server_id: str) -> Entry | None:
        """Return one server; None when the cluster does not know it."""
        path = self._path(server_id)
        try:
            return _read(json.loads(path.read_text(encoding="utf-8")))
        except FileNotFoundError:
            return None
        except (KeyError, TypeError, ValueError) as error:
            if path.name not in self.told:
                self.told.add(path.name)
                log.error("an entry of a cluster's ledger cannot be read", file=str(path), reason=str(error)[:200])
            return None

    def put(self, entry: Entry) -> None:
        """Write a server down, so that a crash of the machine leaves the old entry or the new one."""
        path = self._path(entry.guest.id)
        self._make()
        draft = path.with_suffix(".new")
        with draft.open("w", encoding="utf-8") as file:
            json.dump(_written(entry), file)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)

    def drop(self, server_id: str) -> None:
        """Forget a server."""
        self._path(server_id).unlink(missing_ok=True)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock of the ledger, for choosing a member; short, and never while a driver works."""
        with self._lock("members") as held:
            assert held
            yield

    @contextmanager
    def holding(self, server_id: str, *, wait: bool = True) -> Iterator[bool]:
        """Hold the lock of a server; False, without it, when somebody else works on it and `wait` is not wanted."""
        self._path(server_id)
        with self._lock(f"servers-{server_id[:_LOCK_WORD]}", wait=wait) as held:
            yield held

    @contextmanager
    def _lock(self, name: str, *, wait: bool = True) -> Iterator[bool]:
        self._make()
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

    def _make(self) -> None:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def _path(self, server_id: str) -> Path:
        if not is_id(server_id):
            raise VirtError(f"{server_id!r} is not the id of a server")
        return self.folder / f"{server_id}.json"


def _written(entry: Entry) -> Mapping[str, Any]:
    where = {"place": entry.place, "leaves": entry.leaves}
    restart = {"starts": entry.starts, "keeps": entry.keeps, "restarted": entry.restarted}
    return {"guest": guest_said(entry.guest), **where, "state": entry.state.value, **restart}


def guest_said(guest: Guest) -> Mapping[str, Any]:
    """Return a guest as JSON can say it; `guest_of` reads it again."""
    said = asdict(guest)
    said["image"] = None if guest.image is None else str(guest.image)
    said["again"] = None if guest.again is None else str(guest.again)
    said["properties"] = dict(guest.properties)
    said["volumes"] = [{**asdict(one), "home": str(one.home)} for one in guest.volumes]
    said["config"] = {path: b64encode(content).decode("ascii") for path, content in guest.config.items()}
    return said


def _read(said: Mapping[str, Any]) -> Entry:
    leaves = None if said["leaves"] is None else Place(*said["leaves"])
    # Files of an older release do not have the last two.
    restart = (said["starts"], said.get("keeps", False), said.get("restarted", ""))
    return Entry(guest_of(said["guest"]), Place(*said["place"]), State(said["state"]), leaves, *restart)


def guest_of(said: Mapping[str, Any]) -> Guest:
    """Return the guest that was written down; KeyError, TypeError or ValueError for what is none."""
    read = dict(said)
    read["image"] = None if said["image"] is None else Path(said["image"])
    read["again"] = None if said.get("again") is None else Path(said["again"])
    read["interfaces"] = tuple(Interface(**{**one, "addresses": tuple(one["addresses"])}) for one in said["interfaces"])
    read["volumes"] = tuple(Attached(one["id"], one["device"], Path(one["home"])) for one in said["volumes"])
    read["config"] = {path: b64decode(content) for path, content in said.get("config", {}).items()}
    return Guest(**read)
