"""physical:host: whole hosts, lent as a pool of their own and taken back at the end."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Protocol

from marshmallow import Schema, fields, validate, validates_schema
from sqlalchemy import Connection

from climate.cloud import (
    IMAGEABLE,
    CloudError,
    CloudServer,
    HostPools,
    InUse,
    LendsTogether,
    Loan,
    NotYet,
    Return,
    Servers,
    TakesBackTogether,
    Trouble,
)
from climate.domain.availability.demands import Horizon, WholeDemand
from climate.domain.errors import Conflict, InvalidInput
from climate.domain.facts import Hold
from climate.domain.hosts import requirements
from climate.domain.hosts.pools import DeadlineAction, OnEnd, Pool
from climate.domain.hosts.requirements import AllOf, Requirement
from climate.domain.lease import Reservation
from climate.domain.planning.preemption import is_preemptible
from climate.domain.reservation_spec import Spec
from climate.plugin import CLOUD_POOLS, HOSTS, TERMS, Allocation, Offer, ReservationContext, ResourceRequest
from climate.plugin.schema_fields import Count, grace_period, is_cell, is_requirement
from climate.store import locks
from climate.store.allocation import candidates, free_times, requirements_sql
from climate.store.allocation import hosts as availability
from climate.store.allocation.hosts import HostRequest, Short
from climate.store.hosts import hosts

MOST_HOSTS = 10_000
IMAGE_PREFIX = "reserved_"
BEFORE_END = ("", "default", "email", "notify", "snapshot")
"""Actions at before_end_lease; "email" is Blazar's word for a notification, which is sent in any case."""

CHOOSING = ("min", "max", "hypervisor_properties", "resource_properties")
"""Fields that choose the hosts; the others are about their use."""

MAX_BELOW_MIN = "Invalid values for min/max of hosts. Max must be equal to or larger than min."


class HostSpec(Schema):
    """Number of hosts, and their requirements."""

    min = Count(
        required=True, validate=validate.Range(1, MOST_HOSTS), metadata={"description": "Minimum number of hosts."}
    )
    max = Count(
        required=True, validate=validate.Range(1, MOST_HOSTS), metadata={"description": "Maximum number of hosts."}
    )
    hypervisor_properties = fields.String(load_default="", validate=is_requirement)
    resource_properties = fields.String(load_default="", validate=is_requirement)
    zone = fields.String(
        validate=validate.Length(1, 255),
        metadata={"description": "Name of the zone of all hosts: this zone or a child zone."},
    )
    cell = fields.String(
        validate=is_cell,
        metadata={"description": "Name or path of the cell of all hosts: this cell or one below it."},
    )
    across = fields.Boolean(
        truthy={True},
        falsy={False},
        metadata={"description": "Allow hosts in several zones or cells; otherwise all are in one."},
    )
    before_end = fields.String(load_default="default", validate=validate.OneOf(BEFORE_END))
    on_end = fields.String(
        validate=validate.OneOf([str(policy) for policy in OnEnd]),
        metadata={"description": "Action for servers at the end; defaults to the reservation pool's setting."},
    )
    grace_period = grace_period()
    preemptible = fields.Boolean(
        truthy={True},
        falsy={False},
        metadata={"description": "Hosts that nobody was promised: they are taken when an ordinary lease needs them."},
    )
    recycle_deadline = fields.String(
        validate=validate.OneOf([str(policy) for policy in DeadlineAction]),
        metadata={
            "description": "Servers on a recycling host whose next lease is about to start are terminated or moved."
        },
    )

    @validates_schema(skip_on_field_errors=True)
    def _max_not_below_min(self, data: Spec, **_: object) -> None:
        if "min" in data and "max" in data and data["max"] < data["min"]:
            raise InvalidInput(MAX_BELOW_MIN)

    @validates_schema(skip_on_field_errors=True)
    def _preemptible_here(self, data: Spec, **_: object) -> None:
        elsewhere = [name for name in ("zone", "cell", "across") if data.get(name)]
        if data.get("preemptible") and elsewhere:
            raise InvalidInput(
                f"preemptible and {elsewhere[0]} cannot both be given: preemptible hosts lie in this deployment"
            )

    @validates_schema(skip_on_field_errors=True)
    def _zone_or_cell(self, data: Spec, **_: object) -> None:
        if "zone" in data and "cell" in data:
            raise InvalidInput("zone and cell cannot both be given: a reservation names one of them")


def _texts(spec: Spec) -> tuple[str | None, str | None]:
    return spec.get("hypervisor_properties"), spec.get("resource_properties")


