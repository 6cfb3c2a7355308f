"""Fill a Blazar database through the functions of Blazar itself: `python fill.py CONFIG [--create]`.

Runs in an environment where Blazar is installed, see record.sh. All ids, names and dates are invented and fixed.
`--create` creates the tables by Blazar's `setup_db`, for databases on which its migrations fail.
"""

import json
import sys
from datetime import datetime, timedelta
from importlib.metadata import version
from uuid import NAMESPACE_DNS, uuid5

from blazar.db import api
from oslo_config import cfg

NOON = datetime(2030, 1, 1, 12, 0)
RELEASE = int(version("blazar").partition(".")[0])
HAS_INVENTORIES = RELEASE >= 14
NO_AFFINITY = None if RELEASE >= 13 else False
"""Tables that older releases create by themselves, without migrations, require an affinity."""

NETWORK, SUBNET = "external-network", "external-subnet"


def number(name):
    """Return the id of that name, the same in each recording."""
    return str(uuid5(NAMESPACE_DNS, f"{name}.blazar.example"))


def hours(count):
    return NOON + timedelta(hours=count)


def host(host_id, name, extra, reservable=True):
    sizes = {"vcpus": 16, "memory_mb": 32768, "local_gb": 500}
    kind = {"cpu_info": '{"arch": "x86_64"}', "hypervisor_type": "QEMU", "hypervisor_version": 7002000}
    zone = {"availability_zone": "nova", "trust_id": number("trust"), "service_name": name, "status": None}
    own = {"id": host_id, "hypervisor_hostname": f"{name}.example", "reservable": reservable}
    api.host_create({**sizes, **kind, **zone, **own, "created_at": hours(-240)})
    for key, value in extra.items():
        capability = {"id": number(f"{name} {key}"), "computehost_id": host_id}
        api.host_extra_capability_create({**capability, "property_name": key, "capability_value": value})


def lease(name, start, end, kinds, status="PENDING", events=("UNDONE", "UNDONE"), **more):
    """Create a lease with one reservation of each kind; return the ids of the reservations."""
    reservation = {"PENDING": "pending", "ACTIVE": "active", "TERMINATED": "deleted", "ERROR": "error"}
    ids = [number(f"{name} {place}") for place in range(len(kinds))]
    times = {"start_lease": hours(start), "end_lease": hours(end)}
    states = dict(zip(times, events, strict=True))
    if end - start > 1:
        times["before_end_lease"], states["before_end_lease"] = hours(end - 1), "UNDONE"
        if events[1] != "UNDONE":
            states["before_end_lease"] = "DONE"
    flags = {key: more.pop(key) for key in ("missing_resources", "resources_changed") if key in more}
    api.lease_create(
        {
            "id": number(name),
            "name": name,
            "user_id": "user-of-leases",
            "project_id": "project-of-leases",
            "start_date": hours(start),
            "end_date": hours(end),
            "trust_id": number("trust"),
            "status": status,
            "degraded": bool(flags),
            "created_at": hours(-48),
            "reservations": [
                {
                    "id": id_,
                    "resource_type": kind,
                    "resource_id": number(f"resource of {id_}"),
                    "status": reservation.get(status, "active"),
                    **flags,
                }
                for id_, kind in zip(ids, kinds, strict=True)
            ],
            "events": [
                {"id": number(f"{name} {kind}"), "event_type": kind, "time": at, "status": states[kind]}
                for kind, at in times.items()
            ],
            **more,
        }
    )
    return ids


def hosts(reservation, count_range, allocated, needs="", before_end="default"):
    own = {"id": number(f"resource of {reservation}"), "reservation_id": reservation, "aggregate_id": 7}
    needs = {"resource_properties": needs, "hypervisor_properties": ""}
    api.host_reservation_create({**own, **needs, "count_range": count_range, "before_end": before_end})
    allocate(reservation, allocated)


def servers(reservation, amount, allocated, affinity=None, properties=""):
    own = {"id": number(f"resource of {reservation}"), "reservation_id": reservation}
    size = {"vcpus": 2, "memory_mb": 4096, "disk_gb": 20, "amount": amount, "affinity": affinity}
    nova = {"flavor_id": reservation, "aggregate_id": 8, "server_group_id": None}
    nova["server_group_id"] = None if affinity is None else number(f"group of {reservation}")
    api.instance_reservation_create({**own, **size, **nova, "resource_properties": properties})
    allocate(reservation, allocated)


