"""Pools of storage on the wire, leases of them, and what is refused."""

from typing import Any

import pytest

from climate.cloud.fake import FakeCloud
from climate.cloud.volumes import CloudStorage
from climate.context import Climate
from tests.api.reservation.api_clients import Person, order, run_due

FAST = {"name": "fast", "storage_class": "ssd", "backend": "b1", "capacity_gb": 100}


@pytest.fixture
def backend(climate: Climate) -> FakeCloud:
    assert isinstance(climate.cloud, FakeCloud)
    climate.cloud.storage = {"b1": CloudStorage("b1", 200)}
    return climate.cloud


def wanted(**more: Any) -> dict[str, Any]:
    asked = {"resource_type": "storage:pool", "size_gb": 40, "storage_class": "ssd"} | more
    return {key: value for key, value in asked.items() if value is not ...}


@pytest.mark.usefixtures("backend")
def test_a_pool_is_registered_shown_changed_and_removed(admin: Person, reader: Person) -> None:
    tried = admin.done(admin("POST", "/storage-pools?dry_run=true", FAST), 200)["storage_pool"]
    made = admin.done(admin("POST", "/storage-pools", FAST), 201)["storage_pool"]
    times = {"closed": False, "created_at": "2030-01-01 12:00:00.000000", "updated_at": None}
    assert made | {"id": ""} == {"id": "", **FAST, **times} == tried | {"id": ""}
    assert admin.get("/storage-pools") == {"storage_pools": [made]}
    seen = {key: value for key, value in made.items() if key != "backend"}
    assert reader.get("/storage-pools") == {"storage_pools": [seen]}, "where it is is the operators' business"
    path = f"/storage-pools/{made['id']}"
    assert reader.get(path) == {"storage_pool": seen}
    changed = admin.done(admin("PUT", path, {"closed": True, "capacity_gb": 50}))["storage_pool"]
    assert (changed["closed"], changed["capacity_gb"]) == (True, 50)
    assert admin("DELETE", path).status_code == 204
    assert admin("GET", path).status_code == 404


@pytest.mark.usefixtures("backend")
def test_a_repeated_request_registers_once(admin: Person) -> None:
    headers = {"Idempotency-Key": "k"}
    ids = [admin.done(admin("POST", "/storage-pools", FAST, headers=headers), 201)["storage_pool"]["id"] for _ in "12"]
    assert ids[0] == ids[1]


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize(
    ("body", "status", "told"),
    [
        ({**FAST, "backend": "b2"}, 404, "no storage backend 'b2'"),
        ({**FAST, "capacity_gb": 201}, 400, "has 200 GB: give at most 200"),
        ({**FAST, "capacity_gb": 0}, 400, "capacity_gb"),
        ({**FAST, "capacity_gb": "5"}, 400, "capacity_gb"),
        ({**FAST, "backend": "../etc"}, 400, "Must be a name such as ssd-1"),
        ({**FAST, "name": ""}, 400, "name"),
        ({**FAST, "name": None}, 400, "name"),
        ({**FAST, "size": 1}, 400, "known are backend, capacity_gb, name, storage_class"),
        ([], 400, "JSON object"),
    ],
)
def test_what_cannot_be_registered(admin: Person, body: Any, status: int, told: str) -> None:
    answer = admin("POST", "/storage-pools", body)
    assert (answer.status_code, told in answer.get_data(as_text=True)) == (status, True), answer.get_data(as_text=True)


def test_a_lease_of_storage(admin: Person, member: Person, climate: Climate, backend: FakeCloud) -> None:
    made = admin.done(admin("POST", "/storage-pools", FAST), 201)["storage_pool"]
    dates = {"start_date": "now", "end_date": "2030-01-02 12:00"}
    lease = member.lease(**dates, reservations=[wanted(volumes="2", on_end="keep")])
    (reservation,) = lease["reservations"]
    assert {key: reservation[key] for key in ("size_gb", "volumes", "storage_class", "on_end")} == {
        "size_gb": 40, "volumes": 2, "storage_class": "ssd", "on_end": "keep",
    }  # fmt: skip
    run_due(climate)
    assert [one.size_gb for one in backend.made_volumes.values()] == [20, 20]
    held = {"id": reservation["id"], "lease_id": lease["id"], "size_gb": 40, "kept": False}
    whole = admin.get(f"/storage-pools/{made['id']}/allocation")["allocation"]
    assert (whole["resource_id"], whole["name"]) == (made["id"], "fast")
    assert held.items() <= whole["reservations"][0].items()
    assert admin.get("/storage-pools/allocations") == {"allocations": [whole]}
    assert admin.get("/storage-pools/allocations?lease_id=other")["allocations"][0]["reservations"] == []
    told = member.get(f"/leases/{lease['id']}/history")["history"][0]["body"]["reservations"][0]["amounts"]
    assert [set(one) for one in told] == [{"amount", "during"}], "pools are not numbered for owners"
    refused = admin("DELETE", f"/storage-pools/{made['id']}")
    assert (refused.status_code, "1 lease counts on it" in refused.get_data(as_text=True)) == (409, True)


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize(
    ("given", "status", "told"),
    [
        ({"size_gb": ...}, 400, "Missing parameter size_gb"),
        ({"storage_class": ...}, 400, "Missing parameter storage_class"),
        ({"size_gb": 0}, 400, "size_gb"),
        ({"size_gb": -5}, 400, "size_gb"),
        ({"size_gb": 2**63}, 400, "too long"),
        ({"size_gb": 1.5}, 400, "size_gb"),
        ({"size_gb": "ten"}, 400, "size_gb"),
        ({"size_gb": True}, 400, "size_gb"),
        ({"storage_class": ["ssd"]}, 400, "storage_class"),
        ({"storage_class": "a b"}, 400, "storage_class"),
        ({"volumes": 0}, 400, "volumes"),
        ({"volumes": 101}, 400, "volumes"),
        ({"volumes": 3}, 400, "39 or 42 can"),
        ({"on_end": "burn"}, 400, "on_end"),
        ({"size_gb": 101}, 409, "100 GB can be reserved, 100 GB of them free; no later start is known to fit"),
        ({"storage_class": "tape"}, 409, "0 GB can be reserved"),
    ],
)
def test_what_cannot_be_reserved(admin: Person, member: Person, given: Any, status: int, told: str) -> None:
    admin("POST", "/storage-pools", FAST)
    answer = member("POST", "/leases", order(reservations=[wanted(**given)]))
    assert (answer.status_code, told in answer.get_data(as_text=True)) == (status, True), answer.get_data(as_text=True)
