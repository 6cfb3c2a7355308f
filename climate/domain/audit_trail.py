"""The audit trail: who changed which object, and what it was before and after.

Limits, pool terms, hosts and maintenance windows have facts of their own.
Objects without facts, such as users and projects, have `ObjectChanged`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID, uuid5

from climate.domain.facts import (
    HostDescribed,
    HostEnrolled,
    HostFact,
    HostOpened,
    HostPowerCleared,
    HostPowerSet,
    HostRemoved,
)
from climate.domain.hosts import folded_host, maintenance_facts
from climate.domain.hosts.folded_host import HostPowerSettings
from climate.domain.hosts.maintenance_facts import (
    FoldedWindow,
    WindowBegun,
    WindowChanged,
    WindowClosed,
    WindowFact,
    WindowPlanned,
)
from climate.domain.operator_facts import NAMESPACE, LimitsSet, PoolTermsSet, decided

DEFAULT_PROJECT = "default"
"""Object of the limits that hold for all projects without their own."""


class AuditKind(StrEnum):
    """Kinds of audited objects."""

    HOST = "host"
    CAPABILITIES = "capabilities"
    POWER = "power"
    MAINTENANCE = "maintenance"
    POOL = "pool"
    LIMITS = "limits"
    USER = "user"
    ROLE = "role"
    PROJECT = "project"
    CREDENTIAL = "application_credential"
    DOMAIN = "domain"
    GROUP = "group"
    ZONE = "zone"
    CELL = "cell"
    AGGREGATE = "aggregate"
    FLAVOR = "flavor"
    QUOTA = "quota"
    COMPUTE_SERVICE = "compute_service"
    COMPUTE_NODE = "compute_node"


class Action(StrEnum):
    CREATED = "created"
    CHANGED = "changed"
    DELETED = "deleted"


Values = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class ObjectChanged:
    """Change of an object without facts of its own: created, changed or deleted.

    `before` and `after` are its fields; of a changed object, only those that differ. They hold no secret.
    `project_id` is the project that the object belongs to.
    """

    at: datetime
    kind: str
    object_id: str
    action: str
    name: str = ""
    project_id: str | None = None
    before: Values | None = None
    after: Values | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """Change of one object. `before` is None for a new object, `after` for a deleted one."""

    kind: AuditKind
    object_id: str
    name: str
    action: Action
    before: Values | None
    after: Values | None
    project_id: str | None = None


@dataclass(frozen=True, slots=True)
class HostRef:
    """Number and name of a host."""

    number: int
    name: str


AuditFact = (
    ObjectChanged
    | LimitsSet
    | PoolTermsSet
    | HostEnrolled
    | HostOpened
    | HostRemoved
    | HostDescribed
    | HostPowerSet
    | HostPowerCleared
    | WindowPlanned
    | WindowChanged
    | WindowClosed
)
"""Facts that the audit trail lists."""

NEEDED = (WindowBegun,)
"""Further facts from which the state before a change is folded."""

FACTS_OF: Mapping[AuditKind, tuple[type, ...]] = {
    AuditKind.HOST: (HostEnrolled, HostOpened, HostRemoved),
    AuditKind.CAPABILITIES: (HostDescribed,),
    AuditKind.POWER: (HostPowerSet, HostPowerCleared),
    AuditKind.MAINTENANCE: (WindowPlanned, WindowChanged, WindowClosed),
    AuditKind.POOL: (PoolTermsSet,),
    AuditKind.LIMITS: (LimitsSet,),
}
"""Facts of the kinds that have their own; the others have ObjectChanged."""


def change_stream(kind: str, object_id: str) -> UUID:
    """Return the stream of the changes of an object without facts of its own."""
    return uuid5(NAMESPACE, f"{kind} {object_id}")


def changed(before: Values, after: Values) -> tuple[Values, Values]:
    """Return the fields in which two states of an object differ, as they were and as they are."""
    names = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    return {name: before.get(name) for name in names}, {name: after.get(name) for name in names}


def describe(stream: UUID, fact: object, earlier: Sequence[object], host: HostRef | None) -> Change:
    """Return what a fact of the audit trail changed; `earlier` are the facts before it in its stream."""
    match fact:
        case ObjectChanged():
            kind, action = AuditKind(fact.kind), Action(fact.action)
            return Change(kind, fact.object_id, fact.name, action, fact.before, fact.after, fact.project_id)
        case LimitsSet() | PoolTermsSet():
            return _of_decision(fact, earlier)
        case WindowPlanned() | WindowChanged() | WindowClosed():
            return _of_window(stream, fact, earlier)
    return _of_host(fact, earlier, host or HostRef(0, ""))


def _of_decision(fact: LimitsSet | PoolTermsSet, earlier: Sequence[object]) -> Change:
    known = decided([one for one in earlier if isinstance(one, LimitsSet | PoolTermsSet)])
    after = fact.terms if isinstance(fact, PoolTermsSet) else fact.limits
    before = {name: known.get(name) for name in after}
    if isinstance(fact, PoolTermsSet):
        return Change(AuditKind.POOL, fact.pool, fact.pool, Action.CHANGED, before, after)
    project = fact.project_id or DEFAULT_PROJECT
    return Change(AuditKind.LIMITS, project, "", Action.CHANGED, before, after, project)


def _of_window(stream: UUID, fact: WindowFact, earlier: Sequence[object]) -> Change:
    known = [one for one in earlier if isinstance(one, WindowFact)]
    after = _window(maintenance_facts.fold([*known, fact]))
    if isinstance(fact, WindowPlanned):
        return Change(AuditKind.MAINTENANCE, str(stream), "", Action.CREATED, None, after)
    old, new = changed(_window(maintenance_facts.fold(known)), after)
    return Change(AuditKind.MAINTENANCE, str(stream), "", Action.CHANGED, old, new)


def _window(standing: FoldedWindow) -> dict[str, object]:
    during = standing.during
    return {
        "host_id": str(standing.host),
        "start_date": during.start.isoformat(),
        "end_date": during.end.isoformat(),
        "reason": standing.reason,
        "state": standing.state,
        "move_servers": standing.move_servers,
    }


def _of_host(fact: object, earlier: Sequence[object], host: HostRef) -> Change:
    number, name = str(host.number), host.name
    known = [one for one in earlier if isinstance(one, HostFact)]
    care = folded_host.fold(known)
    match fact:
        case HostEnrolled():
            after = {"name": fact.name, "pool": fact.pool, "capabilities": dict(fact.extra or {})}
            return Change(AuditKind.HOST, str(fact.host), fact.name, Action.CREATED, None, after)
        case HostOpened():
            opened = {"reservable": _reservable(known)}, {"reservable": fact.reservable, "reason": fact.reason}
            return Change(AuditKind.HOST, number, name, Action.CHANGED, *opened)
        case HostRemoved():
            return Change(AuditKind.HOST, number, name, Action.DELETED, {"name": name}, None)
        case HostDescribed():
            before = {key: care.extra.get(key) for key in fact.extra}
            return Change(AuditKind.CAPABILITIES, number, name, Action.CHANGED, before, fact.extra)
    return _of_power_settings(fact, care.power, host)


def _of_power_settings(fact: object, before: HostPowerSettings | None, host: HostRef) -> Change:
    """Return the change of the power settings of a host; without HostPowerSet they are deleted."""
    now = (
        HostPowerSettings(fact.driver, fact.settings, fact.watts, fact.secrets)
        if isinstance(fact, HostPowerSet)
        else None
    )
    action = Action.DELETED if now is None else Action.CHANGED if before else Action.CREATED
    return Change(AuditKind.POWER, str(host.number), host.name, action, _power(before), _power(now))


def _reservable(known: Sequence[HostFact]) -> bool:
    said = [fact.reservable for fact in known if isinstance(fact, HostOpened)]
    return said[-1] if said else True


def _power(wired: HostPowerSettings | None) -> Values | None:
    if wired is None:
        return None
    return {"driver": wired.driver, "settings": wired.settings, "watts": wired.watts, "secrets": wired.secrets}
