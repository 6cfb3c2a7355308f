"""Schemas of leases in requests and answers."""

from typing import Any

from marshmallow import RAISE, Schema, ValidationError, fields, validate, validates_schema

from api.errors import MISSING
from api.request_context import climate
from api.reservation.dates import Moment, out_date, out_stamp
from api.reservation.leases import repeat_schema
from api.reservation.leases.repeat_schema import AskedRepeat
from api.reservation.leases.reservation_specs import change_schema
from api.reservation.pages import Paged
from api.reservation.unchanged_fields import Update, differing
from api.reservation.view_decorator import Strict
from climate.domain.events.event_transitions import EVENT_NAME, EVENT_NAME_RULE, MOST_EVENTS
from climate.domain.sharing.sharing import ACCOUNT_ID, MOST_PROJECTS, MOST_USERS
from climate.domain.status import EventStatus, LeaseStatus, PartState, ReservationStatus

MOST_PARTS = 64
"""Reservations of a lease."""

LONGEST_NAME = 80

OF_HOLDS = ("start_date", "end_date", "reservations", "hold_seconds", "wait", "repeat")
"""Fields that a lease made of a hold takes from the hold."""

ALONE = ("hold_seconds", "wait", "sharing")
"""Fields of a lease that does not repeat."""


def _is_a_name(text: str) -> None:
    if not 1 <= len(text) <= LONGEST_NAME or not text.strip():
        raise ValidationError(f"Must be a text of 1 to {LONGEST_NAME} characters, not only blanks.")


def name_field(longest: int = LONGEST_NAME, **more: Any) -> fields.String:
    limits = validate.Length(1, longest, error=f"Must be a text of 1 to {longest} characters.")
    return fields.String(validate=[limits, _is_a_name], **more)


class AskedReservation(fields.Dict):
    """A reservation of a new lease; its plugin defines further keys."""


class AskedChange(fields.Dict):
    """A change of a reservation, which is named by its `id`."""


class AskedEvent(Strict):
    """A user-defined event: at its time the owner and the plugins are notified."""

    event_type = fields.String(
        required=True,
        validate=validate.Regexp(EVENT_NAME, error=f"Must be {EVENT_NAME_RULE}."),
    )
    event_date = Moment(required=True)


class AskedWait(Strict):
    """A wait for resources, up to the start by default.

    If it ends after the start, the lease begins when it gets its resources, and keeps its length.
    """

    until = Moment(allow_none=True, load_default=None)


def _ids(longest: int, what: str) -> "fields.List[Any]":
    return fields.List(
        fields.String(validate=validate.Regexp(f"^{ACCOUNT_ID}\\Z", error="Must be the id of a project or user.")),
        load_default=list,
        validate=[validate.Length(max=longest), _each_once],
        metadata={"description": what},
    )


def _each_once(ids: list[str]) -> None:
    if len(set(ids)) < len(ids):
        raise ValidationError("Must name each id once.")


class SharingBody(Strict):
    """Further projects and users of a lease, by their ids; a list that is absent is empty."""

    projects = _ids(MOST_PROJECTS, "Projects whose members may see the lease and boot servers on it.")
    viewers = _ids(MOST_USERS, "Users who may see the lease.")
    extenders = _ids(MOST_USERS, "Users who may see the lease and move its end to a later time.")


