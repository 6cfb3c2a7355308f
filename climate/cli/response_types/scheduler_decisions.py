"""Decisions of the scheduler, as `climate.compute.scheduler.decisions.record` describes them."""

from typing import NotRequired, TypedDict


class NamedNode(TypedDict):
    """A node and its service host."""

    host: str
    node: str


class RemovedNode(NamedNode):
    """A node that a filter removed."""

    why: str


class FilterStage(TypedDict):
    """The result of a filter: the number of nodes before and after it."""

    name: str
    start: int
    end: int
    removed: list[RemovedNode]


class LaterStage(FilterStage):
    """The result of a filter for a later server of a build."""

    server: int


class Candidate(NamedNode):
    """A node with its weight; the lists have a value for each weigher."""

    raw: list[float]
    normalised: list[float]
    weight: float


class Weigher(TypedDict):
    """A weigher."""

    name: str
    multiplier: float


class ZoneOffer(TypedDict):
    """The answer of a zone, of this one without an id; the weights are pairs of the raw and the scaled one."""

    zone_id: int | None
    name: str
    reason: str
    weight_offset: float
    weight_scale: float
    offered: int
    weights: list[tuple[float, float]]


class ChosenZone(TypedDict):
    """The child zone that has the server."""

    zone_id: int
    launch_index: int


class Trail(TypedDict):
    """The steps of a decision."""

    asked: NotRequired[dict[str, object]]
    hosts: NotRequired[int]
    considered: NotRequired[int]
    filters: NotRequired[list[FilterStage]]
    weighers: NotRequired[list[Weigher]]
    weighed: NotRequired[list[Candidate]]
    refused: NotRequired[str]
    zones: NotRequired[list[ZoneOffer]]
    zone: NotRequired[ChosenZone]
    chosen: Candidate | None
    later: list[LaterStage]


class FailedAttempt(NamedNode):
    """An earlier failure of the build."""

    reason: str | None


class SchedulerDecision(TypedDict):
    """A decision about a server."""

    made_at: str
    kind: str
    lost: list[list[str]]
    after: FailedAttempt | None
    error: str | None
    trail: Trail


class Scheduling(TypedDict):
    """The decisions about a server, oldest first."""

    server_id: str
    reservation_id: str | None
    decisions: list[SchedulerDecision]
