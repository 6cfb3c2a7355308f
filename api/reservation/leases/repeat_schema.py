"""Schema of the recurrence of a lease."""

from marshmallow import fields, validate

from api.reservation.view_decorator import Strict
from climate.domain.planning.series import Make

LONGEST_NAME = 64
"""Characters of the name of a series; with the date and time of an occurrence, a lease has up to 80."""

LONGEST_RULE = 500


class AskedRepeat(Strict):
    """Recurrence of a lease."""

    rule = fields.String(
        required=True,
        validate=validate.Length(1, LONGEST_RULE),
        metadata={"description": "RRULE of RFC 5545 with COUNT or UNTIL: FREQ=WEEKLY;BYDAY=TU;COUNT=10."},
    )
    zone = fields.String(
        load_default="UTC",
        validate=validate.Length(1, 60),
        metadata={"description": "Time zone of the rule by its IANA name: Europe/Berlin."},
    )
    make = fields.String(
        load_default=str(Make.ALL),
        validate=validate.OneOf([str(one) for one in Make]),
        metadata={"description": "Create all occurrences or none, or those that fit."},
    )
