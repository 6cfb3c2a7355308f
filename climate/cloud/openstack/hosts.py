"""Hypervisors of the cloud, and their names in aggregates.

Nova's aggregates name service hosts. A service with one hypervisor stands for that hypervisor. If a service has
several, the aggregate has the hypervisor's own name, in clouds that distinguish them.
"""

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from climate.cloud import CloudHost
from climate.cloud.openstack import placement
from climate.cloud.openstack.http import Body, Remote

DEFAULT_ZONE = "nova"


@dataclass(frozen=True)
class Names:
    """All hypervisors by name, each with the host of its service."""

    services: Mapping[str, str]

    def spelled(self, name: str) -> str:
        """Return the name of a hypervisor in aggregates."""
        service = self.services[name]
        return service if Counter(self.services.values())[service] == 1 else name

    def read(self, entries: Iterable[str]) -> frozenset[str]:
        """Return the hypervisors that the hosts of an aggregate stand for."""
        return frozenset(name for entry in entries for name in self._of(entry))

    def _of(self, entry: str) -> list[str]:
        if entry in self.services:
            return [entry]
        return [name for name, service in self.services.items() if service == entry]


def names(remote: Remote) -> Names:
    """Return the present hypervisors."""
    result = remote.each("/os-hypervisors/detail")
    return Names({each["hypervisor_hostname"]: each["service"]["host"] for each in result})


def find(remote: Remote, name: str) -> list[CloudHost]:
    """Return the hypervisors of exactly that name; if there are none, the one with that id."""
    alike = remote.each("/os-hypervisors/detail", hypervisor_hostname_pattern=name)
    matching = [each for each in alike if each["hypervisor_hostname"] == name]
    # The microversion with UUIDs refuses an id of the older kind in the path.
    matching = matching or [each for each in remote.each("/os-hypervisors/detail") if str(each["id"]) == name]
    return [_host(remote, each) for each in matching]


def others(remote: Remote, inside: Collection[str]) -> list[CloudHost]:
    """Return the hypervisors that are not among those named, by name; read all their zones in one request."""
    services = remote.get("/os-services", binary="nova-compute")["services"]
    zones = {each["host"]: each["zone"] for each in services}
    matching = [each for each in remote.each("/os-hypervisors/detail") if each["hypervisor_hostname"] not in inside]
    known = [_described(each, zones.get(each["service"]["host"], DEFAULT_ZONE)) for each in matching]
    return sorted(known, key=lambda host: host.name)


def health(remote: Remote) -> dict[str, str | None]:
    """Return the fault of each hypervisor; None if there is none."""
    return {each["hypervisor_hostname"]: _wrong(each) for each in remote.each("/os-hypervisors/detail")}


def down_hypervisors(remote: Remote) -> frozenset[str]:
    """Return the hypervisors whose services are down."""
    result = remote.each("/os-hypervisors/detail")
    return frozenset(str(each["hypervisor_hostname"]) for each in result if each.get("state", "up") != "up")


def _wrong(body: Body) -> str | None:
    service = body["service"]
    if body.get("state", "up") != "up":
        return f"its service {service['host']} is down"
    if body.get("status", "enabled") != "enabled":
        reason = service.get("disabled_reason")
        return f"its service {service['host']} is disabled" + (f": {reason}" if reason else "")
    return None


def _host(remote: Remote, body: Body) -> CloudHost:
    host = _described(body, _zone(remote, str(body["service"]["host"])))
    return replace(host, capabilities=placement.capabilities(remote, str(body["id"])))


def _described(body: Body, zone: str) -> CloudHost:
    return CloudHost(
        name=body["hypervisor_hostname"],
        service_name=str(body["service"]["host"]),
        vcpus=body["vcpus"],
        memory_mb=body["memory_mb"],
        local_gb=body["local_gb"],
        cpu_info=_text(body.get("cpu_info")),
        hypervisor_type=body["hypervisor_type"],
        hypervisor_version=body["hypervisor_version"],
        availability_zone=zone,
        servers=body["running_vms"],
        ids=(str(body["id"]),),
    )


def _zone(remote: Remote, service: str) -> str:
    result = remote.get("/os-services", host=service, binary="nova-compute")["services"]
    return result[0]["zone"] if result else DEFAULT_ZONE


def _text(cpu_info: object) -> str:
    return cpu_info if isinstance(cpu_info, str) else json.dumps(cpu_info) if cpu_info else ""
