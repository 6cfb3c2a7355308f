"""Interface of resource plugins, and their discovery.

A plugin handles one resource type. Its database half (`reserve`) runs inside the request's transaction and gets no
cloud. Its cloud half (`on_start`, `on_event`, `before_end`, `close`, `on_end`) runs in a worker without an open
transaction and gets no connection. The cloud half may be repeated at any time after a crash: each hook must be
idempotent, and raises NotYet instead of waiting.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from importlib.metadata import EntryPoint
from typing import Protocol
from uuid import UUID

from marshmallow import Schema
from sqlalchemy import Connection

from climate.cloud import (
    CLEANING,
    DRAINING,
    FAILED,
    FREEPOOL,
    MAINTENANCE,
    RECYCLING,
    Cloud,
    LendsTogether,
    TakesBackTogether,
    Trouble,
)
from climate.domain.availability.demands import Demand, Horizon
from climate.domain.errors import ClimateError, Conflict, InvalidInput
from climate.domain.events.event_transitions import AdditionalEvent
from climate.domain.facts import AddressHold, AmountHold, Hold
from climate.domain.hosts.pools import Pool
from climate.domain.lease import Reservation
from climate.domain.period import Period
from climate.domain.policy import Caller
from climate.domain.reservation_spec import Spec
from climate.entry_points import installed as entry_points_of
from climate.settings import SettingError, Settings
from climate.store.allocation.candidates import Candidates
from climate.time_ordered_ids import time_ordered_id

GROUP = "climate.resource_plugins"

TERMS = ("on_end", "grace_period", "recycle_deadline")
"""Settings for the end of a host reservation; those not set default to the reservation pool's."""

CLOUD_POOLS: Mapping[Pool, str | None] = {
    Pool.MULTI_TENANT: None,
    Pool.RESERVATION: FREEPOOL,
    Pool.RECYCLING: RECYCLING,
    Pool.DRAINING: DRAINING,
    Pool.CLEANING: CLEANING,
    Pool.MAINTENANCE: MAINTENANCE,
    Pool.FAILED: FAILED,
}
"""Names of the pools in the cloud; None means no pool. A lent host is in the pool named by its reservation."""


@dataclass(frozen=True, slots=True)
class ResourceRequest:
    """A request for resources over a period, for a new or an existing reservation."""

    spec: Spec
    period: Period
    caller: Caller
    settings: Settings
    present: Reservation | None = None
    """Present state of the reservation, on update."""
    active: bool = False
    """True if that reservation has started; it may then only grow."""
    patient: bool = False
    """Wait for the rows of hosts that other requests hold, instead of skipping them."""
    taken: tuple[int, ...] = ()
    """Hosts that this request has just allocated to other reservations of the lease, or that are excluded."""
    terms: Spec = field(default_factory=dict)
    """Defaults for terms that the spec leaves open: on_end, grace_period, recycle_deadline of the reservation pool."""
    grace_of_lease: timedelta = timedelta(0)
    """Longest grace period among the reservations of the lease, which ends as a whole."""
    beside: tuple[Reservation, ...] = ()
    """Other reservations of the same lease as they will be; the database has their former state, or none."""
    liked: tuple[int, ...] = ()
    """Hosts to prefer if they are free, because they were agreed to."""
    soon: bool = False
    """True if the start is so soon that a host that is off may not be up in time."""
    taken_addresses: tuple[int, ...] = ()
    """Numbers of floating IPs that this request has just allocated to other reservations of the lease."""
    taken_amounts: tuple[AmountHold, ...] = ()
    """Countable resources that this request has just allocated to other reservations of the lease."""
    together: frozenset[UUID] = frozenset()
    """Reservations of the lease that are chosen together with this one: what they hold now counts as free."""
    giving_way: frozenset[UUID] = frozenset()
    """Reservations of preemptible leases, which are locked: their hosts count as free, and are taken last."""
    avoided: frozenset[int] = frozenset()
    """Hosts among `taken` that are excluded even if other reservations of the lease share them."""
    new_id: UUID = field(default_factory=time_ordered_id)
    """Id of a new reservation."""
    project_id: str = ""
    """Project of the lease, since an administrator may update a lease of another project."""
    held_until: datetime | None = None
    """End of the holds of a sub-lease, which is that of its parent's holds."""

    @property
    def owner(self) -> str:
        """Return the project of the lease."""
        return self.project_id or self.caller.project_id

    @property
    def reservation_id(self) -> UUID:
        return self.present.id if self.present else self.new_id

    @property
    def own(self) -> frozenset[UUID]:
        """Return the reservations whose present resources count as free for this one."""
        return self.together.union([self.present.id] if self.present else ())

    @property
    def grace(self) -> timedelta:
        """Return the time for which servers continue after the period."""
        return timedelta(seconds=int(self.spec.get("grace_period") or 0))

    @property
    def margin(self) -> timedelta:
        """Return grace and cleaning time, for which hosts are kept after the period."""
        return max(self.grace, self.grace_of_lease) + timedelta(seconds=self.settings.cleaning_time)

    @property
    def window(self) -> Period:
        """Return the time for which hosts have to be free."""
        window = self.period.longer(self.margin)
        return window if self.held_until is None else Period(window.start, max(window.end, self.held_until))

    @property
    def tail(self) -> int:
        """Return the seconds after the period for which hosts have to be free."""
        return int(self.margin.total_seconds())

    @property
    def shared_tail(self) -> int:
        """Return the seconds after the period for which slots, addresses and storage have to be free."""
        return int(max(self.grace, self.grace_of_lease).total_seconds())

    @property
    def shared_window(self) -> Period:
        """Return the time for which slots of shared hosts have to be free; such hosts are not cleaned."""
        return self.period.longer(max(self.grace, self.grace_of_lease))


