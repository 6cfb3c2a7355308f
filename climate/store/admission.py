"""Admission rules for a lease request, read in one statement to keep the number of statements of a create low."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, column, text
from sqlalchemy.dialects.postgresql import JSONB

from climate.domain.hosts.pools import Pool
from climate.domain.limits import Limit
from climate.store.limits import DEFAULT, Rule
from climate.store.schema import Time

# The empty text of the default limits sorts first, so that a project's own limits replace them.
_RULES = text("""
    SELECT clock_timestamp() AS time,
        (SELECT coalesce(jsonb_agg(jsonb_build_array(project_id, name, value) ORDER BY project_id), '[]')
            FROM limits WHERE project_id IN (:default, :project_id)) AS limits,
        (SELECT to_jsonb(t) FROM pool_terms t WHERE t.pool = :pool) AS terms
""").columns(column("time", Time), column("limits", JSONB), column("terms", JSONB))


@dataclass(frozen=True, slots=True)
class Rules:
    """Rules of one project at one moment."""

    time: datetime
    """The database's clock."""
    limits: Mapping[Limit, Rule]
    terms: Mapping[str, object]
    """Settings of an administrator for the reservation pool; None if there are none."""


def read(conn: Connection, project_id: str) -> Rules:
    """Read the clock, the limits of a project and the settings of the reservation pool in one statement."""
    given = {"default": DEFAULT, "project_id": project_id, "pool": Pool.RESERVATION}
    row = conn.execute(_RULES, given).one()
    limits = {Limit(name): Rule(whose, Limit(name), value) for whose, name, value in row.limits}
    return Rules(row.time, limits, row.terms or {})
