"""physical:host: whole hosts, lent as a pool of their own and taken back at the end."""

import re
from collections.abc import Mapping
from typing import Any

from marshmallow import Schema, fields, validate, validates_schema
from sqlalchemy import Connection

from climate.cloud import IMAGEABLE, Cloud, CloudServer, NotYet
from climate.domain import requirements
from climate.domain.errors import Conflict, InvalidInput
from climate.domain.facts import Hold
from climate.domain.requirements import AllOf, Requirement
from climate.plugin import Allocation, Ask, Lent
from climate.store import availability, hosts, matching
from climate.store.availability import Short, Wanted

MOST_HOSTS = 10_000
IMAGE_PREFIX = "reserved_"
MAX_BELOW_MIN = "Invalid values for min/max of hosts. Max must be equal to or larger than min."


class Count(fields.Integer):
    """A whole number, also as digits in a text, which is how some clients send it; never a part of one."""

    def _validated(self, value: Any) -> int:
        digits = isinstance(value, str) and re.fullmatch(r"[0-9]{1,9}", value, re.ASCII)
        if digits or (isinstance(value, int) and not isinstance(value, bool)):
            return int(value)
        raise self.make_error("invalid", input=value)


def _is_requirement(text: str) -> None:
    """InvalidRequirements, in words that are the peer's own, for what is none."""
    requirements.parse(text)


class HostSpec(Schema):
    """How many hosts, and what they must be like."""

    min = Count(required=True, validate=validate.Range(1, MOST_HOSTS), metadata={"description": "Least hosts."})
    max = Count(required=True, validate=validate.Range(1, MOST_HOSTS), metadata={"description": "Most hosts."})
    hypervisor_properties = fields.String(load_default="", validate=_is_requirement)
    resource_properties = fields.String(load_default="", validate=_is_requirement)
    before_end = fields.String(load_default="default", validate=validate.OneOf(["", "default", "email", "snapshot"]))

    @validates_schema(skip_on_field_errors=True)
    def _max_not_below_min(self, data: Mapping[str, Any], **_: Any) -> None:
        if "min" in data and "max" in data and data["max"] < data["min"]:
            raise InvalidInput(MAX_BELOW_MIN)


def _texts(spec: Mapping[str, Any]) -> tuple[str | None, str | None]:
    return spec.get("hypervisor_properties"), spec.get("resource_properties")


def _imaged(cloud: Cloud, server: CloudServer, token: int) -> bool:
    try:
        cloud.snapshot(server.id, f"{IMAGE_PREFIX}{server.name}", token)
    except NotYet:
        return False
    return True


class PhysicalHost:
    """Hosts of the reservation pool, by number and requirements."""

    resource_type = hosts.HOST_TYPE
    spec_schema = HostSpec

    def check(self, cloud: Cloud, ask: Ask) -> None:
        """Nothing: the reservation pool is in the database."""

    def reserve(self, conn: Connection, ask: Ask) -> Allocation:
        if ask.spec["max"] < ask.spec["min"]:  # an update that gives only one of the two
            raise InvalidInput(MAX_BELOW_MIN)
        wanted = self._wanted(conn, ask)
        if ask.present and ask.active:
            self._refuse_to_shrink(conn, ask, wanted)
        numbers = availability.pick(conn, wanted, patient=ask.patient)
        return Allocation(spec=dict(ask.spec), holds=tuple(Hold(number, wanted.window) for number in numbers))

    def on_start(self, cloud: Cloud, lent: Lent) -> None:
        cloud.lend(str(lent.reservation.id), lent.project_id, lent.hosts, lent.token)

    def before_end(self, cloud: Cloud, lent: Lent) -> None:
        if lent.reservation.spec.get("before_end") == "snapshot":
            pool = str(lent.reservation.id)
            servers = [server for server in cloud.servers_in(pool) if server.status in IMAGEABLE]
            made = [_imaged(cloud, server, lent.token) for server in servers]
            if not all(made):  # the end must not overtake them: it deletes the servers
                raise NotYet("images are still being made")

    def on_end(self, cloud: Cloud, lent: Lent) -> None:
        pool = str(lent.reservation.id)
        servers = cloud.servers_in(pool)
        if servers:
            cloud.close(pool, lent.token)
            for server in servers:
                cloud.delete_server(server.id, lent.token)
            if cloud.servers_in(pool):
                raise NotYet(f"{len(servers)} servers are still being deleted")
        cloud.take_back(pool, lent.hosts, lent.token)

    def _wanted(self, conn: Connection, ask: Ask) -> Wanted:
        requirement = self._requirement(conn, ask)
        present = ask.present.hosts if ask.present else ()
        return Wanted(
            requirement=requirement,
            window=ask.period.widened(ask.margin),
            least=max(ask.spec["min"], len(present) if ask.active else 0),
            most=max(ask.spec["max"], len(present) if ask.active else 0),
            own=ask.present.id if ask.present else None,
            keep=present,
            must=present if ask.active else (),
            without=ask.taken,
        )

    def _requirement(self, conn: Connection, ask: Ask) -> Requirement:
        texts = _texts(ask.spec)
        requirement = AllOf(tuple(requirements.parse(text) for text in texts))
        granted = ask.present is not None and texts == _texts(ask.present.spec)
        if not granted and requirements.keys(requirement) - set(hosts.COLUMNS):
            known = hosts.property_names(conn, private=ask.caller.is_admin)
            matching.refuse_unknown(requirement, known)
        return requirement

    def _refuse_to_shrink(self, conn: Connection, ask: Ask, wanted: Wanted) -> None:
        """A lease that has started keeps its hosts (reservation.md 1.2 H12): all of them must be free for longer."""
        present = wanted.must
        if ask.spec["max"] < len(present):
            raise Short(wanted)
        conflict = availability.first_conflict(conn, present, wanted)
        if conflict:
            free_until = conflict - ask.margin
            raise Conflict(
                "Not enough hosts available: a host of this lease is promised to another, "
                f"this one can last until {free_until:%Y-%m-%d %H:%M:%S} UTC at most"
            )