def with_grace(request: ResourceRequest) -> Spec:
    """Return the spec with its grace period. Raise InvalidInput for one that the operator does not allow."""
    before = request.present.spec.get("grace_period") if request.present else None
    wanted, longest = int(request.spec.get("grace_period") or 0), request.settings.max_grace_period
    if wanted > longest and wanted != before and not request.caller.is_admin:
        raise InvalidInput(f"grace_period may be {longest} seconds at most here, not {wanted}")
    return {"grace_period": int(request.terms.get("grace_period") or 0), **request.spec}


@dataclass(frozen=True, slots=True)
class Allocation:
    """Resources to hold. `spec` is stored with the reservation and shown to its owner."""

    spec: Spec
    holds: tuple[Hold, ...] = ()
    resource_id: str | None = None
    exists_before_start: bool = False
    addresses: tuple[AddressHold, ...] = ()
    amounts: tuple[AmountHold, ...] = ()


@dataclass(frozen=True, slots=True)
class Offer:
    """All that a reservation could have, so that all reservations of a lease are chosen together.

    The engine reads the candidates, chooses, locks the choice, and reads again until the choice is still possible.
    """

    kind: str
    """Kind of the numbers: HOSTS, ADDRESSES, INVENTORIES, or a name of the plugin's own."""
    read: Callable[[Connection], Candidates]
    """Returns what is free, without locks. It may raise what `reserve` would for this reservation alone."""
    lock: Callable[[Connection, Collection[int]], None]
    """Locks the rows of chosen numbers, ascending."""
    allocation: Callable[[Mapping[int, int], Candidates], Allocation]
    """Returns the allocation of chosen numbers: slots of shared ones, and 1 of whole ones."""
    refusal: ClimateError
    """Error if too little is free for this reservation alone."""
    ends: Callable[[Connection], Collection[datetime]] = lambda conn: ()
    """Returns times from which more may be free; they are tried to say when the lease would fit."""


HOSTS, ADDRESSES, INVENTORIES = "hosts", "floating IPs", "storage pools"


@dataclass(frozen=True, slots=True)
class ReservationContext:
    """A reservation as a worker sees it. `hosts` are names; `token` accompanies every change in the cloud."""

    lease_id: UUID
    project_id: str
    period: Period
    reservation: Reservation
    hosts: tuple[str, ...]
    token: int
    started: bool = False
    """True once its start has run, and the resources were handed over."""
    after: Pool = Pool.RESERVATION
    """The pool to which its hosts go at the end (`climate.domain.hosts.pools.after`)."""
    slots: Mapping[str, int] = field(default_factory=dict)
    """Number of slots of the reservation on each shared host, by host name."""
    backends: Mapping[int, str] = field(default_factory=dict)
    """Names of the cloud's backends of its amounts, by the number of their inventory."""
    promised: tuple[str, ...] = ()
    """Hosts of the reservation that another lease needs next: they are recycled where others are released at the end.
    """
    shared_with: tuple[str, ...] = ()
    """Further projects whose servers may boot on the lease."""


Ask, Lent = ResourceRequest, ReservationContext
"""Former names, which plugins of others may import."""


