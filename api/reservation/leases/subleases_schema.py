"""Schemas of sub-leases."""

from typing import Any

from marshmallow import Schema, ValidationError, fields, validate, validates_schema

from api.reservation.dates import NOW, Moment
from api.reservation.leases.schema import LeaseOut, name_field
from api.reservation.view_decorator import Strict
from climate.domain.hosts.pools import DeadlineAction, OnEnd
from climate.domain.sharing.sharing import ACCOUNT_ID
from climate.plugin.schema_fields import grace_period

MOST_HOSTS = 1000
LONGEST_HOST_NAME = 255

TERMS = ("on_end", "grace_period", "recycle_deadline", "before_end")
"""Fields that the reservation of the sub-lease has."""


def _account(what: str, **more: Any) -> fields.String:
    known = validate.Regexp(f"^{ACCOUNT_ID}\\Z", error="Must be the id of a project or user.")
    return fields.String(validate=known, metadata={"description": what}, **more)


class SubleaseBody(Strict):
    """A new sub-lease. Its hosts are a number as `hosts`, or names as `host_names`."""

    name = name_field(required=True)
    project_id = _account("Project that gets the hosts.", required=True)
    user_id = _account("User to whom the sub-lease belongs; defaults to the caller.", load_default="")
    start_date = Moment(now=True, load_default=NOW)
    end_date = Moment(required=True)
    before_end_date = Moment(allow_none=True, load_default=None)
    hosts = fields.Integer(
        strict=True,
        load_default=0,
        validate=validate.Range(1, MOST_HOSTS),
        metadata={"description": "Number of hosts; those without servers are chosen first."},
    )
    host_names = fields.List(
        fields.String(validate=validate.Length(1, LONGEST_HOST_NAME)),
        load_default=list,
        validate=validate.Length(1, MOST_HOSTS),
        metadata={"description": "Names of the hosts, as `GET /leases/{lease_id}/hosts` shows them."},
    )
    reservation_id = fields.UUID(
        allow_none=True,
        load_default=None,
        metadata={"description": "Reservation with the hosts; needed if several reservations have whole hosts."},
    )
    on_end = fields.String(validate=validate.OneOf([str(policy) for policy in OnEnd]))
    grace_period = grace_period()
    recycle_deadline = fields.String(validate=validate.OneOf([str(policy) for policy in DeadlineAction]))
    before_end = fields.String(metadata={"description": "Action at before_end_lease, as in a reservation."})

    @validates_schema(skip_on_field_errors=True)
    def _number_or_names(self, data: dict[str, Any], **_: object) -> None:
        if bool(data["hosts"]) == bool(data["host_names"]):
            raise ValidationError({"hosts": ["give either a number as hosts, or names as host_names"]})
        if len(set(data["host_names"])) < len(data["host_names"]):
            raise ValidationError({"host_names": ["Must name each host once."]})


class SubleasesAnswer(Schema):
    subleases = fields.List(fields.Nested(LeaseOut), required=True)


EXAMPLE = {
    "name": "course",
    "project_id": "4f2a8a1e0c8d4c7f9a54f7f3a3b1c1d2",
    "start_date": "2030-01-31 09:00",
    "end_date": "2030-01-31 12:00",
    "hosts": 2,
}
"""Example request."""
