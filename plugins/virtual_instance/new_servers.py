"""Capacity for new servers of one size on hosts of the reservation pool."""

from dataclasses import replace

from sqlalchemy import Connection

from climate.cloud import HostPools, SharedCapacity
from climate.domain.availability.demands import Horizon, SharedDemand
from climate.domain.errors import Conflict, InvalidInput
from climate.domain.hosts import requirements
from climate.domain.hosts.requirements import Requirement
from climate.plugin import Allocation, Offer, ReservationContext, ResourceRequest, shared_capacity
from climate.plugin.shared_capacity import TERMINATE, ServersAndCapacity
from climate.store.allocation import requirements_sql
from climate.store.hosts import hosts

OPEN = frozenset({"amount", "grace_period"})
"""Fields that can be changed while the reservation is in use; the amount can only grow."""


class RoomForServers:
    """Slots of a size, used through a flavor of their own."""

    def check(self, cloud: object, request: ResourceRequest) -> None:
        """Do nothing: the reservation pool is in the database."""

    def reserve(self, conn: Connection, request: ResourceRequest) -> Allocation:
        request = self._checked(request)
        return shared_capacity.reserve(conn, request, self._requirement(conn, request))

    def offer(self, conn: Connection, request: ResourceRequest) -> Offer:
        request = self._checked(request)
        return shared_capacity.offer(request, self._requirement(conn, request))

    def _checked(self, request: ResourceRequest) -> ResourceRequest:
        """Return the request with all its fields. Raise an error for changes that are not possible."""
        request = replace(request, spec={"affinity": None, "resource_properties": "", **request.spec})
        if "resource_id" in request.spec:
            raise Conflict("resource_id cannot be updated")
        if request.spec.get("on_end", TERMINATE) != TERMINATE:
            raise InvalidInput(f"on_end can only be {TERMINATE}: servers on shared hosts are always terminated")
        if request.active:
            shared_capacity.refuse_changes(request, OPEN)
            if request.present and request.spec["amount"] < request.present.spec["amount"]:
                raise Conflict("amount cannot be updated: it can only grow once the lease has started")
        return request

    def demand(self, conn: Connection, request: ResourceRequest, horizon: Horizon) -> SharedDemand:
        request = replace(request, spec={"affinity": None, "resource_properties": "", **request.spec})
        return shared_capacity.demand(conn, request, horizon, self._requirement(conn, request))

    def on_start(self, cloud: SharedCapacity, context: ReservationContext) -> None:
        shared_capacity.share_hosts(cloud, context, shared_capacity.size_of(context.reservation.spec))

    def before_end(self, cloud: object, context: ReservationContext) -> None:
        """Do nothing: such reservations have no actions before the end."""

    def close(self, cloud: HostPools, context: ReservationContext) -> None:
        cloud.close(str(context.reservation.id), context.token)

    def on_end(self, cloud: ServersAndCapacity, context: ReservationContext) -> None:
        shared_capacity.take_back(cloud, context)

    def _requirement(self, conn: Connection, request: ResourceRequest) -> Requirement:
        text = request.spec.get("resource_properties")
        requirement = requirements.parse(text)
        granted = request.present is not None and text == request.present.spec.get("resource_properties")
        if not granted and requirements.keys(requirement) - set(hosts.COLUMNS):
            requirements_sql.refuse_unknown(requirement, hosts.property_names(conn, private=request.caller.is_admin))
        return requirement
