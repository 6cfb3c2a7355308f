"""flavor:instance: capacity for servers of an existing flavor, on hosts of the reservation pool."""

import json
from collections.abc import Mapping
from dataclasses import replace

from marshmallow import Schema, fields, validate
from sqlalchemy import Connection

from climate.cloud import CloudFlavor, HostPools, SharedCapacity
from climate.domain.availability.demands import Horizon, SharedDemand
from climate.domain.errors import Conflict, NotFound
from climate.domain.hosts.extra_spec_requirements import Demand
from climate.domain.hosts.shared_capacity import Size
from climate.plugin import Allocation, Offer, ReservationContext, ResourceRequest, shared_capacity
from climate.plugin.schema_fields import Affinity, Count, grace_period
from climate.plugin.shared_capacity import MOST, TERMINATE, ServersAndCapacity
from climate.store.hosts import hosts

LONGEST_ID = 255
RESERVATION = "aggregate_instance_extra_specs:reservation"
"""Extra spec of the private flavors that give access to reserved capacity."""


class FlavorSpec(Schema):
    """Number of servers and their flavor."""

    flavor_id = fields.String(
        required=True,
        validate=validate.Length(1, LONGEST_ID),
        metadata={"description": "Id or name of a flavor that the project may use."},
    )
    amount = Count(required=True, validate=validate.Range(1, MOST), metadata={"description": "Number of servers."})
    affinity = Affinity(load_default=None)
    resource_properties = fields.String(
        validate=validate.Equal("", error="must be empty: the flavor says what its hosts must have"),
        metadata={"description": "Empty; clients of Blazar send it."},
    )
    on_end = fields.String(validate=validate.OneOf([TERMINATE]))
    grace_period = grace_period()


def _described(flavor: CloudFlavor) -> str:
    """Return the present flavor, which later changes do not affect."""
    return json.dumps(
        {
            "id": flavor.id,
            "name": flavor.name,
            "vcpus": flavor.vcpus,
            "ram": flavor.memory_mb,
            "disk": flavor.disk_gb,
            "extra_specs": dict(flavor.extra_specs),
        },
        sort_keys=True,
    )


def _demanded(request: ResourceRequest) -> tuple[ResourceRequest, Demand]:
    """Return the request with all its fields, and what one server needs. Raise Conflict for changes."""
    shared_capacity.refuse_changes(request, frozenset({"grace_period"}))
    demand = shared_capacity.demand_of(json.loads(request.spec["resource_properties"]))
    return replace(request, spec={"affinity": None, **request.spec}), demand


class FlavorInstance:
    """Capacity for servers of a flavor, used through a copy of it."""

    resource_type = hosts.FLAVOR_TYPE
    spec_schema = FlavorSpec

    def check(self, cloud: SharedCapacity, request: ResourceRequest) -> Mapping[str, object] | None:
        if request.spec.get("affinity") is not None:
            raise Conflict("Affinity not supported yet: a flavor is reserved on any hosts that have room")
        flavor = cloud.find_flavor(request.spec["flavor_id"], request.caller.project_id)
        if flavor is None:
            raise NotFound(f"Object with {{'flavor_id': '{request.spec['flavor_id']}'}} not found")
        if RESERVATION in flavor.extra_specs:
            raise Conflict(f"The flavor {flavor.name} belongs to a reservation: it cannot be reserved")
        described = _described(flavor)
        size = shared_capacity.demand_of(json.loads(described)).size
        return {
            "vcpus": size.vcpus,
            "memory_mb": size.memory_mb,
            "disk_gb": size.disk_gb,
            "resource_properties": described,
        }

    def reserve(self, conn: Connection, request: ResourceRequest) -> Allocation:
        request, demand = _demanded(request)
        return shared_capacity.reserve(conn, request, demand.requirement, demand.classes)

    def offer(self, conn: Connection, request: ResourceRequest) -> Offer:
        request, demand = _demanded(request)
        return shared_capacity.offer(request, demand.requirement, demand.classes)

    def demand(self, conn: Connection, request: ResourceRequest, horizon: Horizon) -> SharedDemand:
        request, demand = _demanded(request)
        return shared_capacity.demand(conn, request, horizon, demand.requirement, demand.classes)

    def on_start(self, cloud: SharedCapacity, context: ReservationContext) -> None:
        flavor = json.loads(context.reservation.spec["resource_properties"])
        # The flavor is copied unchanged, including extra specs with resource classes.
        size = Size(flavor["vcpus"], flavor["ram"], flavor["disk"])
        shared_capacity.share_hosts(cloud, context, size, flavor["extra_specs"])

    def before_end(self, cloud: object, context: ReservationContext) -> None:
        """Do nothing: such reservations have no actions before the end."""

    def close(self, cloud: HostPools, context: ReservationContext) -> None:
        cloud.close(str(context.reservation.id), context.token)

    def on_end(self, cloud: ServersAndCapacity, context: ReservationContext) -> None:
        shared_capacity.take_back(cloud, context)