class LeaseOrder(Strict):
    """A new lease."""

    name = name_field(required=True)
    start_date = Moment(now=True)
    end_date = Moment()
    hold = fields.UUID(
        allow_none=True,
        load_default=None,
        metadata={
            "description": "Id of a hold of which the lease is made: it has the dates and reservations, and the body"
            " only `name`, `before_end_date` and `events`."
        },
    )
    before_end_date = Moment(allow_none=True, load_default=None)
    reservations = fields.List(AskedReservation(), load_default=list, validate=validate.Length(max=MOST_PARTS))
    events = fields.List(fields.Nested(AskedEvent), load_default=list, validate=validate.Length(max=MOST_EVENTS))
    hold_seconds = fields.Integer(
        strict=True,
        allow_none=True,
        load_default=None,
        validate=validate.Range(1, 86400),
        metadata={
            "description": "Hold the lease for so many seconds; it is deleted then unless it was confirmed,"
            " and it does not start before. The maximum is CLIMATE_HOLD_SECONDS."
        },
    )

    wait = fields.Nested(
        AskedWait,
        allow_none=True,
        load_default=None,
        metadata={"description": "Put the lease in the waiting list if it does not fit; excludes hold_seconds."},
    )
    repeat = fields.Nested(
        AskedRepeat,
        allow_none=True,
        load_default=None,
        metadata={
            "description": "Create a series: a lease for each occurrence of the rule. Excludes hold, hold_seconds and"
            f" wait; the name has at most {repeat_schema.LONGEST_NAME} characters."
        },
    )

    sharing = fields.Nested(SharingBody, allow_none=True, load_default=None)

    @validates_schema(pass_original=True, skip_on_field_errors=False)
    def _dates_or_hold(self, data: dict[str, object], original: object, **_: object) -> None:
        given = original if isinstance(original, dict) else {}
        if data.get("hold") is None:
            missing = [name for name in OF_HOLDS[:2] if name not in given]
            if missing:
                raise ValidationError({name: [MISSING] for name in missing})
        elif held := [name for name in OF_HOLDS if given.get(name) not in (None, [])]:
            raise ValidationError({held[0]: ["not together with hold, which has it"]})
        elif given.get("sharing") is not None:
            raise ValidationError({"sharing": ["not together with hold: share the lease once it is made"]})

    @validates_schema(pass_original=True, skip_on_field_errors=False)
    def _is_a_series(self, data: dict[str, Any], original: Any, **_: object) -> None:
        if data.get("repeat") is None:
            return
        if excluded := [name for name in ALONE if original.get(name) is not None]:
            why = "a series has neither holds nor waits, and its leases are shared one by one"
            raise ValidationError({excluded[0]: [f"not together with repeat: {why}"]})
        if len(data.get("name", "")) > repeat_schema.LONGEST_NAME:
            longest = f"Must be a text of 1 to {repeat_schema.LONGEST_NAME} characters: each lease adds its date."
            raise ValidationError({"name": [longest]})


class LeaseQuery(Paged):
    """Conditions for leases to list: all must hold."""

    status = fields.String(validate=validate.OneOf([str(status) for status in LeaseStatus]))
    name = fields.String()
    project_id = fields.String(metadata={"description": "Project other than the caller's (administrator)."})
    starts_before = Moment()
    ends_after = Moment()
    series_id = fields.UUID(metadata={"description": "Series of which the leases are occurrences."})


class LeaseAt(Strict):
    """Query of a single lease."""

    at = Moment()


class PartOut(Schema):
    """Part of a reservation in a child zone or cell."""

    class Meta:
        unknown = RAISE

    zone = fields.String(metadata={"description": "Name of the child zone; absent for a cell."})
    cell = fields.String(metadata={"description": "Path of the cell; absent for a zone."})
    state = fields.String(required=True, validate=validate.OneOf([str(state) for state in PartState]))
    hosts = fields.Integer(required=True)
    lease_id = fields.UUID(required=True, allow_none=True, metadata={"description": "Of the child's lease."})
    reservation_id = fields.UUID(required=True, allow_none=True)


