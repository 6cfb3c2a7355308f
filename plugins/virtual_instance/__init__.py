"""virtual:instance: a server that sleeps until its lease starts, or capacity for servers of one size."""

from collections.abc import Mapping

from sqlalchemy import Connection

from climate.cloud import Cloud
from climate.domain.availability.demands import Demand, Horizon
from climate.domain.errors import Conflict
from climate.plugin import Allocation, Offer, ReservationContext, ResourceRequest
from plugins.virtual_instance.new_servers import RoomForServers
from plugins.virtual_instance.reserved_server import SleepingServer
from plugins.virtual_instance.spec import ROOM, InstanceSpec

Form = RoomForServers | SleepingServer


class VirtualInstance:
    """A server by its id that is woken at the start, or capacity for new servers of one size."""

    resource_type = "virtual:instance"
    spec_schema = InstanceSpec

    def __init__(self) -> None:
        self._room, self._sleeping = RoomForServers(), SleepingServer()

    def check(self, cloud: Cloud, request: ResourceRequest) -> Mapping[str, object] | None:
        return self._form(request.spec).check(cloud, request)

    def reserve(self, conn: Connection, request: ResourceRequest) -> Allocation:
        form = self._form(request.present.spec if request.present else request.spec)
        if request.present and form is self._sleeping and (other := sorted(ROOM & set(request.spec))):
            raise Conflict(f"{other[0]} cannot be updated")
        return form.reserve(conn, request)

    def offer(self, conn: Connection, request: ResourceRequest) -> Offer | None:
        """Return the hosts with room; None for a server by its id, which takes nothing of others."""
        form = self._form(request.present.spec if request.present else request.spec)
        return form.offer(conn, request) if isinstance(form, RoomForServers) else None

    def demand(self, conn: Connection, request: ResourceRequest, horizon: Horizon) -> Demand | None:
        return self._form(request.spec).demand(conn, request, horizon)

    def on_start(self, cloud: Cloud, context: ReservationContext) -> None:
        self._form(context.reservation.spec).on_start(cloud, context)

    def before_end(self, cloud: Cloud, context: ReservationContext) -> None:
        self._form(context.reservation.spec).before_end(cloud, context)

    def close(self, cloud: Cloud, context: ReservationContext) -> None:
        self._form(context.reservation.spec).close(cloud, context)

    def on_end(self, cloud: Cloud, context: ReservationContext) -> None:
        self._form(context.reservation.spec).on_end(cloud, context)

    def _form(self, spec: Mapping[str, object]) -> Form:
        return self._room if "amount" in spec else self._sleeping
