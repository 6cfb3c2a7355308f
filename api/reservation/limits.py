"""Limits of projects and their usage."""

import re

from flask.typing import ResponseReturnValue
from marshmallow import RAISE, Schema, ValidationError, fields, validate, validates_schema

from api.openapi import Blueprint
from api.request_context import caller, climate
from api.reservation.leases.lease_view import entry_body
from api.reservation.leases.request_options import DryRun
from api.reservation.leases.schema import HistoryAnswer, LeaseAt
from api.reservation.unchanged_fields import Update, differing
from api.reservation.view_decorator import PREFIX, Operation, Read, Strict, nothing, serve
from climate.domain.errors import InvalidInput, NotFound
from climate.domain.limits import NO_LIMIT, SAYS, Limit
from climate.service.admission import limits
from climate.service.admission.limits import LimitUsage
from climate.store.limits import DEFAULT

EVERYBODY = "default"
"""Name for all projects without their own limit."""

MOST = 10**9
PROJECT = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,63}", re.ASCII)

blueprint = Blueprint("limits", __name__, url_prefix=PREFIX, description="Limits of projects and their usage.")


class LimitQuery(LeaseAt):
    everyones = fields.Boolean(
        data_key="all",
        load_default=False,
        metadata={"description": "Include the limits of all projects (administrator)."},
    )


def _bound(limit: Limit) -> fields.Integer:
    says = f"{SAYS[limit]}; {NO_LIMIT}: no limit; null: as for all projects".capitalize()
    return fields.Integer(
        strict=True, allow_none=True, validate=validate.Range(NO_LIMIT, MOST), metadata={"description": says}
    )


class LimitOut(Schema):
    class Meta:
        unknown = RAISE

    name = fields.String(required=True, validate=validate.OneOf([str(limit) for limit in Limit]))
    value = fields.Integer(required=True, allow_none=True, metadata={"description": "null or -1: no limit."})
    project_id = fields.String(
        required=True, allow_none=True, metadata={"description": f"Project of the limit; {EVERYBODY}: all projects."}
    )
    used = fields.Float(
        required=True, allow_none=True, metadata={"description": "Maximum over all leases from now on."}
    )
    says = fields.String(required=True)


class LimitChanges(Update, Strict):
    """Limits to set; absent ones keep their values."""

    answer_key = "limits"
    answer_schema = LimitOut

    max_lease_seconds = _bound(Limit.MAX_LEASE_SECONDS)
    max_lead_seconds = _bound(Limit.MAX_LEAD_SECONDS)
    leases = _bound(Limit.LEASES)
    held_leases = _bound(Limit.HELD_LEASES)
    waiting_leases = _bound(Limit.WAITING_LEASES)
    hosts_at_once = _bound(Limit.HOSTS_AT_ONCE)
    preemptible_hosts_at_once = _bound(Limit.PREEMPTIBLE_HOSTS_AT_ONCE)
    slots_at_once = _bound(Limit.SLOTS_AT_ONCE)
    floating_ips_at_once = _bound(Limit.FLOATING_IPS_AT_ONCE)
    storage_gb_at_once = _bound(Limit.STORAGE_GB_AT_ONCE)
    host_hours = _bound(Limit.HOST_HOURS)

    @validates_schema(pass_original=True)
    def _something(self, data: Read, original: Read, **_: object) -> None:
        if not original:
            raise ValidationError(f"No limit is given; known are {', '.join(Limit)}")

    def unwrapped(self, data: Read) -> Read:
        """Return the limits by name if a body has the list of the answer, else the body."""
        listed = data.get("limits")
        if set(data) != {"limits"} or not isinstance(listed, list):
            return data
        if not all(isinstance(one, dict) and isinstance(one.get("name"), str) for one in listed):
            return data
        return {one["name"]: one for one in listed}

    def repeats(self, given: Read) -> bool:
        """Return False: only the list of the answer has read-only keys."""
        return False

    def changes(self, given: Read, shown: list[Read]) -> Read:
        """Return the values that differ from those `shown`; a name that is not shown stays, to be refused."""
        known = {one["name"]: one for one in shown}
        fixed = frozenset(LimitOut().fields) - {"value"}
        rest = {
            name: differing(one, known[name], fixed, f" of {name}") if name in known else {"value": None}
            for name, one in given.items()
        }
        return {name: one["value"] for name, one in rest.items() if "value" in one}