class ResourcePlugin(Protocol):
    resource_type: str
    spec_schema: type[Schema]
    """Validates the plugin's part of a reservation; appears in the OpenAPI document."""

    def check(self, cloud: Cloud, request: ResourceRequest) -> Spec | None:
        """Refuse, before any transaction, what the cloud knows to be impossible.

        Return additions to the spec of a new reservation, if any.
        """

    def pool_metadata(self, spec: Spec) -> Mapping[str, str]:
        """Return the requirements as metadata of the pool that exists from the allocation on.

        A plugin whose reservations have no pool of their own lacks this hook.
        """

    def reserve(self, conn: Connection, request: ResourceRequest) -> Allocation:
        """Choose resources to hold, without writing. Raise NotEnoughHosts if that many are not free."""

    def offer(self, conn: Connection, request: ResourceRequest) -> Offer | None:
        """Return what the reservation could have, for a choice together with the others of its lease; optional hook.

        Refuses what `reserve` refuses for other reasons than a shortage. A plugin without this hook, or with None,
        chooses by `reserve`, before the others.
        """

    def demand(self, conn: Connection, request: ResourceRequest, horizon: Horizon) -> Demand | None:
        """Return what `reserve` would choose from and when it is free; optional hook.

        None if the reservation fits at any time. A plugin without this hook cannot be searched for.
        """

    def on_start(self, cloud: Cloud, context: ReservationContext) -> None:
        """Hand over the reserved resources."""

    def on_start_together(
        self, cloud: LendsTogether, contexts: Sequence[ReservationContext]
    ) -> Sequence[Trouble | None]:
        """Hand over the resources of several leases, and return the outcome of each; optional hook.

        It asks the cloud for everything at once, by `lend_together` only, and returns what that does.  It is not
        called for reservations with hosts that are not ready, nor where a subclass overrides `on_start` alone.
        """

    def before_end(self, cloud: Cloud, context: ReservationContext) -> None:
        """Carry out the actions that were requested ahead of the end."""

    def before_end_together(self, cloud: object, contexts: Sequence[ReservationContext]) -> Sequence[Trouble | None]:
        """Carry out the actions ahead of the ends of several leases, and return the outcome of each; optional hook.

        It asks the cloud for nothing, and returns InUse for leases whose actions need it: `before_end` is called for
        these. It is not called where a subclass overrides `before_end` alone.
        """

    def close(self, cloud: Cloud, context: ReservationContext) -> None:
        """Begin the grace period: refuse new servers; existing ones continue until the end."""

    def on_event(self, cloud: Cloud, context: ReservationContext, event: AdditionalEvent) -> None:
        """Handle an event that the client has added to the lease; optional hook."""

    def on_end(self, cloud: Cloud, context: ReservationContext) -> None:
        """Take all resources back, even if the start never succeeded."""

    def on_end_together(
        self, cloud: TakesBackTogether, contexts: Sequence[ReservationContext]
    ) -> Sequence[Trouble | None]:
        """Take back the resources of several leases, and return the outcome of each; optional hook.

        It asks the cloud for everything at once, by `take_back_together` only, and returns what that does. It is not
        called for reservations that release their hosts, nor where a subclass overrides `on_end` alone.
        """


class Plugins(dict[str, ResourcePlugin]):
    """Plugins by resource type. Raise Conflict for a type whose plugin is not loaded although leases of it exist."""

    def __missing__(self, resource_type: str) -> ResourcePlugin:
        raise Conflict(not_loaded(resource_type))


def not_loaded(resource_type: str) -> str:
    """Return an error text that names the missing plugin and the setting that loads it."""
    return (
        f"The plugin of resource type {resource_type} is not loaded: an operator has to install it, "
        "or to add the type to CLIMATE_RESOURCE_PLUGINS"
    )


def load(chosen: str = "") -> Plugins:
    """Return the installed plugins by resource type; built-in ones are loaded through the same entry points as others.

    `chosen` names resource types, separated by commas; empty means all that are installed. Raise SettingError for a
    type that is not installed, and for a plugin that cannot be imported.
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
    """Return the plugin of an entry point. Raise SettingError if it cannot be imported or has another resource type."""
    try:
        plugin: ResourcePlugin = entry.load()()
    except (ImportError, AttributeError) as error:
        raise SettingError(
            f"The plugin of resource type {entry.name} cannot be loaded from {entry.value}: {error}; "
            "repair it, or leave it out of CLIMATE_RESOURCE_PLUGINS"
        ) from error
    if plugin.resource_type != entry.name:
        raise SettingError(
            f"The plugin {entry.value} has the resource type {plugin.resource_type}, and its entry point "
            f"is named {entry.name}: name it {plugin.resource_type}"
        )
    return plugin
