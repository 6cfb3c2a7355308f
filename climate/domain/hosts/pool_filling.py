"""How many hosts the reservation pool is to have for what is promised of it, and which of them come and go.

The pool has what is promised at the busiest moment of the horizon, and a margin
beyond that for leases to come.  It grows at once, and shrinks late: only beyond a
slack, and only by hosts that have been idle for a while and are promised to nobody.
Moments have a time zone.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

NOTHING = timedelta(0)


@dataclass(frozen=True, slots=True)
class Rules:
    """How the pool follows its backlog.  Numbers are hosts, but for `margin`."""

    horizon: timedelta = NOTHING
    """How far ahead promises count; zero: the pool does not follow them."""
    spare: int = 2
    """Least hosts beyond what is promised."""
    margin: int = 25
    """The same in percent of what is promised; the greater of the two holds."""
    slack: int = 2
    """Hosts that the pool may have beyond what is wanted before any is released."""
    dwell: timedelta = timedelta(hours=1)
    """How long a host has been idle in the pool before it is released."""
    drain: bool = True
    """Whether hosts with servers are drained where too few are empty."""
    target: int = 0
    """Least hosts of the pool, whatever is promised."""


@dataclass(frozen=True, slots=True)
class Level:
    """So many hosts are promised from a moment on, until the next level."""

    at: datetime
    hosts: int


class Step(StrEnum):
    """What is done about a host."""

    TAKE = "take"  # an empty host goes to the reservation pool
    DRAIN = "drain"  # a host with servers is closed, and goes there when they are gone
    REOPEN = "reopen"  # a draining host goes back to the multi-tenant pool
    RELEASE = "release"  # an idle host goes to the multi-tenant pool


@dataclass(frozen=True, slots=True)
class Member:
    """A host of the reservation pool."""

    host: int
    since: datetime
    """When it came into the pool, or back from its last lease."""
    bound: str = ""
    """Why it cannot be released, in words; empty: it can, as far as that goes."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A host of the multi-tenant pool that may be taken.  `servers` is None where that is not known."""

    host: int
    servers: int | None


@dataclass(frozen=True, slots=True)
class Situation:
    """What the plan has to know of the hosts at one moment."""

    now: datetime
    size: int
    """Hosts that belong to the reservation pool wherever they are, but for failed and closed ones."""
    backlog: Sequence[Level] = ()
    """What is promised of them within the horizon, by time."""
    members: Sequence[Member] = ()
    """Those of them that are in the pool just now."""
    draining: Sequence[int] = ()
    """Hosts that are on their way there."""
    candidates: Sequence[Candidate] = ()

    @property
    def peak(self) -> Level | None:
        """The first of the busiest moments; None where nothing is promised."""
        return max(self.backlog, key=lambda level: level.hosts, default=None)


@dataclass(frozen=True, slots=True)
class Move:
    """What is done about one host, and why, in words for whoever looks it up."""

    host: int
    step: Step
    reason: str


@dataclass(frozen=True, slots=True)
class Plan:
    """How many hosts are wanted, and what is done about it."""

    promised: int
    """At the peak."""
    beyond: int
    """Hosts that are wanted besides."""
    wanted: int
    most: int
    """More than so many are too many."""
    lacking: int
    """Hosts that no candidate is left for."""
    moves: tuple[Move, ...] = ()
    kept: tuple[Move, ...] = field(default=())
    """Hosts that would be released, and what keeps each of them."""


def plan(there: Situation, rules: Rules) -> Plan:
    """Say what is to be done now; nothing new when asked again after that."""
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


def _taken(there: Situation, rules: Rules, lack: int, why: str) -> Iterator[Move]:
    """Empty hosts first, then those with the fewest servers; of the latter none where they are not known."""
    known = sorted(there.candidates, key=lambda one: (one.servers is None, one.servers or 0))
    fit = [one for one in known if one.servers == 0 or (rules.drain and one.servers is not None)]
    for one in fit[:lack]:
        yield Move(one.host, Step.DRAIN if one.servers else Step.TAKE, why)


def _idle(there: Situation, rules: Rules, why: str) -> tuple[list[Move], list[Move]]:
    """Hosts that can be released, those idle for longest first; and the others, with what keeps them."""
    free: list[Move] = []
    kept: list[Move] = []
    for one in sorted(there.members, key=lambda one: (one.since, one.host)):
        rest = one.since + rules.dwell
        bound = one.bound or (f"idle since {one.since:%Y-%m-%d %H:%M:%S} UTC only" if rest > there.now else "")
        (kept if bound else free).append(Move(one.host, Step.RELEASE, bound or why))
    return free, kept
