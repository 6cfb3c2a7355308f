"""Versions that a request counts on, keys against repetition, dry runs."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from flask import Flask

from climate.context import Climate
from tests.api.reservation.api_clients import Person, order, written


def test_every_answer_with_a_lease_has_its_version(member: Person) -> None:
    made = member("POST", "/leases", order())
    path = f"/leases/{made.json['lease']['id']}"
    assert made.headers["ETag"] == '"1"'
    assert member("GET", path).headers["ETag"] == '"1"'
    assert member("PUT", path, {"name": "other"}).headers["ETag"] == '"2"'
    assert member("GET", path).headers["ETag"] == '"2"'


@pytest.mark.parametrize(
    ("tag", "status"),
    [('"2"', 200), ("*", 200), ('"1"', 412), ('"3"', 412), ('W/"2"', 412), ('"two"', 412), ('"02"', 412),
     ("2", 400), ('"2', 400), ("", 400), ('"1", "2"', 400)],
)  # fmt: skip
def test_if_match(standing: tuple[Flask, Climate], tag: str, status: int) -> None:
    member = Person(standing[0], "member")
    path = f"/leases/{member.lease(reservations=[])['id']}"
    member("PUT", path, {"name": "second"})
    before = member.get(path)
    answer = member("PUT", path, {"name": "third"}, headers={"If-Match": tag})
    assert answer.status_code == status
    assert (member.get(path) == before) is (status != 200)
    if status != 200:
        assert member("DELETE", path, headers={"If-Match": tag}).status_code == status
        assert member.get(path) == before


def test_a_lease_that_nobody_changed_can_be_deleted(member: Person) -> None:
    path = f"/leases/{member.lease()['id']}"
    assert member("DELETE", path, headers={"If-Match": '"1"'}).status_code == 204


def keyed(person: Person, body: Any, key: str = "key", path: str = "/leases") -> Any:
    return person("POST", path, body, headers={"Idempotency-Key": key})


def test_a_repeated_request_makes_one_lease(member: Person, stranger: Person) -> None:
    first = keyed(member, order())
    member("PUT", f"/leases/{first.json['lease']['id']}", {"name": "changed"})
    second = keyed(member, dict(reversed(order().items())))
    assert (second.status_code, second.json, second.headers["ETag"]) == (201, first.json, '"1"')
    other = keyed(member, order(name="other"))
    assert (other.status_code, other.json["error_code"]) == (422, 422)
    assert keyed(member, {"name": "h1"}, path="/os-hosts").status_code == 403
    theirs = keyed(stranger, order())
    assert theirs.json["lease"]["id"] != first.json["lease"]["id"], "keys are everybody's own"
    assert len(member.get("/leases")["leases"]) == 1


def test_a_refused_request_does_not_use_its_key_up(member: Person) -> None:
    assert keyed(member, order(end_date="2030-01-02 09:00")).status_code == 400
    assert keyed(member, order()).status_code == 201


def test_sixteen_at_once_with_one_key_make_one_lease(member: Person, climate: Climate) -> None:
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda _: keyed(member, order()), range(16)))
    assert {answer.status_code for answer in answers} <= {201, 409}
    assert all(answer.headers["Retry-After"] == "1" for answer in answers if answer.status_code == 409)
    made = {answer.json["lease"]["id"] for answer in answers if answer.status_code == 201}
    assert [lease["id"] for lease in member.get("/leases")["leases"]] == list(made)
    assert keyed(member, order()).json["lease"]["id"] in made


def test_a_repeated_registration_makes_one_host(admin: Person) -> None:
    admin("DELETE", "/os-hosts/8")
    first = keyed(admin, {"name": "h8"}, path="/os-hosts")
    second = keyed(admin, {"name": "h8"}, path="/os-hosts")
    assert (first.status_code, second.status_code) == (201, 201)
    assert first.json == second.json
    assert keyed(admin, {"name": "h8", "gpu": "1"}, path="/os-hosts").status_code == 422


@pytest.mark.parametrize("key", ["", "k" * 256, "ключ".encode().decode("latin-1"), "a\tb", " "])
def test_keys_that_are_none(standing: tuple[Flask, Climate], key: str) -> None:
    answer = keyed(Person(standing[0], "member"), order(), key)
    assert answer.status_code == 400
    assert answer.json["error_message"].startswith("Idempotency-Key: ")


def test_the_longest_key(member: Person) -> None:
    assert keyed(member, order(), "k" * 255).status_code == 201


def test_a_dry_run_changes_nothing(member: Person, admin: Person, climate: Climate) -> None:
    path = f"/leases/{member.lease()['id']}"
    held = admin.get("/os-hosts/allocations")["allocations"]
    host = "/os-hosts/" + next(one["resource_id"] for one in held if not one["reservations"])
    before, shown = written(climate.engine), member.get(path)
    would = member("POST", "/leases?dry_run=true", order(name="would"), headers={"Idempotency-Key": "k"})
    assert (would.status_code, would.json["lease"]["name"], would.json["lease"]["status"]) == (200, "would", "PENDING")
    assert member.done(member("PUT", f"{path}?dry_run=true", {"name": "would"}))["lease"]["name"] == "would"
    assert member("DELETE", f"{path}?dry_run=true").status_code == 204
    assert admin.done(admin("PUT", f"{host}?dry_run=true", {"gpu": "1"}))["host"]["gpu"] == "1"
    assert admin("DELETE", f"{host}?dry_run=true").status_code == 204
    assert member("POST", "/leases?dry_run=perhaps", order()).status_code == 400
    assert written(climate.engine) == before
    assert member.get(path) == shown
    assert "gpu" not in admin.get(host)["host"]
    assert member("POST", "/leases", order(name="now"), headers={"Idempotency-Key": "k"}).status_code == 201


def test_a_dry_run_of_a_registration(admin: Person, climate: Climate) -> None:
    admin("DELETE", "/os-hosts/8")
    assert admin("POST", "/os-hosts?dry_run=true", {"name": "h8"}).status_code == 200
    assert "h8" not in climate.cloud.pools()["freepool"]
    assert len(admin.get("/os-hosts")["hosts"]) == 7


def test_a_dry_run_is_refused_like_the_real_thing(member: Person) -> None:
    member.lease(reservations=[{**order()["reservations"][0], "min": 8, "max": 8}])
    answer = member("POST", "/leases?dry_run=1", order())
    assert answer.status_code == 409
    assert answer.json["error_message"].startswith("Not enough hosts available")
