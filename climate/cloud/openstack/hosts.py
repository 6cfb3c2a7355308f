"""Hypervisors of the cloud, and how aggregates spell them.

Nova's aggregates name service hosts.  Where a service stands for one
hypervisor, that is its name there; where it stands for several, the
hypervisor's own name is, as clouds have it that tell them apart.
"""

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from climate.cloud import CloudHost
from climate.cloud.openstack import placement
from climate.cloud.openstack.http import Body, Remote

DEFAULT_ZONE = "nova"


@dataclass(frozen=True)
class Names:
    """All hypervisors by name, each with the host of its service."""

    services: Mapping[str, str]

    def spelled(self, name: str) -> str:
        """A hypervisor as aggregates are told of it."""
        service = self.services[name]
        return service if Counter(self.services.values())[service] == 1 else name

    def read(self, entries: Iterable[str]) -> frozenset[str]:
        """The hypervisors that the hosts of an aggregate stand for."""
        return frozenset(name for entry in entries for name in self._of(entry))

    def _of(self, entry: str) -> list[str]:
        if entry in self.services:
            return [entry]
        return [name for name, service in self.services.items() if service == entry]


def names(remote: Remote) -> Names:
    """The hypervisors that there are now."""
    found = remote.each("/os-hypervisors/detail")
    return Names({each["hypervisor_hostname"]: each["service"]["host"] for each in found})


def find(remote: Remote, name: str) -> list[CloudHost]:
    """The hypervisors of that very name; where there are none, the one with that id."""
    alike = remote.each("/os-hypervisors/detail", hypervisor_hostname_pattern=name)
    found = [each for each in alike if each["hypervisor_hostname"] == name]
    # Asked for by its path, an id of the older kind is refused at the microversion that tells UUIDs.
    found = found or [each for each in remote.each("/os-hypervisors/detail") if str(each["id"]) == name]
    return [_host(remote, each) for each in found]


def others(remote: Remote, inside: Collection[str]) -> list[CloudHost]:
    """The hypervisors that are not among those named, by name; the zones of all of them in one request."""
    services = remote.get("/os-services", binary="nova-compute")["services"]
    zones = {each["host"]: each["zone"] for each in services}
    found = [each for each in remote.each("/os-hypervisors/detail") if each["hypervisor_hostname"] not in inside]
    known = [_described(each, zones.get(each["service"]["host"], DEFAULT_ZONE)) for each in found]
    return sorted(known, key=lambda host: host.name)


def health(remote: Remote) -> dict[str, str | None]:
    """What is wrong with each hypervisor; None: nothing."""
    return {each["hypervisor_hostname"]: _wrong(each) for each in remote.each("/os-hypervisors/detail")}


def silent(remote: Remote) -> frozenset[str]:
    """Return the hypervisors whose services are down."""
    found = remote.each("/os-hypervisors/detail")
    return frozenset(str(each["hypervisor_hostname"]) for each in found if each.get("state", "up") != "up")


def _wrong(seen: Body) -> str | None:
    service = seen["service"]
    if seen.get("state", "up") != "up":
        return f"its service {service['host']} is down"
    if seen.get("status", "enabled") != "enabled":
        reason = service.get("disabled_reason")
        return f"its service {service['host']} is disabled" + (f": {reason}" if reason else "")
    maintained = seen.get("climate:maintenance")
    return None if maintained is None else f"it is in maintenance: {maintained}"


def _host(remote: Remote, seen: Body) -> CloudHost:
    host = _described(seen, _zone(remote, str(seen["service"]["host"])))
    return replace(host, capabilities=placement.capabilities(remote, str(seen["id"])))


def _described(seen: Body, zone: str) -> CloudHost:
    return CloudHost(
        name=seen["hypervisor_hostname"],
        service_name=str(seen["service"]["host"]),
        vcpus=seen["vcpus"],
        memory_mb=seen["memory_mb"],
        local_gb=seen["local_gb"],
        cpu_info=_text(seen.get("cpu_info")),
        hypervisor_type=seen["hypervisor_type"],
        hypervisor_version=seen["hypervisor_version"],
        availability_zone=zone,
        servers=seen["running_vms"],
        ids=(str(seen["id"]),),
    )


def _zone(remote: Remote, service: str) -> str:
    found = remote.get("/os-services", host=service, binary="nova-compute")["services"]
    return found[0]["zone"] if found else DEFAULT_ZONE


def _text(cpu_info: Any) -> str:
    return cpu_info if isinstance(cpu_info, str) else json.dumps(cpu_info) if cpu_info else ""
