"""The bytes that the peer's clients know of hosts, their properties and their calendar."""

from dataclasses import replace
from typing import Any, cast

import pytest

from climate.cloud.fake import FakeCloud
from climate.context import Climate
from tests.api.reservation.api_clients import Person, reservation
from tests.conftest import cloud_host

HOST = {
    "id", "vcpus", "cpu_info", "hypervisor_type", "hypervisor_version", "hypervisor_hostname", "service_name",
    "memory_mb", "local_gb", "status", "availability_zone", "trust_id", "reservable", "created_at", "updated_at",
}  # fmt: skip


def test_a_host_is_shown_as_the_peer_shows_it(admin: Person) -> None:
    host = admin.get("/os-hosts/5")["host"]
    assert set(host) == HOST | {"gpu_count"}
    assert host == {
        "id": "5",
        "vcpus": 8,
        "cpu_info": "{}",
        "hypervisor_type": "fake",
        "hypervisor_version": 1000000,
        "hypervisor_hostname": "h5",
        "service_name": "compute",
        "memory_mb": 8192,
        "local_gb": 100,
        "status": None,
        "availability_zone": None,
        "trust_id": None,
        "reservable": True,
        "created_at": "2030-01-01 12:00:00.000000",
        "updated_at": None,
        "gpu_count": "2",
    }
    assert [host["id"] for host in admin.get("/os-hosts")["hosts"]] == list("12345678")


def test_the_life_of_a_host(admin: Person) -> None:
    assert admin("DELETE", "/os-hosts/8").status_code == 204
    answer = admin("POST", "/os-hosts", {"name": "h8", "gpu": "True", "slots": 4, "fast": True})
    assert answer.status_code == 201
    host = answer.json["host"]
    assert (host["gpu"], host["slots"], host["fast"]) == ("True", "4", "True")
    changed = admin.done(admin("PUT", f"/os-hosts/{host['id']}", {"gpu": "False", "slots": None}))["host"]
    assert changed["gpu"] == "False"
    assert "slots" not in changed
    gone = admin("DELETE", f"/os-hosts/{host['id']}")
    assert (gone.status_code, gone.data, gone.headers["Content-Type"]) == (204, b"", "application/json")
    assert admin("GET", f"/os-hosts/{host['id']}").status_code == 404


@pytest.mark.parametrize(
    "body", [{"id": "77"}, {"id": 77}, {"name": "77"}, {"id": "5e7d9d4c-0001"}, {"id": "h9"}, {"id": 77, "name": "h10"}]
)
def test_a_host_is_registered_by_its_hypervisor_id(climate: Climate, admin: Person, body: dict[str, Any]) -> None:
    cloud = cast("FakeCloud", climate.cloud)
    cloud.hosts["h9"] = replace(cloud_host("h9"), ids=("77", "5e7d9d4c-0001"))
    cloud.hosts["h10"] = replace(cloud_host("h10"), ids=("78",))
    made = admin.done(admin("POST", "/os-hosts", {**body, "gpu": "a"}), 201)["host"]
    assert (made["id"], made["hypervisor_hostname"], made["gpu"]) == ("9", "h9", "a")
    again = admin("POST", "/os-hosts", body)
    assert (again.status_code, again.json["error_message"]) == (409, "Host 'h9' is already registered")


def test_properties(admin: Person, reader: Person) -> None:
    assert reader.get("/os-hosts/properties") == {"resource_properties": [{"property": "gpu_count"}]}
    detailed = {"property": "gpu_count", "private": False, "values": ["2"]}
    assert reader.get("/os-hosts/properties?detail=True") == {"resource_properties": [detailed]}
    change = admin.done(admin("PATCH", "/os-hosts/properties/gpu_count", {"private": True}))["resource_property"]
    assert change | {"id": ""} == {
        "id": "",
        "resource_type": "physical:host",
        "property_name": "gpu_count",
        "private": True,
        "created_at": "2030-01-01T12:00:00.000000",
        "updated_at": "2030-01-01T12:00:00.000000",
    }
    assert reader.get("/os-hosts/properties?detail=True") == {"resource_properties": []}
    assert reader("GET", "/os-hosts/properties?all=True").status_code == 403
    both = admin.get("/os-hosts/properties?detail=True&all=True")
    assert both == {"resource_properties": [{**detailed, "private": True}]}


def test_the_calendar(admin: Person, member: Person) -> None:
    gpu = [reservation(resource_properties='["==", "$gpu_count", "2"]', min=4, max=4)]
    made = member.lease(reservations=gpu)
    held = {
        "id": made["reservations"][0]["id"],
        "lease_id": made["id"],
        "start_date": "2030-01-02T10:00:00.000000",
        "end_date": "2030-01-02T12:00:00.000000",
    }
    everything = admin.get("/os-hosts/allocations")
    assert everything["allocations"] == [
        {"resource_id": str(number), "reservations": [held] if number > 4 else []} for number in range(1, 9)
    ]
    assert admin.get("/os-hosts/5/allocation") == {"allocation": {"resource_id": "5", "reservations": [held]}}
    assert admin.get(f"/os-hosts/5/allocation?lease_id={held['id']}")["allocation"]["reservations"] == []
    assert admin.get(f"/os-hosts/5/allocation?reservation_id={held['id']}")["allocation"]["reservations"] == [held]
    assert member("GET", "/os-hosts/allocations").status_code == 403
