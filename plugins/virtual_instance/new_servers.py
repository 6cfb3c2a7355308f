"""Capacity for new servers of one size on hosts of the reservation pool."""

from dataclasses import replace

from sqlalchemy import Connection

from climate.cloud import HostPools, SharedCapacity
from climate.domain.availability.demands import Horizon, SharedDemand
from climate.domain.errors import Conflict, InvalidInput
from climate.domain.hosts import requirements
from climate.domain.hosts.requirements import Requirement
from climate.plugin import Allocation, Ask, Lent, Offer, shared_capacity
from climate.plugin.shared_capacity import TERMINATE, ServersAndCapacity
from climate.store.allocation import requirements_sql
from climate.store.hosts import hosts

OPEN = frozenset({"amount", "grace_period"})
"""Fields that can be changed while the reservation is in use; the amount can only grow."""


class RoomForServers:
    """Slots of a size, used through a flavor of their own."""

    def check(self, cloud: object, ask: Ask) -> None:
        """Do nothing: the reservation pool is in the database."""

    def reserve(self, conn: Connection, ask: Ask) -> Allocation:
        ask = self._checked(ask)
        return shared_capacity.reserve(conn, ask, self._requirement(conn, ask))

    def offer(self, conn: Connection, ask: Ask) -> Offer:
        ask = self._checked(ask)
        return shared_capacity.offer(ask, self._requirement(conn, ask))

    def _checked(self, ask: Ask) -> Ask:
        """Return the request with all its fields. Raise an error for changes that are not possible."""
        ask = replace(ask, spec={"affinity": None, "resource_properties": "", **ask.spec})
        if "resource_id" in ask.spec:
            raise Conflict("resource_id cannot be updated")
        if ask.spec.get("on_end", TERMINATE) != TERMINATE:
            raise InvalidInput(f"on_end can only be {TERMINATE}: servers on shared hosts are always terminated")
        if ask.active:
            shared_capacity.refuse_changes(ask, OPEN)
            if ask.present and ask.spec["amount"] < ask.present.spec["amount"]:
                raise Conflict("amount cannot be updated: it can only grow once the lease has started")
        return ask

    def demand(self, conn: Connection, ask: Ask, horizon: Horizon) -> SharedDemand:
        ask = replace(ask, spec={"affinity": None, "resource_properties": "", **ask.spec})
        return shared_capacity.demand(conn, ask, horizon, self._requirement(conn, ask))

    def on_start(self, cloud: SharedCapacity, lent: Lent) -> None:
        shared_capacity.hand_over(cloud, lent, shared_capacity.size_of(lent.reservation.spec))

    def before_end(self, cloud: object, lent: Lent) -> None:
        """Do nothing: such reservations have no actions before the end."""

    def close(self, cloud: HostPools, lent: Lent) -> None:
        cloud.close(str(lent.reservation.id), lent.token)

    def on_end(self, cloud: ServersAndCapacity, lent: Lent) -> None:
        shared_capacity.take_back(cloud, lent)

    def _requirement(self, conn: Connection, ask: Ask) -> Requirement:
        text = ask.spec.get("resource_properties")
        requirement = requirements.parse(text)
        granted = ask.present is not None and text == ask.present.spec.get("resource_properties")
        if not granted and requirements.keys(requirement) - set(hosts.COLUMNS):
            requirements_sql.refuse_unknown(requirement, hosts.property_names(conn, private=ask.caller.is_admin))
        return requirement
