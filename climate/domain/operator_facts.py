"""What administrators have decided about pools and projects.  Facts like those of leases, each kind in its own stream.

A value of None takes the decision back: the settings say again, or the
limits of all projects.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID, uuid5

NAMESPACE = UUID("9d6d4f0e-3a55-4a0b-8f0e-6f2f3f0f7c21")


@dataclass(frozen=True, slots=True)
class PoolTermsSet:
    """The target of a pool, or what is agreed about the end of leases that do not say.  Times in seconds."""

    at: datetime
    pool: str
    terms: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class LimitsSet:
    """What a project may hold; of the project "" it is the default of all."""

    at: datetime
    project_id: str
    limits: Mapping[str, Any]


OperatorFact = PoolTermsSet | LimitsSet


def terms_stream(pool: str) -> UUID:
    """Return the stream of the terms of a pool."""
    return uuid5(NAMESPACE, f"terms of {pool}")


def limits_stream(project_id: str) -> UUID:
    """Return the stream of the limits of a project."""
    return uuid5(NAMESPACE, f"limits of {project_id}")


def decided(facts: Iterable[OperatorFact]) -> dict[str, Any]:
    """Return what is decided after all of the facts of one stream: value by name."""
    known: dict[str, Any] = {}
    for fact in facts:
        known |= fact.terms if isinstance(fact, PoolTermsSet) else fact.limits
    return {name: value for name, value in known.items() if value is not None}
