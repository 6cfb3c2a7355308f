"""Calendar feeds: created with a token, and read by calendar programs without one."""

from flask import Response, current_app, request
from flask.typing import ResponseReturnValue
from marshmallow import RAISE, Schema, ValidationError, fields, validate

from api.auth import CALENDARS
from api.openapi import Blueprint
from api.path_aliases import CALENDAR
from api.request_checks import answers
from api.request_context import caller, climate, deployment, identity
from api.reservation import pages
from api.reservation.dates import out_stamp, stamp
from api.reservation.ids import marker_id, path_id
from api.reservation.leases.schema import LinkOut
from api.reservation.view_decorator import PREFIX, Operation, Read, Strict, nothing, serve
from climate.domain.errors import NotFound
from climate.service.calendars import feeds, ics
from climate.service.calendars.feeds import Days
from climate.store.notices.calendar_feeds import Feed, Scope

LONGEST_NAME = 80

PAST, FUTURE = 30, 365
MOST_PAST, MOST_FUTURE = 366, 1100
"""Days that a feed shows by default, and at most."""

blueprint = Blueprint("calendar_feeds", __name__, url_prefix=PREFIX, description="Calendar feeds of leases.")


def _is_one_line(text: str) -> None:
    if not text.isprintable() or not text.strip():
        raise ValidationError("Must be one line of printable characters.")


class FeedOrder(Strict):
    name = fields.String(
        load_default="Leases",
        validate=[validate.Length(1, LONGEST_NAME), _is_one_line],
        metadata={"description": "Name of the calendar.", "pattern": r"\S"},
    )
    scope = fields.String(
        load_default=str(Scope.USER),
        validate=validate.OneOf([str(one) for one in Scope]),
        metadata={"description": "user: your leases in this project; project: all leases of this project."},
    )


class FeedOut(Schema):
    class Meta:
        unknown = RAISE

    id = fields.UUID(required=True)
    name = fields.String(required=True)
    scope = fields.String(required=True)
    project_id = fields.String(required=True)
    user_id = fields.String(required=True)
    created_at = out_stamp()


class NewFeedOut(FeedOut):
    url = fields.String(required=True, metadata={"description": "The URL, which is shown this once."})


class FeedAnswer(Schema):
    calendar_feed = fields.Nested(NewFeedOut, required=True)


class FeedsAnswer(Schema):
    calendar_feeds = fields.List(fields.Nested(FeedOut), required=True)
    calendar_feeds_links = fields.List(
        fields.Nested(LinkOut), metadata={"description": "Link to the next page, if there is one."}
    )


class Window(Strict):
    past = fields.Integer(
        load_default=PAST, validate=validate.Range(0, MOST_PAST), metadata={"description": "Days before now."}
    )
    future = fields.Integer(
        load_default=FUTURE, validate=validate.Range(1, MOST_FUTURE), metadata={"description": "Days after now."}
    )


@serve(
    blueprint,
    "POST",
    "/calendar-feeds",
    Operation(
        "calendar_feeds:post",
        {201: FeedAnswer},
        body=FeedOrder,
        refuses=(409,),
        example={"name": "GPU hosts", "scope": "project"},
    ),
)
def create_feed(query: Read, body: Read) -> ResponseReturnValue:
    """Create a calendar feed; the answer has its secret URL, which is not shown again."""
    feed, secret = feeds.create(climate(), caller(), body["name"], Scope(body["scope"]))
    url = f"{deployment().settings.base_url}{PREFIX}/{CALENDAR}/{secret}.ics"
    return {"calendar_feed": {**_body(feed), "url": url}}, 201


@serve(blueprint, "GET", "/calendar-feeds", Operation("calendar_feeds:get", {200: FeedsAnswer}, query=pages.Paged))
def list_feeds(query: Read) -> ResponseReturnValue:
    """List your calendar feeds in this project, without their secrets; administrators see all feeds."""
    part = pages.requested()
    rows = feeds.listed(climate(), caller(), marker_id(part.marker), part.fetch)
    return pages.listing("calendar_feeds", rows, part, _body)


@serve(
    blueprint,
    "DELETE",
    "/calendar-feeds/<feed_id>",
    Operation("calendar_feeds:delete", {204: None}, refuses=(404,)),
)
def revoke_feed(feed_id: str, query: Read) -> ResponseReturnValue:
    """Revoke a calendar feed: its URL answers 404 from now on."""
    feeds.revoke(
        climate(), caller(), path_id(feed_id, f"Object with {{'calendar_feed_id': '{feed_id[:80]}'}} not found")
    )
    return nothing()


@serve(
    blueprint,
    "GET",
    f"/{CALENDAR}/<secret>.ics",
    Operation(None, {200: None, 304: None}, query=Window, refuses=(404, 429, 503)),
)
@answers(ics.MEDIA_TYPE, "application/json")
def read_feed(secret: str, query: Read) -> ResponseReturnValue:
    """Answer a calendar feed as iCalendar, without a token."""
    current_app.extensions[CALENDARS].spend(request.remote_addr or "")
    feed = feeds.with_secret(climate(), secret)
    if not identity().may_read(feed.user_id, feed.project_id):
        raise NotFound(feeds.GONE)
    known = request.headers.get("If-None-Match", "")
    rendered = feeds.render(climate(), feed, Days(query["past"], query["future"]), known)
    if rendered.content is None:
        answer = Response(status=304)
    else:
        answer = Response(rendered.content, content_type=f"{ics.MEDIA_TYPE}; charset=utf-8")
    answer.headers["ETag"] = f'"{rendered.tag}"'
    # For one reader, who asks again each time, so that a revocation holds at once.
    answer.headers["Cache-Control"] = "private, no-cache"
    return answer


def _body(feed: Feed) -> dict[str, object]:
    return {
        "id": str(feed.id),
        "name": feed.name,
        "scope": str(feed.scope),
        "project_id": feed.project_id,
        "user_id": feed.user_id,
        "created_at": stamp(feed.created_at),
    }
