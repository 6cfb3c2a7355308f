"""What a resource plugin is, and how one is found.

A plugin knows one resource type.  Its database half (`reserve`) runs inside
the request's transaction and gets no cloud; its cloud half (`on_start`,
`on_event`, `before_end`, `close`, `on_end`) runs in a worker with no transaction open and gets no
connection.  The cloud half may be run again at any time after a crash: each
hook must end in the same place however often it is called, and raises NotYet
instead of waiting.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from importlib.metadata import EntryPoint
from typing import Any, Protocol
from uuid import UUID

from marshmallow import Schema
from sqlalchemy import Connection

from climate.cloud import CLEANING, DRAINING, FAILED, FREEPOOL, MAINTENANCE, RECYCLING, Cloud, LendsTogether, Trouble
from climate.domain.errors import Conflict, InvalidInput
from climate.domain.facts import AddressHold, AmountHold, Hold
from climate.domain.hosts.pools import Pool
from climate.domain.lease import Reservation
from climate.domain.lease_events import AdditionalEvent
from climate.domain.period import Period
from climate.domain.policy import Caller
from climate.entry_points import installed as entry_points_of
from climate.settings import SettingError, Settings
from climate.time_ordered_ids import time_ordered_id

GROUP = "climate.resource_plugins"

TERMS = ("on_end", "grace_period", "recycle_deadline")
"""What can be agreed about the end of a host reservation, and else is as the reservation pool says."""

CLOUD_POOLS: Mapping[Pool, str | None] = {
    Pool.MULTI_TENANT: None,
    Pool.RESERVATION: FREEPOOL,
    Pool.RECYCLING: RECYCLING,
    Pool.DRAINING: DRAINING,
    Pool.CLEANING: CLEANING,
    Pool.MAINTENANCE: MAINTENANCE,
    Pool.FAILED: FAILED,
}
"""What the cloud calls the pools; None: the host is in none.  A lent host is in the pool named by its reservation."""


@dataclass(frozen=True, slots=True)
class Ask:
    """A request for resources over a period, new or for a reservation that is there already."""

    spec: Mapping[str, Any]
    period: Period
    caller: Caller
    settings: Settings
    present: Reservation | None = None
    """The reservation as it is, on update."""
    active: bool = False
    """Whether that reservation has started: it may then only grow."""
    patient: bool = False
    """Wait for the rows of hosts that others are booking, instead of passing them over."""
    taken: tuple[int, ...] = ()
    """Hosts that were chosen a moment ago for other reservations of the same lease, or are not to be chosen."""
    terms: Mapping[str, Any] = field(default_factory=dict)
    """What is agreed where the spec does not say: on_end, grace_period, recycle_deadline of the reservation pool."""
    grace_of_lease: timedelta = timedelta(0)
    """The longest grace among the reservations of the lease, which ends as a whole."""
    beside: tuple[Reservation, ...] = ()
    """Other reservations of the same lease as they will be; in the database they are as before, or not yet."""
    liked: tuple[int, ...] = ()
    """Hosts to choose before others, where they are free: those that somebody has agreed to."""
    soon: bool = False
    """Whether it starts so soon that a host which is switched off may not be up in time."""
    taken_addresses: tuple[int, ...] = ()
    """Floating addresses that were chosen a moment ago for other reservations of the same lease, by number."""
    taken_amounts: tuple[AmountHold, ...] = ()
    """What was chosen a moment ago of countable resources for other reservations of the same lease."""
    avoided: frozenset[int] = frozenset()
    """Those of `taken` that are not to be chosen even where other reservations of the lease share them."""
    new_id: UUID = field(default_factory=time_ordered_id)
    """The id that a new reservation will have."""
    project_id: str = ""
    """Of the lease that is changed: an administrator may change one of another project."""

    @property
    def owner(self) -> str:
        """The project that the lease is of, or will be."""
        return self.project_id or self.caller.project_id

    @property
    def reservation_id(self) -> UUID:
        return self.present.id if self.present else self.new_id

    @property
    def grace(self) -> timedelta:
        """How long the servers go on after the period."""
        return timedelta(seconds=int(self.spec.get("grace_period") or 0))

    @property
    def margin(self) -> timedelta:
        """Grace and cleaning time, for which hosts are kept after the period."""
        return max(self.grace, self.grace_of_lease) + timedelta(seconds=self.settings.cleaning_time)

    @property
    def window(self) -> Period:
        """The time for which hosts have to be free."""
        return self.period.longer(self.margin)

    @property
    def shared_window(self) -> Period:
        """The time for which slots of shared hosts have to be free: such hosts are not cleaned."""
        return self.period.longer(max(self.grace, self.grace_of_lease))


def with_grace(ask: Ask) -> dict[str, Any]:
    """The spec with the grace that is agreed; InvalidInput for one that the operator does not leave to owners."""
    before = ask.present.spec.get("grace_period") if ask.present else None
    wanted, longest = int(ask.spec.get("grace_period") or 0), ask.settings.max_grace_period
    if wanted > longest and wanted != before and not ask.caller.is_admin:
        raise InvalidInput(f"grace_period may be {longest} seconds at most here, not {wanted}")
    return {"grace_period": int(ask.terms.get("grace_period") or 0), **ask.spec}


@dataclass(frozen=True, slots=True)
class Allocation:
    """What to hold.  `spec` is kept with the reservation and shown to its owner."""

    spec: Mapping[str, Any]
    holds: tuple[Hold, ...] = ()
    resource_id: str | None = None
    exists_before_start: bool = False
    addresses: tuple[AddressHold, ...] = ()
    amounts: tuple[AmountHold, ...] = ()


@dataclass(frozen=True, slots=True)
class Lent:
    """A reservation as a worker sees it.  `hosts` are names; `token` goes with every change asked of the cloud."""

    lease_id: UUID
    project_id: str
    period: Period
    reservation: Reservation
    hosts: tuple[str, ...]
    token: int
    started: bool = False
    """Its start was carried out: what was reserved has been handed over."""
    after: Pool = Pool.RESERVATION
    """The pool to which its hosts go at the end (`climate.domain.hosts.pools.after`)."""
    slots: Mapping[str, int] = field(default_factory=dict)
    """Of hosts that are shared: how many servers of the reservation each has room for, by the host's name."""
    backends: Mapping[int, str] = field(default_factory=dict)
    """What the cloud calls the places of its amounts, by the number of their inventory."""
    promised: tuple[str, ...] = ()
    """Hosts lent to it on which another lease counts: where others are released at the end, they are recycled."""


