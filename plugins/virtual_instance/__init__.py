"""virtual:instance: a server that sleeps until its lease starts, or capacity for servers of one size."""

from collections.abc import Mapping

from sqlalchemy import Connection

from climate.cloud import Cloud
from climate.domain.availability.demands import Demand, Horizon
from climate.domain.errors import Conflict
from climate.plugin import Allocation, Ask, Lent, Offer
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

    def check(self, cloud: Cloud, ask: Ask) -> Mapping[str, object] | None:
        return self._form(ask.spec).check(cloud, ask)

    def reserve(self, conn: Connection, ask: Ask) -> Allocation:
        form = self._form(ask.present.spec if ask.present else ask.spec)
        if ask.present and form is self._sleeping and (other := sorted(ROOM & set(ask.spec))):
            raise Conflict(f"{other[0]} cannot be updated")
        return form.reserve(conn, ask)

    def offer(self, conn: Connection, ask: Ask) -> Offer | None:
        """Return the hosts with room; None for a server by its id, which takes nothing of others."""
        form = self._form(ask.present.spec if ask.present else ask.spec)
        return form.offer(conn, ask) if isinstance(form, RoomForServers) else None

    def demand(self, conn: Connection, ask: Ask, horizon: Horizon) -> Demand | None:
        return self._form(ask.spec).demand(conn, ask, horizon)

    def on_start(self, cloud: Cloud, lent: Lent) -> None:
        self._form(lent.reservation.spec).on_start(cloud, lent)

    def before_end(self, cloud: Cloud, lent: Lent) -> None:
        self._form(lent.reservation.spec).before_end(cloud, lent)

    def close(self, cloud: Cloud, lent: Lent) -> None:
        self._form(lent.reservation.spec).close(cloud, lent)

    def on_end(self, cloud: Cloud, lent: Lent) -> None:
        self._form(lent.reservation.spec).on_end(cloud, lent)

    def _form(self, spec: Mapping[str, object]) -> Form:
        return self._room if "amount" in spec else self._sleeping