def addresses(reservation, amount, required, allocated):
    own = {"id": number(f"resource of {reservation}"), "reservation_id": reservation}
    api.fip_reservation_create({**own, "network_id": NETWORK, "amount": amount})
    for address in required:
        row = {"id": number(f"{reservation} requires {address}"), "address": address}
        api.required_fip_create({**row, "floatingip_reservation_id": own["id"]})
    for address in allocated:
        row = {"id": number(f"{reservation} has {address}"), "reservation_id": reservation}
        api.fip_allocation_create({**row, "floatingip_id": number(address)})


def allocate(reservation, host_ids):
    for place, host_id in enumerate(host_ids):
        row = {"id": number(f"{reservation} on {host_id} {place}"), "compute_host_id": host_id}
        api.host_allocation_create({**row, "reservation_id": reservation})


def fill():
    host("1", "compute-1", {"gpu_count": "2", "rack": "r1"})
    host("2", "compute-2", {"rack": "r1"})
    host("3", "compute-3", {"rack": "r2"})
    host(number("compute-4"), "compute-4", {"rack": "r2"})
    host("5", "vanished", {})
    host("6", "compute-6", {}, reservable=False)
    host("7", "compute-7", {})
    api.resource_property_update("physical:host", "rack", {"private": True})
    if HAS_INVENTORIES:
        amounts = {"reserved": 0, "min_unit": 1, "max_unit": 4, "step_size": 1, "allocation_ratio": 1.0}
        own = {"id": number("inventory"), "computehost_id": "3", "resource_class": "CUSTOM_GPU"}
        api.host_resource_inventory_create({**own, "total": 4, **amounts})
        api.host_trait_create({"id": number("trait"), "computehost_id": "3", "trait": "CUSTOM_FAST"})
    for address in ("203.0.113.10", "203.0.113.11", "203.0.113.12"):
        row = {"id": number(address), "floating_network_id": NETWORK, "subnet_id": SUBNET}
        api.floatingip_create({**row, "floating_ip_address": address, "reservable": True})

    (one,) = lease("active-hosts", -2, 3, ["physical:host"], "ACTIVE", ("DONE", "UNDONE"))
    hosts(one, "1-1", ["1"], needs='[">=", "$gpu_count", "2"]')
    (one,) = lease("next-hosts", 3, 6, ["physical:host"])
    hosts(one, "1-3", ["1", "2"], before_end="snapshot")
    (one,) = lease("active-servers", -1, 5, ["virtual:instance"], "ACTIVE", ("DONE", "UNDONE"))
    servers(one, 3, ["3", "3", number("compute-4")], affinity=NO_AFFINITY)
    (one,) = lease("next-servers", 5, 8, ["virtual:instance"])
    servers(one, 1, ["3"], affinity=False)
    first, second = lease("two-kinds", 10, 12, ["physical:host", "virtual:floatingip"])
    hosts(first, "1-1", ["2"])
    addresses(second, 2, ["203.0.113.11"], ["203.0.113.10", "203.0.113.11"])
    (one,) = lease("active-address", -1, 2, ["virtual:floatingip"], "ACTIVE", ("DONE", "UNDONE"))
    addresses(one, 1, [], ["203.0.113.12"])
    (one,) = lease("over", -30, -20, ["physical:host"], "TERMINATED", ("DONE", "DONE"))
    hosts(one, "1-1", [])
    (one,) = lease("failed-start", -1, 4, ["physical:host"], "ERROR", ("ERROR", "UNDONE"))
    hosts(one, "1-1", ["7"])
    (one,) = lease("short-of-hosts", 20, 24, ["physical:host"], missing_resources=True)
    hosts(one, "2-2", ["3"])
    if HAS_INVENTORIES:
        flavor = {"id": "f1", "name": "gpu", "vcpus": 4, "ram": 8192, "disk": 40}
        flavor["extra_specs"] = {"resources:CUSTOM_GPU": "1", "trait:CUSTOM_FAST": "required"}
        (one,) = lease("next-flavors", 30, 33, ["flavor:instance"])
        servers(one, 2, ["3", "3"], properties=json.dumps(flavor))

    (one,) = lease("being-updated", 40, 42, ["physical:host"], "UPDATING")
    hosts(one, "1-1", ["2"])
    (one,) = lease("of-another-plugin", 40, 42, ["network:port"])
    (one,) = lease("overlapping", 4, 5, ["physical:host"], created_at=hours(-24))
    hosts(one, "1-1", ["2"])
    (one,) = lease("on-a-vanished-host", 50, 52, ["physical:host"])
    hosts(one, "1-1", ["5"])


if __name__ == "__main__":
    cfg.CONF(["--config-file", sys.argv[1]], project="blazar")
    if "--create" in sys.argv:
        api.setup_db()
    fill()