class ResourcePlugin(Protocol):
    resource_type: str
    spec_schema: type[Schema]
    """Validates the plugin's part of a reservation; appears in the API's document."""

    def check(self, cloud: Cloud, ask: Ask) -> Mapping[str, Any] | None:
        """Before any transaction: refuse what the cloud knows to be impossible.

        Answers what is to be added to the spec of a new reservation, if anything.
        """

    def pool_metadata(self, spec: Mapping[str, Any]) -> Mapping[str, str]:
        """Describe what is wanted, for the pool that exists from the promise on.

        A plugin whose reservations have no pool of their own lacks this hook.
        """

    def reserve(self, conn: Connection, ask: Ask) -> Allocation:
        """Choose what to hold; NotEnoughHosts where that much is not free.  Writes nothing."""

    def on_start(self, cloud: Cloud, lent: Lent) -> None:
        """Hand over what was reserved."""

    def on_start_together(self, cloud: LendsTogether, lent: Sequence[Lent]) -> Sequence[Trouble | None]:
        """Hand over what several leases reserved, and say how each went; a plugin may lack this hook.

        It asks the cloud for everything at once, by `lend_together` only, and returns what that does.  It is not
        called for reservations with hosts that are not ready, nor where a subclass overrides `on_start` alone.
        """

    def before_end(self, cloud: Cloud, lent: Lent) -> None:
        """Do what was asked to be done ahead of the end."""

    def close(self, cloud: Cloud, lent: Lent) -> None:
        """Begin the grace period: let nothing new be made of it; what there is goes on until the end."""

    def on_event(self, cloud: Cloud, lent: Lent, event: AdditionalEvent) -> None:
        """Act on an event that the client named for a moment of the lease; a plugin may lack this hook."""

    def on_end(self, cloud: Cloud, lent: Lent) -> None:
        """Take everything back, whether or not the start ever succeeded."""


class Plugins(dict[str, ResourcePlugin]):
    """Plugins by resource type; Conflict for a type whose plugin is not loaded, of which there are leases still."""

    def __missing__(self, resource_type: str) -> ResourcePlugin:
        raise Conflict(not_loaded(resource_type))


def not_loaded(resource_type: str) -> str:
    """Say that a plugin is needed, and how to get it."""
    return (
        f"The plugin of resource type {resource_type} is not loaded: an operator has to install it, "
        "or to add the type to CLIMATE_RESOURCE_PLUGINS"
    )


def load(chosen: str = "") -> Plugins:
    """Return the installed plugins by resource type; ours are found in no other way than a stranger's.

    `chosen` names resource types, separated by commas; empty: all that are installed.
    SettingError for a type that is not installed, and for a plugin that cannot be imported.
    """
    installed = {entry.name: entry for entry in entry_points_of(GROUP)}
    names = [name for word in chosen.split(",") if (name := word.strip())] or list(installed)
    missing = ", ".join(sorted(set(names) - set(installed)))
    if missing:
        known = ", ".join(sorted(installed))
        raise SettingError(
            f"CLIMATE_RESOURCE_PLUGINS={chosen!r}: no plugin is installed for {missing}; installed are: {known}"
        )
    return Plugins({name: loaded(installed[name]) for name in names})


def loaded(entry: EntryPoint) -> ResourcePlugin:
    """Return the plugin of an entry point; SettingError when it cannot be imported, or has another resource type."""
    try:
        plugin: ResourcePlugin = entry.load()()
    except (ImportError, AttributeError) as error:
        raise SettingError(
            f"The plugin of resource type {entry.name} cannot be loaded from {entry.value}: {error}; "
            "mend it, or leave it out of CLIMATE_RESOURCE_PLUGINS"
        ) from error
    if plugin.resource_type != entry.name:
        raise SettingError(
            f"The plugin {entry.value} has the resource type {plugin.resource_type}, and its entry point "
            f"is named {entry.name}: name it {plugin.resource_type}"
        )
    return plugin