class ReservationOut(Schema):
    """A reservation; its plugin defines further keys."""

    class Meta:
        unknown = "include"

    id = fields.UUID(required=True)
    lease_id = fields.UUID(required=True)
    resource_id = fields.String(required=True, allow_none=True)
    resource_type = fields.String(required=True)
    status = fields.String(required=True, validate=validate.OneOf([str(status) for status in ReservationStatus]))
    missing_resources = fields.Boolean(required=True)
    resources_changed = fields.Boolean(required=True)
    held_hosts = fields.Integer(metadata={"description": "Held hosts; only while the lease is HELD."})
    preemption_at = out_date(
        required=False,
        metadata={"description": "Time at which a preemptible reservation loses hosts; only if some are to be taken."},
    )
    parts = fields.List(
        fields.Nested(PartOut),
        metadata={"description": "Parts in child zones and cells; absent without any."},
    )
    created_at = out_stamp()
    updated_at = out_stamp(allow_none=True)


class EventOut(Schema):
    class Meta:
        unknown = RAISE

    id = fields.UUID(required=True)
    lease_id = fields.UUID(required=True)
    event_type = fields.String(required=True)
    time = out_date()
    status = fields.String(required=True, validate=validate.OneOf([str(status) for status in EventStatus]))
    created_at = out_stamp()
    updated_at = out_stamp(allow_none=True)


class WaitingOut(Schema):
    """Place of a lease in the waiting list."""

    class Meta:
        unknown = RAISE

    until = out_date(metadata={"description": "End of the wait."})
    place = fields.Integer(metadata={"description": "From 1 on; absent in a lease as it was."})
    estimate = out_date(
        required=False,
        allow_none=True,
        metadata={
            "description": "Start at which it would get its resources as things stand now, never after its wait; absent"
            " in lists."
        },
    )
    reason = fields.String(metadata={"description": "Reason why there is no estimate; otherwise absent."})
    fits_from = out_date(
        required=False,
        metadata={"description": "First start at which it would fit, if that is too late for the lease."},
    )


class SharingOut(Schema):
    class Meta:
        unknown = RAISE

    projects = fields.List(fields.String(), required=True)
    viewers = fields.List(fields.String(), required=True)
    extenders = fields.List(fields.String(), required=True)


class ParentOut(Schema):
    """Lease of which a sub-lease has its hosts."""

    class Meta:
        unknown = RAISE

    lease_id = fields.UUID(required=True)
    project_id = fields.String(required=True)


class SubleaseOut(Schema):
    class Meta:
        unknown = RAISE

    id = fields.UUID(required=True)
    hosts = fields.Integer(required=True)


class LeaseOut(Schema):
    """A lease with its reservations and events."""

    class Meta:
        unknown = RAISE

    id = fields.UUID(required=True)
    name = fields.String(required=True)
    user_id = fields.String(required=True)
    project_id = fields.String(required=True)
    start_date = out_date()
    end_date = out_date()
    trust_id = fields.String(required=True, allow_none=True)
    status = fields.String(required=True, validate=validate.OneOf([str(status) for status in LeaseStatus]))
    status_reason = fields.String(
        metadata={"description": "Reason why the state differs from what the dates imply; otherwise absent."}
    )
    hold_until = out_date(required=False, metadata={"description": "Expiry of the hold; only while the lease is HELD."})
    waiting = fields.Nested(WaitingOut, metadata={"description": "Only while the lease is in the waiting list."})
    degraded = fields.Boolean(required=True)
    series_id = fields.UUID(metadata={"description": "Series of which it is an occurrence; otherwise absent."})
    sharing = fields.Nested(
        SharingOut,
        metadata={
            "description": "Further projects and users; absent for a lease that is not shared."
            " Others than owners see themselves only."
        },
    )
    parent = fields.Nested(ParentOut, metadata={"description": "Only of a sub-lease."})
    subleases = fields.List(
        fields.Nested(SubleaseOut),
        metadata={"description": "Sub-leases that have, or will have, hosts of the lease; absent without any."},
    )
    created_at = out_stamp()
    updated_at = out_stamp(allow_none=True)
    reservations = fields.List(fields.Nested(ReservationOut), required=True)
    events = fields.List(fields.Nested(EventOut), required=True)


FIXED = frozenset(ReservationOut().fields) - {"id", "resource_id", "resource_type"}
"""Keys of a reservation in answers that no request has."""


