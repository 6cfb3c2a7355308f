"""Facts about decisions of administrators on pools and projects, each kind in its own stream.

A value of None withdraws the decision: the settings or the limits of all projects apply again.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID, uuid5

NAMESPACE = UUID("9d6d4f0e-3a55-4a0b-8f0e-6f2f3f0f7c21")


@dataclass(frozen=True, slots=True)
class PoolTermsSet:
    """New target or terms of a pool. Times are in seconds."""

    at: datetime
    pool: str
    terms: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class LimitsSet:
    """New limits of a project; project "" stands for the defaults of all."""

    at: datetime
    project_id: str
    limits: Mapping[str, object]


OperatorFact = PoolTermsSet | LimitsSet


def terms_stream(pool: str) -> UUID:
    """Return the stream of the terms of a pool."""
    return uuid5(NAMESPACE, f"terms of {pool}")


def limits_stream(project_id: str) -> UUID:
    """Return the stream of the limits of a project."""
    return uuid5(NAMESPACE, f"limits of {project_id}")


def decided(facts: Iterable[OperatorFact]) -> dict[str, object]:
    """Return the values by name after all facts of one stream."""
    known: dict[str, object] = {}
    for fact in facts:
        known |= fact.terms if isinstance(fact, PoolTermsSet) else fact.limits
    return {name: value for name, value in known.items() if value is not None}
