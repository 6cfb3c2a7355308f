"""Reservations of a lease or of a search, as they are sent. `more` has further keys of the API, such as `on_end`."""

from dataclasses import dataclass

Reservation = dict[str, object]


@dataclass(frozen=True, slots=True)
class Repeat:
    """Dates of a series: an RRULE of RFC 5545, in the local time of a zone."""

    rule: str
    zone: str = "UTC"
    fitting: bool = False
    """True to leave out dates at which the lease does not fit; otherwise all dates get a lease, or none does."""

    def body(self) -> dict[str, str]:
        """Return it as it is sent."""
        return {"rule": self.rule, "zone": self.zone, "make": "fitting" if self.fitting else "all"}


def hosts(
    least: int, most: int | None = None, *, properties: str = "", resources: str = "", **more: object
) -> Reservation:
    """Return a reservation of whole hosts: exactly `least`, or `least` to `most` of them.

    `properties` are requirements on the hypervisor such as `[">=", "$vcpus", "4"]`, `resources` those on extra
    capabilities such as `[">", "$gpu_count", "1"]`.
    """
    wanted = {"hypervisor_properties": properties, "resource_properties": resources}
    count = {"min": least, "max": least if most is None else most}
    return {"resource_type": "physical:host", **count, **wanted, **more}


def servers(amount: int, *, vcpus: int, memory_mb: int, disk_gb: int, **more: object) -> Reservation:
    """Return a reservation of room for servers of one size on shared hosts."""
    size = {"vcpus": vcpus, "memory_mb": memory_mb, "disk_gb": disk_gb}
    return {"resource_type": "virtual:instance", "amount": amount, **size, **more}


def floating_ips(amount: int, *, network_id: str, required: list[str] | None = None, **more: object) -> Reservation:
    """Return a reservation of addresses of an external network; those in `required` have to be among them."""
    wanted = {"network_id": network_id, "amount": amount, "required_floatingips": required or []}
    return {"resource_type": "virtual:floatingip", **wanted, **more}


def storage(size_gb: int, *, storage_class: str, volumes: int = 1, **more: object) -> Reservation:
    """Return a reservation of storage of a class, in volumes of equal size."""
    wanted = {"storage_class": storage_class, "size_gb": size_gb, "volumes": volumes}
    return {"resource_type": "storage:pool", **wanted, **more}
