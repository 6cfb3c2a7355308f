"""Scheduler filter of Nova that makes the hint `reservation` binding.

A server with the hint, or with the flavor of reserved capacity, runs on the hosts of that reservation only. A server
with neither never runs on a host of leases. The filter reads the metadata of aggregates that climate writes. It counts
the servers in the slots of reserved capacity; only Placement sees simultaneous requests.
"""

from nova import exception
from nova.scheduler import filters

HINT = "reservation"
FLAVOR_SPEC = "aggregate_instance_extra_specs:reservation"
FREEPOOL = "freepool"
OUT_OF_USE = ("draining", "recycling", "cleaning", "maintenance", "failed")
OWNER, TENANT, GRANTED, CLOSED = "blazar:owner", "filter_tenant_id", "climate:granted", "climate:closed"
SLOTS, SHARED = "climate:slots:", "climate:shared:"
NOBODY = "climate:nobody"


class ReservationFilter(filters.BaseHostFilter):
    """Filter hosts by the reservation of a server."""

    RUN_ON_REBUILD = False

    def host_passes(self, host_state, spec_obj):
        """Return whether a server may run on a host."""
        wanted = _wanted(spec_obj)
        if any(_is_out_of_use(each) for each in host_state.aggregates):
            return False
        if wanted is None:
            return not any(_is_pool(each) for each in host_state.aggregates)
        matching = [each for each in host_state.aggregates if each.name == wanted]
        return any(_admits(each, spec_obj.project_id) and _has_slot(each, host_state, spec_obj) for each in matching)


def _wanted(spec_obj):
    """Return the reservation of a server; the flavor has precedence over the hint, which users choose freely."""
    specs = spec_obj.flavor.extra_specs if "extra_specs" in spec_obj.flavor else {}
    return (specs or {}).get(FLAVOR_SPEC) or spec_obj.get_scheduler_hint(HINT)


def _is_out_of_use(aggregate):
    """Return whether the hosts of an aggregate admit nobody, even those with slots on them."""
    return aggregate.name in OUT_OF_USE and aggregate.metadata.get(TENANT) == NOBODY


def _is_pool(aggregate):
    metadata = aggregate.metadata
    is_kept = aggregate.name == FREEPOOL or metadata.get(TENANT) == NOBODY
    return is_kept or OWNER in metadata or GRANTED in metadata


def _admits(aggregate, project_id):
    metadata = aggregate.metadata
    is_own = project_id in (metadata.get(OWNER), metadata.get(GRANTED))
    return CLOSED not in metadata and (is_own or f"{SHARED}{project_id}" in metadata)


def _has_slot(aggregate, host_state, spec_obj):
    slots = aggregate.metadata.get(f"{SLOTS}{host_state.host}")
    if slots is None:
        return True
    others = (each for uuid, each in host_state.instances.items() if uuid != spec_obj.instance_uuid)
    return sum(_uses(each, spec_obj.flavor.flavorid) for each in others) < int(slots)


def _uses(instance, flavor_id):
    """Return whether a server has a flavor, which Nova reads from the database the first time."""
    try:
        return instance.flavor.flavorid == flavor_id
    except exception.InstanceNotFound:
        return False
    except exception.OrphanedObjectError:  # another server of the same request, with the same flavor
        return True
