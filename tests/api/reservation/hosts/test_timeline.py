"""The calendar of hosts: windows of rows and time, and nothing of other projects."""

import json
from dataclasses import replace
from typing import Any

import pytest
from flask import Flask
from sqlalchemy import Engine, event

from climate.context import Climate
from tests.api.reservation.api_clients import Person, app_over, reservation, run_due
from tests.conftest import ADMIN, Clock

DAY = "?from=2030-01-02 00:00&to=2030-01-03 00:00"


def timeline(person: Person, query: str = DAY) -> dict[str, Any]:
    shown: dict[str, Any] = person.get(f"/timeline{query}")["timeline"]
    return shown


def spans(shown: dict[str, Any]) -> list[dict[str, Any]]:
    return [span for row in shown["rows"] for span in row["spans"]]


def test_a_lease_of_ones_own_is_shown_in_full(member: Person) -> None:
    lease = member.lease("mine")
    (span,) = spans(timeline(member))
    assert (span["kind"], span["lease_name"], span["lease_id"]) == ("lease", "mine", lease["id"])
    assert (span["start"], span["end"]) == ("2030-01-02T10:00:00.000000", "2030-01-02T12:00:00.000000")
    assert (span["status"], span["reservation_id"]) == ("PENDING", lease["reservations"][0]["id"])


def test_a_lease_of_another_project_is_busy_and_nothing_else(member: Person, stranger: Person, admin: Person) -> None:
    lease = member.lease("hidden-name", reservations=[reservation(grace_period=600)])
    seen = timeline(stranger)
    (span,) = spans(seen)
    assert span == {"kind": "busy", "start": "2030-01-02T10:00:00.000000", "end": "2030-01-02T12:10:00.000000"}
    told = json.dumps(seen)
    assert not [secret for secret in ("hidden-name", lease["id"], "project_id") if secret in told]
    assert [span["kind"] for span in spans(timeline(admin))] == ["lease", "grace"]
    assert spans(timeline(admin))[0]["project_id"] == "project"


def test_grace_and_cleaning_follow_a_lease(climate: Climate, tmp_path: Any) -> None:
    person = Person(
        app_over(replace(climate, settings=replace(climate.settings, cleaning_time=300)), tmp_path), "member"
    )
    person.lease(reservations=[reservation(grace_period=600)])
    times = [(span["kind"], span["start"][11:16], span["end"][11:16]) for span in spans(timeline(person))]
    assert times == [("lease", "10:00", "12:00"), ("grace", "12:00", "12:10"), ("cleaning", "12:10", "12:15")]


def test_maintenance_has_its_reason_for_administrators_only(member: Person, admin: Person) -> None:
    window = {"host_id": "2", "start_date": "2030-01-02 10:00", "end_date": "2030-01-02 11:00", "reason": "new memory"}
    planned = admin.done(admin("POST", "/maintenances", window), 201)["maintenance"]
    (seen,) = spans(timeline(admin))
    assert (seen["kind"], seen["reason"], seen["maintenance_id"]) == ("maintenance", "new memory", planned["id"])
    (other,) = spans(timeline(member))
    assert set(other) == {"kind", "start", "end"}
    assert other["kind"] == "maintenance"


def test_members_see_the_hosts_that_they_may_reserve(member: Person, admin: Person) -> None:
    admin.done(admin("PUT", "/os-hosts/1", {"authorized_projects": "other-project"}))
    admin.done(admin("PUT", "/os-hosts/2", {"authorized_projects": "project"}))
    admin.done(admin("PUT", "/os-hosts/3/reservable", {"reservable": False}))
    admin.done(admin("POST", "/os-hosts/4/fail", {"reason": "smoke"}))
    assert [row["name"] for row in timeline(member)["rows"]] == ["h2", "h5", "h6", "h7", "h8"]
    assert timeline(admin)["total"] == 8


def test_a_private_rack_groups_nothing_for_members(member: Person, admin: Person) -> None:
    for host in (1, 2):
        admin.done(admin("PUT", f"/os-hosts/{host}", {"rack": "r1"}))
    query = f"{DAY}&group=rack"
    public = [{"name": "", "rows": 6}, {"name": "r1", "rows": 2}]
    assert timeline(member, query)["groups"] == public
    admin.done(admin("PATCH", "/os-hosts/properties/rack", {"private": True}))
    assert timeline(member, query)["groups"] == [{"name": "", "rows": 8}]
    assert timeline(admin, query)["groups"] == public


