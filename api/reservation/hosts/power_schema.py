"""Schemas of power settings and power state of hosts."""

from collections.abc import Mapping
from typing import Any

from marshmallow import RAISE, Schema, fields, validate

from api.reservation.dates import DATE, Moment, out_date, out_stamp
from api.reservation.hosts.schema import StrictBoolean
from api.reservation.leases.request_options import DryRun
from api.reservation.leases.schema import LinkOut
from api.reservation.unchanged_fields import Update, differing
from api.reservation.view_decorator import Strict
from climate.domain.errors import InvalidInput
from climate.domain.hosts.pools import Pool

MOST_WATTS = 100_000


class DriverName(fields.String):
    """One of the installed drivers; the document lists them."""


class DriverSettings(fields.Dict):
    """Settings that the driver's own schema accepts; the document lists those."""


class Clearing(DryRun):
    force = fields.Boolean(load_default=False, metadata={"description": "Also while it is off."})


class SwitchingOn(DryRun):
    force = fields.Boolean(load_default=False, metadata={"description": "Also while it is being powered off."})


class SwitchingOff(DryRun):
    hard = fields.Boolean(load_default=False, metadata={"description": "Cut the power instead of a soft power off."})
    force = fields.Boolean(load_default=False, metadata={"description": "Also while it is in use or needed soon."})


class ReportQuery(Strict):
    start = Moment(data_key="from")
    end = Moment(data_key="to")


class PowerOut(Schema):
    class Meta:
        unknown = RAISE

    id = fields.String(required=True, validate=validate.Regexp("^[0-9]+$"))
    name = fields.String(required=True)
    pool = fields.String(required=True, validate=validate.OneOf([str(pool) for pool in Pool]))
    driver = fields.String(required=True)
    settings = fields.Dict(required=True)
    secrets = fields.List(
        fields.String(), required=True, metadata={"description": "Names of settings with hidden values."}
    )
    watts = fields.Integer(required=True, allow_none=True)
    on = StrictBoolean(
        required=True, metadata={"description": "Whether it was up at the last check, also in the cloud."}
    )
    wanted = fields.String(required=True, allow_none=True, validate=validate.OneOf(["on", "off"]))
    wanted_at = fields.String(required=True, allow_none=True, validate=validate.Regexp(DATE))
    state = fields.String(required=True, validate=validate.OneOf(["on", "off", "unknown"]))
    seen_at = fields.String(required=True, allow_none=True, validate=validate.Regexp(DATE))
    changed_at = fields.String(required=True, allow_none=True, validate=validate.Regexp(DATE))
    failures = fields.Integer(required=True)
    error = fields.String(required=True)
    created_at = out_stamp()
    updated_at = out_stamp(allow_none=True)


class PowerOrder(Update, Strict):
    """All power settings of a host; absent ones are deleted."""

    answer_key = "power"
    answer_schema = PowerOut
    replaces = True

    driver = DriverName(required=True)
    settings = DriverSettings(
        keys=fields.String(), load_default=dict, metadata={"description": "Passwords are never shown."}
    )
    watts = fields.Integer(
        strict=True,
        load_default=None,
        allow_none=True,
        validate=validate.Range(0, MOST_WATTS),
        metadata={"description": "Idle power of the host in watts, for the report."},
    )

    def changes(self, given: Mapping[str, Any], shown: Mapping[str, Any]) -> dict[str, object]:
        """Return what differs; InvalidInput if a replacement would delete secrets, which the answer does not show."""
        rest = differing(given, shown, self.read_only())
        settings = given.get("settings")
        hidden = sorted(set(shown["secrets"]) - set(settings if isinstance(settings, dict) else ()))
        if rest and hidden and "secrets" in given:
            raise InvalidInput(
                f"settings lack {', '.join(hidden)}, which the answer of GET does not show: add them, "
                "or leave `secrets` out of the body to delete them"
            )
        return rest


class PowerAnswer(Schema):
    power = fields.Nested(PowerOut, required=True)


class PowersAnswer(Schema):
    power = fields.List(fields.Nested(PowerOut), required=True)
    power_links = fields.List(fields.Nested(LinkOut))


class HoursOut(Schema):
    class Meta:
        unknown = RAISE

    id = fields.String(required=True)
    name = fields.String(required=True)
    hours_off = fields.Float(required=True)


class ReportOut(Schema):
    class Meta:
        unknown = RAISE

    start = out_date(data_key="from")
    end = out_date(data_key="to")
    hours_off = fields.Float(required=True)
    kwh = fields.Float(
        required=True, allow_none=True, metadata={"description": "Of hosts with known watts; null: no host has any."}
    )
    hosts = fields.List(fields.Nested(HoursOut), required=True)


class ReportAnswer(Schema):
    report = fields.Nested(ReportOut, required=True)