def _same_hosts(request: ResourceRequest, present: Reservation) -> tuple[Hold, ...]:
    """Return the same hosts, if the update changes neither their choice nor the period."""
    same = all(request.spec.get(name) == present.spec.get(name) for name in CHOOSING)
    same = same and request.spec != present.spec
    inside = all(h.during.start <= request.window.start and request.window.end <= h.during.end for h in present.holds)
    free = not set(present.hosts) & set(request.taken)
    return tuple(Hold(host, request.window) for host in present.hosts) if same and inside and free else ()


def _takes_snapshots(context: ReservationContext) -> bool:
    """Return whether the servers of a lease are saved as images ahead of its end."""
    return context.reservation.spec.get("before_end") == "snapshot"


def _imaged(cloud: Servers, server: CloudServer, token: int) -> bool:
    try:
        cloud.snapshot(server.id, f"{IMAGE_PREFIX}{server.name}", token)
    except NotYet:
        return False
    return True


def _deletion_error(cloud: Servers, server: CloudServer, token: int) -> CloudError | None:
    """Return the error of the cloud for the deletion of a server, so that others are still deleted."""
    try:
        cloud.delete_server(server.id, token)
    except CloudError as error:
        return error
    return None


def _with_terms(request: ResourceRequest) -> ResourceRequest:
    """Return the request with all its terms.

    Raise InvalidInput for terms that the operator does not allow owners to set.
    """
    before = request.present.spec if request.present else {}
    chosen = {
        name: request.spec[name] for name in TERMS if name in request.spec and request.spec[name] != before.get(name)
    }
    usual = {"on_end": request.settings.host_on_end, "grace_period": 0, **request.terms}
    allowed = {usual["on_end"], *(word.strip() for word in request.settings.host_on_end_choices.split(","))} - {""}
    if not request.caller.is_admin and chosen.get("on_end", usual["on_end"]) not in allowed:
        raise InvalidInput(f"on_end may be {', '.join(sorted(allowed))} here, not {chosen['on_end']}")
    longest = max(request.settings.max_grace_period, usual["grace_period"])
    if not request.caller.is_admin and int(chosen.get("grace_period", 0)) > longest:
        raise InvalidInput(f"grace_period may be {longest} seconds at most here, not {chosen['grace_period']}")
    return replace(request, spec={**request.terms, **request.spec})


def _checked(request: ResourceRequest) -> ResourceRequest:
    """Return the request with all its terms. Raise InvalidInput for a maximum below the minimum."""
    request = _with_terms(request)
    if request.present and is_preemptible(request.present.spec) != is_preemptible(request.spec):
        raise InvalidInput("preemptible of a reservation cannot be changed: create another lease")
    if request.spec["max"] < request.spec["min"]:  # an update that gives only one of the two
        raise InvalidInput(MAX_BELOW_MIN)
    return request


def _allocation(request: ResourceRequest, numbers: Sequence[int]) -> Allocation:
    return Allocation(spec=dict(request.spec), holds=tuple(Hold(number, request.window) for number in numbers))


class PoolsWithServers(HostPools, Servers, Protocol):
    """A cloud whose pools are taken back together with the servers on their hosts."""


