"""Changes as they happen, by server-sent events: `GET /v1/events/stream`."""

import json
from collections.abc import Sequence
from functools import partial
from typing import Any, cast
from uuid import UUID

from flask import Flask, Response, current_app, request
from flask.typing import ResponseReturnValue
from marshmallow import fields, validate

from api.openapi import Blueprint
from api.request_checks import answers
from api.request_context import DEPLOYMENT, caller, climate
from api.reservation.dates import date
from api.reservation.view_decorator import PREFIX, Operation, Read, Strict, serve
from climate.domain.policy import Caller
from climate.service.journal import changes
from climate.service.journal.changes import Follower, Notice
from climate.store.journal.change_feed import Change
from climate.web.event_streams import RETRY_MILLISECONDS, EventStreams, Stream, message
from climate.whole_numbers import whole_number

STREAMS = "climate.event_streams"
"""Key of the open streams among the application's extensions."""

MEDIA_TYPE = "text/event-stream"
LONGEST_ID = 18
LARGEST_ID = 10**LONGEST_ID - 1

blueprint = Blueprint("event_stream", __name__, url_prefix=PREFIX, description="Changes as they happen.")


class StreamQuery(Strict):
    """The part of the stream to show."""

    after = fields.Integer(
        validate=validate.Range(0, LARGEST_ID),
        metadata={"description": "Last id that the client has; the header Last-Event-ID comes first."},
    )
    lease = fields.UUID(metadata={"description": "Only changes of this lease."})
    once = fields.Boolean(
        load_default=False, metadata={"description": "End after what has happened already, for clients that poll."}
    )


def install(app: Flask) -> None:
    """Serve the streams of the deployment of `app` by a thread of this process, which begins with the first one."""
    engine = app.extensions[DEPLOYMENT].climate
    app.extensions[STREAMS] = EventStreams(partial(Follower, engine))


@serve(blueprint, "GET", "/events/stream", Operation("leases:get", {200: None}, query=StreamQuery, refuses=(404, 429)))
@answers(MEDIA_TYPE, "application/json")
def stream_events(query: Read) -> ResponseReturnValue:
    """Stream the changes that the caller may know of, as server-sent events.

    The id of an event is a position in the journal: `Last-Event-ID` resumes without loss. Members see changes of
    their project; `calendar` stands for all others.
    """
    return answer(caller(), query)


def answer(viewer: Caller, query: Read) -> Response:
    """Hand the connection over to the streams of this process; where that is impossible, answer what has happened."""
    after = _last_id(query)
    show = partial(_shown, viewer=viewer, lease_id=query.get("lease"))
    hand_over = getattr(request.environ.get("gunicorn.socket"), "hand_over", None)
    if hand_over is None or query["once"]:
        return Response(_so_far(after, show), content_type=MEDIA_TYPE)
    streams = cast("EventStreams[Change]", current_app.extensions[STREAMS])
    streams.admit(viewer.user_id)
    streams.take(Stream(hand_over(), viewer.user_id, show, after))
    return Response(content_type=MEDIA_TYPE)


def _last_id(query: Read) -> int | None:
    """Return the last id that the client has; a malformed header is no id, as browsers cannot mend it."""
    sent = whole_number(request.headers.get("Last-Event-ID", ""), LONGEST_ID)
    after: int | None = query.get("after")
    return after if sent is None else sent


def _so_far(after: int | None, show: Any) -> bytes:
    """Return the messages up to now, for a client that will ask again."""
    follower = Follower(climate(), after)
    found = follower.read()
    retry = f"retry: {RETRY_MILLISECONDS}\n\n".encode()
    return retry + bytes(show(found)) + message(follower.position, "ready", "{}")


def _shown(found: Sequence[Change], viewer: Caller, lease_id: UUID | None) -> bytes:
    return b"".join(message(one.position, one.topic, _data(one)) for one in changes.notices(found, viewer, lease_id))


def _data(notice: Notice) -> str:
    known = {"kind": notice.kind, "lease_id": notice.lease_id, "host_id": notice.host_id}
    known["project_id"] = notice.project_id
    texts = {name: str(value) for name, value in known.items() if value is not None}
    return json.dumps(texts | ({"at": date(notice.at)} if notice.at else {}))