@pytest.mark.parametrize(("known", "name"), [("names", "h1"), ("nothing", "host 1")])
def test_a_setting_hides_names_of_hosts(climate: Climate, tmp_path: Any, known: str, name: str) -> None:
    app: Flask = app_over(replace(climate, settings=replace(climate.settings, lease_hosts=known)), tmp_path)
    assert timeline(Person(app, "member"))["rows"][0]["name"] == name
    assert timeline(Person(app, "admin"))["rows"][0]["name"] == "h1"
    found = timeline(Person(app, "member"), f"{DAY}&search=h1")
    assert found["total"] == (1 if known == "names" else 0), "what is hidden cannot be searched for"


def test_rows_are_read_in_windows(member: Person) -> None:
    first = timeline(member, f"{DAY}&limit=3")
    assert ([row["name"] for row in first["rows"]], first["cursor"], first["total"]) == (["h1", "h2", "h3"], 3, 8)
    last = timeline(member, f"{DAY}&limit=3&cursor=6")
    assert ([row["name"] for row in last["rows"]], last["cursor"], last["first"]) == (["h7", "h8"], None, 6)
    assert timeline(member, f"{DAY}&cursor=1000")["rows"] == []


def test_hosts_are_chosen_by_name_number_or_part_of_the_name(member: Person) -> None:
    assert [row["name"] for row in timeline(member, f"{DAY}&hosts=h2,5")["rows"]] == ["h2", "h5"]
    assert [row["name"] for row in timeline(member, f"{DAY}&search=H7")["rows"]] == ["h7"]


def test_the_free_count(member: Person) -> None:
    member.lease(reservations=[reservation(min=3, max=3)])
    free = timeline(member, f"{DAY}&points=50")["free"]
    assert free["hosts"] == 8
    assert [(point["time"][11:16], point["free"]) for point in free["points"]] == [
        ("00:00", 8),
        ("10:00", 5),
        ("12:00", 8),
    ]
    assert timeline(member)["free"] is None


def test_leases_that_are_over_are_shown_until_they_are_deleted(climate: Climate, clock: Clock, member: Person) -> None:
    lease = member.lease()
    clock.forward(days=2)
    run_due(climate)
    (span,) = spans(timeline(member))
    assert (span["kind"], span["status"]) == ("lease", "TERMINATED")
    assert member("DELETE", f"/leases/{lease['id']}").status_code == 204
    run_due(climate)
    assert spans(timeline(member)) == []


def test_an_unchanged_part_is_not_sent_again(member: Person, stranger: Person) -> None:
    tag = member("GET", f"/timeline{DAY}").headers["ETag"]
    again = member("GET", f"/timeline{DAY}", headers={"If-None-Match": tag})
    assert (again.status_code, again.get_data()) == (304, b"")
    stranger.lease()
    assert member("GET", f"/timeline{DAY}", headers={"If-None-Match": tag}).status_code == 200


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("?from=2030-01-02 00:00&to=2030-01-01 00:00", "to must be later than from"),
        ("?from=2030-01-01 00:00&to=2031-03-01 00:00", "to may be 400 days after from at most"),
        ("?group=colour", "group"),
        ("?limit=0", "limit"),
        ("?cursor=-1", "cursor"),
        ("?from=yesterday", "from"),
        ("?rows=1", "known are cursor, from"),
    ],
)
def test_what_is_refused(member: Person, query: str, said: str) -> None:
    answer = member("GET", f"/timeline{query}")
    assert answer.status_code == 400
    assert said in answer.json["error_message"]


def test_the_statements_do_not_grow_with_hosts_leases_or_history(
    climate: Climate, clock: Clock, engine: Engine, member: Person
) -> None:
    seen: list[str] = []

    def note(*executed: Any) -> None:
        seen.append(executed[2])

    def cost() -> int:
        before = len(seen)
        timeline(member, f"{DAY}&points=100")
        return len(seen) - before

    event.listen(engine, "before_cursor_execute", note)
    assert cost() == 4
    for place in range(3):
        member.lease(f"l{place}", reservations=[reservation(min=2, max=2)])
    clock.forward(days=2)
    run_due(climate)
    assert cost() == 4
    event.remove(engine, "before_cursor_execute", note)


def test_names_are_data_and_not_markup(member: Person, admin: Person) -> None:
    name = "<script>alert(1)</script>"
    member.lease(name)
    assert ADMIN.user_id not in json.dumps(timeline(member))
    assert spans(timeline(admin))[0]["lease_name"] == name