def _reservations(body: dict[str, object]) -> list[dict[str, object]]:
    """Return the reservations of a body that was not validated; none if they are no list of objects."""
    given = body.get("reservations")
    return given if isinstance(given, list) and all(isinstance(one, dict) for one in given) else []


class LeaseChanges(Update, Strict):
    """Changes of a lease; absent keys keep their values."""

    answer_key = "lease"
    answer_schema = LeaseOut
    may_be_empty = True

    name = name_field()
    start_date = Moment(now=True)
    end_date = Moment(now=True)
    before_end_date = Moment(allow_none=True)
    reservations = fields.List(AskedChange(), validate=validate.Length(max=MOST_PARTS))
    sharing = fields.Nested(
        SharingBody, allow_none=True, metadata={"description": "All further projects and users; null for none."}
    )

    def repeats(self, given: dict[str, object]) -> bool:
        """Return whether a body, or one of its reservations, has read-only keys."""
        return super().repeats(given) or any(not FIXED.isdisjoint(one) for one in _reservations(given))

    def changes(self, given: dict[str, Any], shown: dict[str, Any]) -> dict[str, Any]:
        """Return the changes, and in each reservation the changed keys with its id."""
        rest = super().changes(given, shown)
        changed = _reservations(rest)
        if not changed:
            return rest
        own = {one["id"]: one for one in shown["reservations"]}
        parts = [self._part(one, own.get(str(one.get("id")).lower())) for one in changed]
        parts = [part for part in parts if part]
        others = {key: value for key, value in rest.items() if key != "reservations"}
        return {**others, "reservations": parts} if parts else others

    def _part(self, given: dict[str, object], shown: dict[str, Any] | None) -> dict[str, object]:
        """Return the changes of a reservation with its id; nothing if there are none."""
        if shown is None or FIXED.isdisjoint(given):
            return given
        plugin = climate().plugins[shown["resource_type"]]
        fixed = (FIXED | shown.keys()) - change_schema(plugin).fields.keys()
        rest = differing(given, shown, frozenset(fixed), f" of reservation {shown['id']}")
        return {**rest, "id": shown["id"]} if rest else {}


class LinkOut(Schema):
    rel = fields.String(required=True)
    href = fields.String(required=True)


class LeaseAnswer(Schema):
    lease = fields.Nested(LeaseOut, required=True)


class LeasesAnswer(Schema):
    leases = fields.List(fields.Nested(LeaseOut), required=True)
    leases_links = fields.List(
        fields.Nested(LinkOut), metadata={"description": "Link to the next page, if there is one."}
    )


class EntryOut(Schema):
    """An entry of the history of a lease."""

    class Meta:
        unknown = RAISE

    version = fields.Integer(required=True)
    kind = fields.String(required=True)
    at = out_date()
    actor = fields.Dict(required=True)
    request_id = fields.String(required=True)
    body = fields.Dict(required=True)


class HistoryAnswer(Schema):
    history = fields.List(fields.Nested(EntryOut), required=True)


class LeaseHostOut(Schema):
    """A host of a lease."""

    class Meta:
        unknown = RAISE

    name = fields.String(required=True)
    reservation_id = fields.UUID(required=True)
    properties = fields.Dict(required=True)
    servers = fields.List(fields.Dict(), required=True, allow_none=True)


class LeaseHostsAnswer(Schema):
    hosts = fields.List(fields.Nested(LeaseHostOut), required=True)


EXAMPLE = {
    "name": "training run",
    "start_date": "2030-01-31 09:00",
    "end_date": "2030-01-31T17:00:00+01:00",
    "reservations": [
        {
            "resource_type": "physical:host",
            "min": 1,
            "max": 2,
            "hypervisor_properties": '[">=", "$vcpus", "4"]',
            "resource_properties": '["in", "$gpu", ["a100", "h100"]]',
        }
    ],
}
"""Example request with all forms."""