class PhysicalHost:
    """Hosts of the reservation pool, by number and requirements."""

    resource_type = hosts.HOST_TYPE
    spec_schema = HostSpec

    def check(self, cloud: object, request: ResourceRequest) -> None:
        """Do nothing: the reservation pool is in the database."""

    def pool_metadata(self, spec: Spec) -> Mapping[str, str]:
        return {name: str(spec.get(name) or "") for name in CHOOSING}

    def reserve(self, conn: Connection, request: ResourceRequest) -> Allocation:
        request = _checked(request)
        if request.present and (kept := _same_hosts(request, request.present)):
            return Allocation(spec=dict(request.spec), holds=kept)
        wanted = self._host_request(conn, request)
        return _allocation(request, availability.pick(conn, wanted, patient=request.patient))

    def offer(self, conn: Connection, request: ResourceRequest) -> Offer | None:
        """Return the hosts that match; None if those that it has stay the same in any case."""
        request = _checked(request)
        if request.present and _same_hosts(request, request.present):
            return None
        wanted = self._host_request(conn, request)
        return Offer(
            HOSTS,
            partial(candidates.of_hosts, request=wanted),
            locks.lock_hosts,
            lambda chosen, _: _allocation(request, sorted(chosen)),
            Short(wanted),
            partial(availability.ends, request=wanted),
        )

    def demand(self, conn: Connection, request: ResourceRequest, horizon: Horizon) -> WholeDemand:
        request = _with_terms(request)
        lead = request.settings.power_on_lead if request.settings.idle_off_after else 0
        ready = horizon.now + timedelta(seconds=lead)
        return free_times.of_hosts(conn, self._host_request(conn, request), horizon, request.tail, ready)

    def on_start(self, cloud: HostPools, context: ReservationContext) -> None:
        cloud.lend(str(context.reservation.id), context.project_id, context.hosts, context.token, context.shared_with)

    def on_start_together(
        self, cloud: LendsTogether, contexts: Sequence[ReservationContext]
    ) -> Sequence[Trouble | None]:
        return cloud.lend_together(
            [Loan(str(a.reservation.id), a.project_id, a.hosts, a.token, a.shared_with) for a in contexts]
        )

    def before_end(self, cloud: Servers, context: ReservationContext) -> None:
        if _takes_snapshots(context):
            pool = str(context.reservation.id)
            servers = [server for server in cloud.servers_in(pool) if server.status in IMAGEABLE]
            made = [_imaged(cloud, server, context.token) for server in servers]
            if not all(made):  # the end must not overtake them, because it deletes the servers
                raise NotYet("images are still being created")

    def before_end_together(self, cloud: object, contexts: Sequence[ReservationContext]) -> Sequence[Trouble | None]:
        return [InUse() if _takes_snapshots(each) else None for each in contexts]

    def close(self, cloud: HostPools, context: ReservationContext) -> None:
        cloud.close(str(context.reservation.id), context.token)

    def on_end(self, cloud: PoolsWithServers, context: ReservationContext) -> None:
        """Delete the servers, or move them along with their hosts to the pool `context.after`."""
        pool, to = str(context.reservation.id), CLOUD_POOLS[context.after]
        servers = cloud.servers_in(pool) if context.after in (Pool.RESERVATION, Pool.CLEANING) else ()
        if servers:
            cloud.close(pool, context.token)
            troubles = [error for server in servers if (error := _deletion_error(cloud, server, context.token))]
            if troubles:
                raise troubles[0]
            if cloud.servers_in(pool):
                raise NotYet(f"servers are still being deleted: {len(servers)}")
        if context.after is Pool.MULTI_TENANT:
            for host in context.promised:
                cloud.place(host, CLOUD_POOLS[Pool.RECYCLING], context.token)
        cloud.take_back(pool, context.hosts, context.token, to)

    def on_end_together(
        self, cloud: TakesBackTogether, contexts: Sequence[ReservationContext]
    ) -> Sequence[Trouble | None]:
        return cloud.take_back_together(
            [Return(str(a.reservation.id), a.hosts, a.token, CLOUD_POOLS[a.after]) for a in contexts]
        )

    def _host_request(self, conn: Connection, request: ResourceRequest) -> HostRequest:
        requirement = self._requirement(conn, request)
        present = request.present.hosts if request.present else ()
        wanted = HostRequest(
            requirement=requirement,
            window=request.window,
            least=max(request.spec["min"], len(present) if request.active else 0),
            most=max(request.spec["max"], len(present) if request.active else 0),
            own=request.own,
            keep=(*present, *request.liked),
            must=present if request.active else (),
            without=request.taken,
            soon=request.soon,
            project_id=request.owner,
            at_random=request.settings.randomize_host_selection,
            giving_way=request.giving_way,
            gives_way=is_preemptible(request.spec),
        )
        if request.present and request.active:
            self._refuse_to_shrink(conn, request, wanted)
        return wanted

    def _requirement(self, conn: Connection, request: ResourceRequest) -> Requirement:
        texts = _texts(request.spec)
        requirement = AllOf(tuple(requirements.parse(text) for text in texts))
        granted = request.present is not None and texts == _texts(request.present.spec)
        if not granted and requirements.keys(requirement) - set(hosts.COLUMNS):
            known = hosts.property_names(conn, private=request.caller.is_admin)
            requirements_sql.refuse_unknown(requirement, known)
        return requirement

    def _refuse_to_shrink(self, conn: Connection, ask: ResourceRequest, request: HostRequest) -> None:
        """Raise an error if a started lease would lose hosts: as in Blazar, all of them must be free for longer."""
        present = request.must
        if ask.spec["max"] < len(present):
            raise Short(request)
        conflict = availability.first_conflict(conn, present, request)
        if conflict:
            free_until = conflict - ask.margin
            raise Conflict(
                "Not enough hosts available: a host of this lease is promised to another, "
                f"this one can last until {free_until:%Y-%m-%d %H:%M:%S} UTC at most"
            )
