"""Requests and hosts as Nova gives them to scheduler filters; `tests/real_openstack/record_filter.py` records them.

h1 is lent to the project `demo`, or has two slots for it; h2 is in the reservation pool, and h3 is an ordinary host.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

HOST_STATES = Path(__file__).with_name("host_states.json")
POOL = "0d1e3c52-56c1-4d0e-9a3c-6c6b1f0c0001"
SLOTS = "0d1e3c52-56c1-4d0e-9a3c-6c6b1f0c0002"


class InstanceNotFound(Exception):
    """A server of the scheduler's list is deleted meanwhile."""


class OrphanedObjectError(Exception):
    """A server of the scheduler's list is not stored yet."""


ERRORS = {each.__name__: each for each in (InstanceNotFound, OrphanedObjectError)}


@dataclass(frozen=True)
class Instance:
    """A server on a host, whose flavor Nova reads when it is asked for."""

    recorded: str

    @property
    def flavor(self) -> SimpleNamespace:
        if self.recorded in ERRORS:
            raise ERRORS[self.recorded]
        return SimpleNamespace(flavorid=self.recorded)


@dataclass(frozen=True)
class Flavor:
    """The flavor of a request, which may lack its extra specs."""

    flavorid: str
    specs: dict[str, str] | None

    def __contains__(self, name: str) -> bool:
        return name != "extra_specs" or self.specs is not None

    @property
    def extra_specs(self) -> dict[str, str]:
        assert self.specs is not None, "Nova cannot load them"
        return self.specs


@dataclass(frozen=True)
class Request:
    """A request for a server."""

    recorded: dict[str, Any]

    @property
    def project_id(self) -> str:
        return str(self.recorded["project_id"])

    @property
    def instance_uuid(self) -> str:
        return str(self.recorded["instance_uuid"])

    @property
    def flavor(self) -> Flavor:
        return Flavor(self.recorded["flavorid"], self.recorded["extra_specs"])

    def get_scheduler_hint(self, name: str) -> str | None:
        assert name == "reservation", "no other hint was recorded"
        hint: str | None = self.recorded["hint"]
        return hint


def host_state(recorded: dict[str, Any]) -> SimpleNamespace:
    """Return a host with its aggregates and servers."""
    aggregates = [SimpleNamespace(**each) for each in recorded["aggregates"]]
    instances = {uuid: Instance(flavor) for uuid, flavor in recorded["instances"].items()}
    return SimpleNamespace(host=recorded["host"], aggregates=aggregates, instances=instances)


def recorded() -> dict[str, list[dict[str, Any]]]:
    """Return by scene what was recorded, one entry per host."""
    found: dict[str, list[dict[str, Any]]] = json.loads(HOST_STATES.read_text(encoding="utf-8"))
    return found
