"""Series of leases: create, list, show, change and delete."""

from uuid import UUID

from flask.typing import ResponseReturnValue
from marshmallow import fields
from structlog.contextvars import bind_contextvars

from api.openapi import Blueprint
from api.request_context import caller, climate
from api.reservation import pages
from api.reservation.ids import marker_id, path_id
from api.reservation.leases import order_from_body, series_view
from api.reservation.leases.request_options import DryRun, IfMatch, Repeatable, key_of, tag
from api.reservation.leases.series_schema import (
    EXAMPLE,
    SeriesAnswer,
    SeriesListAnswer,
    SeriesOrder,
    SeriesPatch,
    SeriesQuery,
)
from api.reservation.view_decorator import PREFIX, Operation, Read, nothing, serve
from climate.service.series import change, create
from climate.service.series.change import SeriesChanges
from climate.service.series.create import Outcome
from climate.store.leases.series import SeriesListing

blueprint = Blueprint("series", __name__, url_prefix=PREFIX, description="Leases that repeat by a rule.")


class _From(DryRun):
    """Query of the deletion of a series."""

    since = fields.UUID(
        data_key="from", metadata={"description": "Lease of the series from which on occurrences are deleted."}
    )


@serve(blueprint, "GET", "/series", Operation("leases:get", {200: SeriesListAnswer}, query=SeriesQuery))
def list_series(query: Read) -> ResponseReturnValue:
    """List series, oldest first.

    Administrators see those of all projects, others those of their own project.
    """
    part = pages.requested()
    wanted = SeriesListing(name=query.get("name"), marker=marker_id(part.marker), limit=part.fetch)
    found = change.listed(climate(), caller(), wanted)
    return pages.listing("series", found, part, lambda one: series_view.listed(*one))


@serve(
    blueprint,
    "POST",
    "/series",
    Operation(
        "leases:post",
        {201: SeriesAnswer, 200: SeriesAnswer},
        query=DryRun,
        headers=Repeatable,
        body=SeriesOrder,
        refuses=(404, 409, 422),
        example=EXAMPLE,
    ),
)
def create_series(query: Read, headers: Read, body: Read) -> ResponseReturnValue:
    """Create a series: a lease for each occurrence of a rule.

    With `make` `all`, 409 names the occurrences that do not fit, and nothing is created.  With `fitting`, the answer
    has them with alternatives, and so has a dry run, which answers 200.
    """
    wanted = order_from_body.series(body)
    made = create.create(climate(), caller(), wanted, key_of(headers), dry_run=query["dry_run"])
    bind_contextvars(series_id=str(made.series.id))
    return {"series": series_view.series(made)}, 200 if query["dry_run"] else 201, tag(made.series.version)


def _series_now(series_id: str) -> Read:
    return {"series": series_view.series(change.get(climate(), caller(), _id(series_id)))}


@serve(blueprint, "GET", "/series/<series_id>", Operation("leases:get", {200: SeriesAnswer}, refuses=(404,)))
def show_series(series_id: str, query: Read) -> ResponseReturnValue:
    """Show a series with its occurrences."""
    return _shown(change.get(climate(), caller(), _id(series_id)))


@serve(
    blueprint,
    "PUT",
    "/series/<series_id>",
    Operation(
        "leases:put",
        {200: SeriesAnswer},
        query=DryRun,
        headers=IfMatch,
        body=SeriesPatch,
        refuses=(404, 409, 412),
        shows=_series_now,
        example={"move_by": "PT1H", "extend_by": "-PT30M"},
    ),
)
def change_series(series_id: str, query: Read, headers: Read, body: Read) -> ResponseReturnValue:
    """Change the occurrences that have not begun, from one on or all.

    All changes are applied, or none; 409 names the occurrences that do not fit.
    """
    wish = SeriesChanges(**body)
    version = headers.get("version")
    return _shown(change.change(climate(), caller(), _id(series_id), wish, version, dry_run=query["dry_run"]))


@serve(
    blueprint,
    "DELETE",
    "/series/<series_id>",
    Operation("leases:delete", {204: None}, query=_From, headers=IfMatch, refuses=(404, 409, 412)),
)
def delete_series(series_id: str, query: Read, headers: Read) -> ResponseReturnValue:
    """Delete the occurrences that have not begun, from one on or all.

    Occurrences that have begun go on until their end.
    """
    since, version = query.get("since"), headers.get("version")
    change.delete(climate(), caller(), _id(series_id), since, version, dry_run=query["dry_run"])
    return nothing()


def _shown(outcome: Outcome) -> ResponseReturnValue:
    return {"series": series_view.series(outcome)}, 200, tag(outcome.series.version)


def _id(text: str) -> UUID:
    series_id = path_id(text, f"Object with {{'series_id': '{text[:80]}'}} not found")
    bind_contextvars(series_id=str(series_id))
    return series_id
