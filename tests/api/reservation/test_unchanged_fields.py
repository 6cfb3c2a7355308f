"""PUT of the answer of GET: accepted, without any change; keys that cannot be changed are refused by name."""

from collections.abc import Callable
from typing import Any

import pytest
from flask import Flask

from climate.context import Climate
from tests.api.reservation.api_clients import V1, Person, order, run_due, written
from tests.api.reservation.hosts.test_power import MEMORY
from tests.api.reservation.test_leaks import MATRIX
from tests.conftest import Clock
from tests.service.storage_factory import pool

WINDOW = {"host_id": "2", "start_date": "2030-02-01 10:00", "end_date": "2030-02-01 12:00", "reason": "new memory"}


def lease(admin: Person, climate: Climate) -> str:
    made = admin.lease(start_date="now", end_date="2030-01-01 14:00")
    run_due(climate)
    return f"/leases/{made['id']}"


def series(admin: Person, climate: Climate) -> str:
    repeated = {**order(name="training", start_date="2030-02-05 10:00", end_date="2030-02-05 12:00")}
    asked = {**repeated, "repeat": {"rule": "FREQ=WEEKLY;COUNT=2", "zone": "Europe/Berlin"}}
    return f"/series/{admin.done(admin('POST', '/series', asked), 201)['series']['id']}"


def host(admin: Person, climate: Climate) -> str:
    admin.done(admin("PUT", "/os-hosts/1", {"gpu": "a100", "rack": "r7"}))
    return "/os-hosts/1"


def power(admin: Person, climate: Climate) -> str:
    admin.done(admin("PUT", "/os-hosts/1/power", MEMORY))
    return "/os-hosts/1/power"


def limits(admin: Person, climate: Climate) -> str:
    admin.done(admin("PUT", "/limits/default", {"leases": 5}))
    admin.done(admin("PUT", "/limits/project", {"hosts_at_once": 3}))
    return "/limits/project"


def reservation_pool(admin: Person, climate: Climate) -> str:
    admin.done(admin("PUT", "/pools/reservation", {"target": 3}))
    return "/pools/reservation"


def maintenance(admin: Person, climate: Climate) -> str:
    made = admin.done(admin("POST", "/maintenances", WINDOW), 201)["maintenance"]
    return f"/maintenances/{made['id']}"


def storage(admin: Person, climate: Climate) -> str:
    return f"/storage-pools/{pool(climate).id}"


def mail_preferences(admin: Person, climate: Climate) -> str:
    return "/mail-preferences"


RESOURCES: dict[str, Callable[[Person, Climate], str]] = {
    "/leases/<lease_id>": lease,
    "/series/<series_id>": series,
    "/os-hosts/<host_id>": host,
    "/os-hosts/<host_id>/power": power,
    "/limits/<limited_project>": limits,
    "/pools/<pool_name>": reservation_pool,
    "/maintenances/<maintenance_id>": maintenance,
    "/storage-pools/<storage_pool_id>": storage,
    "/mail-preferences": mail_preferences,
}
"""Paths with GET and PUT -> a function that creates the resource and returns its path."""

MOVES = "/os-hosts/<host_id>/allocation"
"""Its PUT gives a lease another host, its GET lists the leases."""

each = pytest.mark.parametrize("create", RESOURCES.values(), ids=RESOURCES)


def test_all_routes_are_tried() -> None:
    both = {path.removeprefix(V1) for method, path in MATRIX if method == "PUT" and ("GET", path) in MATRIX}
    assert both == {*RESOURCES, MOVES}


def inner(answer: dict[str, Any]) -> Any:
    (value,) = answer.values()
    return value


@each
@pytest.mark.parametrize("unwrapped", [False, True], ids=["whole", "unwrapped"])
def test_the_answer_of_get_changes_nothing(
    admin: Person, climate: Climate, create: Callable[[Person, Climate], str], unwrapped: bool
) -> None:
    path = create(admin, climate)
    before = admin("GET", path)
    body = inner(before.json) if unwrapped and isinstance(inner(before.json), dict) else before.json
    rows = written(climate.engine)
    answer = admin("PUT", path, body)
    assert answer.status_code == 200, answer.json
    assert {key: value for key, value in answer.json.items() if key != "leases"} == before.json
    assert answer.headers.get("ETag") == before.headers.get("ETag")
    assert written(climate.engine) == rows
    assert admin.get(path) == before.json


FIXED = {
    "/leases/<lease_id>": ("id", "user_id", "project_id", "trust_id", "status", "degraded", "created_at", "events"),
    "/series/<series_id>": ("id", "rule", "zone", "make", "start_date", "occurrences", "created_at"),
    "/os-hosts/<host_id>": ("id", "vcpus", "hypervisor_hostname", "status", "reservable", "created_at"),
    "/os-hosts/<host_id>/power": ("id", "name", "pool", "on", "state", "secrets", "failures", "created_at"),
    "/pools/<pool_name>": ("name", "hosts", "reservable", "promised_now"),
    "/maintenances/<maintenance_id>": ("id", "host_id", "host", "state", "created_by", "created_at"),
    "/storage-pools/<storage_pool_id>": ("id", "storage_class", "backend", "created_at"),
}


