"""Dates in requests, and the two forms of dates in Blazar's answers."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Literal

from marshmallow import fields, validate

from climate.domain.errors import InvalidInput
from climate.service.leases import dates

NOW: Literal["now"] = "now"

DATE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6}$"
READ = (
    r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2} [0-9]{1,2}:[0-9]{1,2}"
    r"|[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?(Z|[+-][0-9]{2}:?[0-9]{2})?"
)
"""Pattern of the dates that `climate.service.leases.dates` reads."""

ZONE = "+00:00"
"""UTC, as Python writes it."""

STAMP = DATE.replace("T", " ")


def date(moment: datetime) -> str:
    """Return `2030-01-31T09:00:00.000000`, in UTC without a zone: Blazar's client reads no other form."""
    return _in_utc(moment).isoformat(timespec="microseconds").removesuffix(ZONE)


def stamp(moment: datetime) -> str:
    """Return `2030-01-31 09:00:00.000000`, the form of `created_at` and `updated_at`."""
    return _in_utc(moment).isoformat(sep=" ", timespec="microseconds").removesuffix(ZONE)


def _in_utc(moment: datetime) -> datetime:
    return moment if moment.tzinfo is UTC else moment.astimezone(UTC)


def maybe(form: Any, moment: datetime | None) -> str | None:
    """Return the date in that form; null stays null."""
    return None if moment is None else str(form(moment))


class Moment(fields.String):
    """A date in Blazar's form or ISO 8601; `now` too if `now` says so.  Becomes a datetime in UTC, or NOW."""

    def __init__(self, *, now: bool = False, **more: Any) -> None:
        described = "UTC `%Y-%m-%d %H:%M`, or ISO 8601 with seconds and zone" + ", or `now`" * now
        pattern = f"^({READ}{'|now' * now})$"
        super().__init__(metadata={"description": described, "pattern": pattern}, **more)
        self.now = now

    def deserialize(
        self, value: object, attr: str | None = None, data: Mapping[str, object] | None = None, **more: object
    ) -> Any:
        """Return the date; like Blazar, null is an invalid date if the field does not allow null."""
        if value is None and not self.allow_none:
            raise self._refusal("null", attr)
        return super().deserialize(value, attr, data, **more)

    def _deserialize(self, value: Any, attr: str | None, data: Mapping[str, object] | None, **more: Any) -> Any:
        if self.now and value == NOW:
            return NOW
        try:
            return dates.read(value)
        except InvalidInput as error:
            raise InvalidInput(f"{error} ({attr})") from None

    def _refusal(self, shown: str, attr: str | None) -> InvalidInput:
        return InvalidInput(f"{shown} is an invalid date. Required format: {dates.PEER} (UTC) ({attr})")


def out_date(**more: Any) -> fields.String:
    """Return a date field of an answer."""
    return fields.String(**{"required": True, "validate": validate.Regexp(DATE), **more})


def out_stamp(**more: Any) -> fields.String:
    """Return a field of an answer for a time of creation or change."""
    return fields.String(required=True, validate=validate.Regexp(STAMP), **more)
