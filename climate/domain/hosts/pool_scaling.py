"""Target size of the reservation pool for its backlog, and the hosts to add or release.

The pool has as many hosts as are promised at the busiest moment of the horizon, plus a margin for leases to
come. It grows at once and shrinks late. It releases only hosts beyond a slack that have been idle for a while
and are promised to nobody. Times have a time zone.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

NOTHING = timedelta(0)


@dataclass(frozen=True, slots=True)
class Rules:
    """Parameters of the pool's size. Numbers are hosts, except for `margin`."""

    horizon: timedelta = NOTHING
    """Period ahead for which promises count; zero: the pool does not follow them."""
    spare: int = 2
    """Minimum number of hosts beyond the promised ones."""
    margin: int = 25
    """The same as a percentage of the promised hosts; the greater of the two applies."""
    slack: int = 2
    """Number of hosts beyond the wanted ones that the pool may keep."""
    dwell: timedelta = timedelta(hours=1)
    """Time for which a host must be idle in the pool before it is released."""
    drain: bool = True
    """Set if hosts with servers are drained when too few hosts are empty."""
    target: int = 0
    """Minimum size of the pool, whatever is promised."""


@dataclass(frozen=True, slots=True)
class Level:
    """Number of hosts that are promised from a time on, until the next level."""

    at: datetime
    hosts: int


class Step(StrEnum):
    """Kind of action for a host."""

    TAKE = "take"  # an empty host goes to the reservation pool
    DRAIN = "drain"  # a host with servers takes no new ones, and goes there when they are gone
    REOPEN = "reopen"  # a draining host goes back to the multi-tenant pool
    RELEASE = "release"  # an idle host goes to the multi-tenant pool


@dataclass(frozen=True, slots=True)
class Member:
    """Host of the reservation pool."""

    host: int
    since: datetime
    """Time at which the host came into the pool, or back from its last lease."""
    bound: str = ""
    """Reason why it cannot be released; empty if it can."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """Host of the multi-tenant pool that may be added. `servers` is None if their number is unknown."""

    host: int
    servers: int | None


@dataclass(frozen=True, slots=True)
class HostsState:
    """State of the hosts at one time, as input of the plan."""

    now: datetime
    size: int
    """Number of hosts that belong to the reservation pool, in any pool, except failed and closed ones."""
    backlog: Sequence[Level] = ()
    """Promises within the horizon, by time."""
    members: Sequence[Member] = ()
    """Hosts that are in the reservation pool now."""
    draining: Sequence[int] = ()
    """Hosts that are being drained for the pool."""
    candidates: Sequence[Candidate] = ()

    @property
    def peak(self) -> Level | None:
        """Return the first of the busiest times; None without promises."""
        return max(self.backlog, key=lambda level: level.hosts, default=None)


@dataclass(frozen=True, slots=True)
class Move:
    """Action for one host, with its reason."""

    host: int
    step: Step
    reason: str


@dataclass(frozen=True, slots=True)
class Plan:
    """Wanted size of the pool, and the actions to reach it."""

    promised: int
    """Number of hosts promised at the peak."""
    beyond: int
    """Number of hosts wanted beyond that."""
    wanted: int
    most: int
    """Size above which hosts are released."""
    lacking: int
    """Number of hosts for which there is no candidate."""
    moves: tuple[Move, ...] = ()
    kept: tuple[Move, ...] = field(default=())
    """Hosts that would be released, each with the reason for keeping it."""


def plan(there: HostsState, rules: Rules) -> Plan:
    """Return the actions to take now; none if repeated after they were carried out."""
    promised = there.peak.hosts if there.peak else 0
    beyond = max(rules.spare, -(-promised * rules.margin // 100))
    wanted = max(rules.target, promised + beyond)
    most = wanted + rules.slack
    coming = there.size + len(there.draining)
    lack = max(0, wanted - coming)
    more = [*_taken(there, rules, lack, f"{wanted} hosts are wanted: {promised} are promised at once, {beyond} spare")]
    why = f"{most} hosts are enough: {promised} are promised at once, {beyond} spare, {rules.slack} slack"
    reopened = [Move(host, Step.REOPEN, why) for host in sorted(there.draining, reverse=True)]
    reopened = reopened[: max(0, coming - most)]
    surplus = max(0, there.size - most)
    idle, kept = _idle(there, rules, why)
    moves = (*more, *reopened, *idle[:surplus])
    return Plan(promised, beyond, wanted, most, lack - len(more), moves, tuple(kept) if len(idle) < surplus else ())


def _taken(there: HostsState, rules: Rules, lack: int, why: str) -> Iterator[Move]:
    """Return empty hosts first, then those with the fewest servers; never hosts with an unknown number of servers."""
    known = sorted(there.candidates, key=lambda one: (one.servers is None, one.servers or 0))
    fit = [one for one in known if one.servers == 0 or (rules.drain and one.servers is not None)]
    for one in fit[:lack]:
        yield Move(one.host, Step.DRAIN if one.servers else Step.TAKE, why)


def _idle(there: HostsState, rules: Rules, why: str) -> tuple[list[Move], list[Move]]:
    """Return the hosts that can be released, longest idle first, and the others with the reason for keeping them."""
    free: list[Move] = []
    kept: list[Move] = []
    for one in sorted(there.members, key=lambda one: (one.since, one.host)):
        rest = one.since + rules.dwell
        bound = one.bound or (f"idle since {one.since:%Y-%m-%d %H:%M:%S} UTC only" if rest > there.now else "")
        (kept if bound else free).append(Move(one.host, Step.RELEASE, bound or why))
    return free, kept