@pytest.mark.parametrize(("route", "keys"), FIXED.items(), ids=FIXED)
def test_other_values_of_fixed_keys_are_refused(
    admin: Person, climate: Climate, route: str, keys: tuple[str, ...]
) -> None:
    path = RESOURCES[route](admin, climate)
    shown = admin.get(path)
    rows = written(climate.engine)
    for key in keys:
        answer = admin("PUT", path, {**inner(shown), key: "other"})
        assert answer.status_code == 400, key
        said = answer.json["error_message"]
        assert said.startswith(f'{key} cannot be set to "other": it is '), said
        assert said.endswith("; leave it out, or send it as it is")
    assert (written(climate.engine), admin.get(path)) == (rows, shown)


def test_changes_beside_repeated_values_apply(admin: Person, climate: Climate) -> None:
    for create, change in (
        (lease, {"name": "renamed"}),
        (host, {"rack": "r8"}),
        (maintenance, {"reason": "new disk"}),
        (storage, {"closed": True}),
    ):
        path = create(admin, climate)
        changed = {**inner(admin.get(path)), **change}
        answer = admin("PUT", path, changed)
        assert answer.status_code == 200, answer.json
        assert inner(admin.get(path)) == {**changed, "updated_at": inner(admin.get(path))["updated_at"]} | (
            {"reservations": inner(admin.get(path))["reservations"], "events": inner(admin.get(path))["events"]}
            if create is lease
            else {}
        )


def test_a_reservation_in_a_repeated_lease(member: Person, climate: Climate) -> None:
    made = member.lease()
    path, (own,) = f"/leases/{made['id']}", made["reservations"]
    member.done(member("PUT", path, {"reservations": [own]}))
    assert member("GET", path).headers["ETag"] == '"1"'
    refused = member("PUT", path, {**made, "reservations": [{**own, "missing_resources": True}]})
    assert refused.status_code == 400
    said = f"missing_resources of reservation {own['id']} cannot be set to true: it is false"
    assert refused.json["error_message"].startswith(said)
    changed = member.done(member("PUT", path, {**made, "reservations": [{**own, "max": 2}]}))["lease"]
    assert changed["reservations"][0]["max"] == 2


def test_an_ended_lease(member: Person, climate: Climate, clock: Clock) -> None:
    made = member.lease(start_date="now", end_date="2030-01-01 14:00")
    run_due(climate)
    clock.forward(hours=3)
    run_due(climate)
    path = f"/leases/{made['id']}"
    ended = member.get(path)
    assert ended["lease"]["status"] == "TERMINATED"
    assert member.done(member("PUT", path, ended)) == ended


def test_a_repeated_lease_has_its_version(member: Person) -> None:
    made = member.lease()
    path = f"/leases/{made['id']}"
    assert member("PUT", path, made, headers={"If-Match": '"1"'}).status_code == 200
    assert member("PUT", path, made, headers={"If-Match": '"2"'}).status_code == 412


def test_a_changed_limit_in_the_answer(admin: Person, climate: Climate) -> None:
    path = limits(admin, climate)
    shown = admin.get(path)["limits"]
    other = [{**one, "value": 9} if one["name"] == "host_hours" else one for one in shown]
    admin.done(admin("PUT", path, {"limits": other}))
    after = {one["name"]: (one["value"], one["project_id"]) for one in admin.get(path)["limits"]}
    assert (after["host_hours"], after["leases"]) == ((9, "project"), (5, "default"))
    refused = admin("PUT", path, {"limits": [{**shown[0], "project_id": "other"}]})
    assert (refused.status_code, "project_id of" in refused.json["error_message"]) == (400, True)
    unknown = admin("PUT", path, {"limits": [{"name": "wishes", "value": 3}]})
    assert (unknown.status_code, "wishes: Unknown parameter" in unknown.json["error_message"]) == (400, True)


def test_settings_of_a_pool_below_terms(admin: Person, climate: Climate) -> None:
    path = reservation_pool(admin, climate)
    shown = admin.get(path)["pool"]
    changed = admin.done(admin("PUT", path, {**shown, "terms": {**shown["terms"], "spare": 7}}))["pool"]
    assert (changed["terms"]["spare"], changed["terms"]["own"]) == (7, ["spare", "target"])
    refused = admin("PUT", path, {"pool": {**shown, "terms": {**changed["terms"], "own": []}}})
    assert (refused.status_code, refused.json["error_message"][:21]) == (400, "own cannot be set to ")


def test_a_repeated_answer_keeps_secrets_of_power(app: Flask, admin: Person, climate: Climate) -> None:
    path = power(admin, climate)
    shown = admin.get(path)["power"]
    refused = admin("PUT", path, {**shown, "watts": 80})
    assert refused.status_code == 400
    assert refused.json["error_message"].startswith("settings lack password, which the answer of GET does not show")
    settings = {**shown["settings"], "password": "another one"}
    assert admin.done(admin("PUT", path, {**shown, "watts": 80, "settings": settings}))["power"]["watts"] == 80


@pytest.mark.parametrize("body", [{"lease": 1}, {"lease": {"id": [1]}}, {"reservations": [1]}, {"status": {"a": [1]}}])
def test_nonsense(member: Person, body: Any) -> None:
    made = member.lease()
    assert member("PUT", f"/leases/{made['id']}", body).status_code == 400
