"""JSON views of series and their occurrences; `SeriesOut` in `series_schema` declares their keys."""

from api.reservation.dates import date, maybe, stamp
from api.reservation.leases import availability
from climate.domain.planning.series import Series
from climate.service.series.create import Outcome
from climate.service.series.occurrence_alternatives import Occurrence

Body = dict[str, object]


def series(outcome: Outcome) -> Body:
    """Return a series with its occurrences."""
    leases = sum(occurrence.lease is not None for occurrence in outcome.occurrences)
    return {
        **listed(outcome.series, leases),
        "occurrences": [_occurrence(occurrence) for occurrence in outcome.occurrences],
    }


def listed(series: Series, leases: int) -> Body:
    """Return a series with its number of leases."""
    return {
        "id": str(series.id),
        "name": series.name,
        "project_id": series.project_id,
        "user_id": series.user_id,
        "rule": series.rule,
        "zone": series.zone,
        "make": series.make,
        "start_date": date(series.period.start),
        "end_date": date(series.period.end),
        "leases": leases,
        "created_at": stamp(series.created_at),
        "updated_at": maybe(stamp, series.updated_at),
    }


def _occurrence(one: Occurrence) -> Body:
    suggestion = one.suggestion
    return {
        "lease_id": None if one.lease is None else str(one.lease.id),
        "name": one.name,
        "start_date": date(one.period.start),
        "end_date": date(one.period.end),
        "fits": one.lease is not None,
        "status": None if one.lease is None else one.lease.status,
        "reason": one.reason,
        "binding": None if suggestion is None else availability.binding_body(suggestion),
        "alternatives": [] if suggestion is None else availability.alternatives_body(suggestion),
    }