class LimitsAnswer(Schema):
    limits = fields.List(fields.Nested(LimitOut), required=True)


@serve(blueprint, "GET", "/limits", Operation("limits:get", {200: LimitsAnswer}, query=LimitQuery))
def list_limits(query: Read) -> ResponseReturnValue:
    """List the limits of the caller's project with their usage; with `at`, as they were at that time."""
    if query["everyones"] and "at" in query:
        raise InvalidInput("all and at exclude each other; list the history of each project")
    if query["everyones"]:
        return _answer(limits.everyones(climate(), caller()))
    if "at" in query:
        return _answer(limits.at(climate(), caller(), query["at"]))
    return _answer(limits.of(climate(), caller()))


@serve(
    blueprint,
    "GET",
    "/limits/<limited_project>",
    Operation("limits:all", {200: LimitsAnswer}, query=LeaseAt, refuses=(404,)),
)
def show_limits(limited_project: str, query: Read) -> ResponseReturnValue:
    """Show the limits of a project, or of `default`, as they are or as they were."""
    if "at" in query:
        return _answer(limits.at(climate(), caller(), query["at"], _project(limited_project)))
    return _limits_now(limited_project)


def _limits_now(limited_project: str) -> Read:
    return _answer(limits.of(climate(), caller(), _project(limited_project)))


@serve(
    blueprint,
    "GET",
    "/limits/<limited_project>/history",
    Operation("limits:all", {200: HistoryAnswer}, refuses=(404,)),
)
def limits_history(limited_project: str, query: Read) -> ResponseReturnValue:
    """List the changes of limits of a project, or of `default`, with their authors."""
    return {"history": [entry_body(one) for one in limits.history(climate(), caller(), _project(limited_project))]}


@serve(
    blueprint,
    "PUT",
    "/limits/<limited_project>",
    Operation(
        "limits:put",
        {200: LimitsAnswer},
        query=DryRun,
        body=LimitChanges,
        refuses=(404,),
        example={"leases": 10, "hosts_at_once": 16, "host_hours": None},
        shows=_limits_now,
    ),
)
def set_limits(limited_project: str, query: Read, body: Read) -> ResponseReturnValue:
    """Set limits of a project, or of `default`.

    Existing leases beyond them stay unchanged.
    """
    values = {Limit(name): value for name, value in body.items()}
    changed = limits.put(climate(), caller(), _project(limited_project), values, dry_run=query["dry_run"])
    return _answer(changed)


@serve(
    blueprint,
    "DELETE",
    "/limits/<limited_project>",
    Operation("limits:delete", {204: None}, query=DryRun, refuses=(404,)),
)
def unset_limits(limited_project: str, query: Read) -> ResponseReturnValue:
    """Delete all limits of a project, or of `default`."""
    limits.drop(climate(), caller(), _project(limited_project), dry_run=query["dry_run"])
    return nothing()


def _project(text: str) -> str:
    if not PROJECT.fullmatch(text):
        raise NotFound(f"Object with {{'project_id': '{text[:80]}'}} not found")
    return DEFAULT if text == EVERYBODY else text


def _answer(standings: list[LimitUsage]) -> Read:
    return {"limits": [_body(standing) for standing in standings]}


def _body(one: LimitUsage) -> dict[str, object]:
    return {
        "name": str(one.limit),
        "value": one.value,
        "project_id": EVERYBODY if one.project_id == DEFAULT else one.project_id,
        "used": one.used,
        "says": one.says,
    }
