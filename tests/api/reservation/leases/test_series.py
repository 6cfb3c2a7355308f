"""Series of leases over HTTP: creation, changes, and refusals."""

from collections.abc import Mapping
from typing import Any

import pytest
from flask import Flask

from climate.context import Climate
from climate.service.journal import consistency_check
from tests.api.reservation.api_clients import Person, order, reservation

EVERY_HOST = [reservation(min=8, max=8)]
DATES = {"start_date": "2030-02-05 10:00", "end_date": "2030-02-05 12:00"}
"""A Tuesday, 11:00 to 13:00 in Berlin."""

Body = dict[str, Any]


def asked(
    rule: str = "FREQ=WEEKLY;COUNT=3", make: str = "all", zone: str = "Europe/Berlin", **more: Any
) -> dict[str, Any]:
    """A series of one host on Tuesdays in February 2030."""
    body = order(name="training", **DATES) | {"repeat": {"rule": rule, "zone": zone, "make": make}} | more
    return {key: value for key, value in body.items() if value != "absent"}


def made(member: Person, **more: Any) -> Body:
    series: Body = member.done(member("POST", "/series", asked(**more)), 201)["series"]
    return series


def starts(series: Mapping[str, Any]) -> list[str]:
    return [one["start_date"][:16] for one in series["occurrences"]]


def fits(series: Mapping[str, Any]) -> list[bool]:
    return [one["fits"] for one in series["occurrences"]]


def taken(person: Person, day: str) -> Body:
    """A lease of every host at the time of an occurrence."""
    dates = {"start_date": f"{day} 10:30", "end_date": f"{day} 11:00"}
    return person.lease("other", reservations=EVERY_HOST, **dates)


def test_a_series_is_a_lease_for_each_occurrence(member: Person, climate: Climate) -> None:
    series = made(member)
    assert starts(series) == ["2030-02-05T10:00", "2030-02-12T10:00", "2030-02-19T10:00"]
    assert series["leases"] == 3
    leases = member.get(f"/leases?series_id={series['id']}")["leases"]
    assert [lease["name"] for lease in leases] == [f"training-2030-02-{day}" for day in ("05", "12", "19")]
    assert {lease["series_id"] for lease in leases} == {series["id"]}
    assert [lease["id"] for lease in leases] == [one["lease_id"] for one in series["occurrences"]]
    assert member.get(f"/series/{series['id']}")["series"] == series
    assert [one["id"] for one in member.get("/series")["series"]] == [series["id"]]
    assert "series_id" not in member.lease("single")
    assert consistency_check.differences(climate) == []


def test_occurrences_keep_their_local_time_over_a_change_of_daylight_saving(member: Person) -> None:
    dates = {"start_date": "2030-03-26T10:00:00+01:00", "end_date": "2030-03-26T11:00:00+01:00"}
    series = made(member, **dates)
    assert starts(series) == ["2030-03-26T09:00", "2030-04-02T08:00", "2030-04-09T08:00"]
    assert [one["end_date"][11:16] for one in series["occurrences"]] == ["10:00", "09:00", "09:00"]


def test_other_dates_of_the_lease_keep_their_distance(member: Person) -> None:
    events = [{"event_type": "note", "event_date": "2030-02-05 10:15"}]
    series = made(member, before_end_date="2030-02-05 11:30", events=events)
    last = member.get(f"/leases/{series['occurrences'][-1]['lease_id']}")["lease"]
    times = {event["event_type"]: event["time"][:16] for event in last["events"]}
    assert times["note"] == "2030-02-19T10:15"
    assert times["before_end_lease"] == "2030-02-19T11:30"


def test_several_occurrences_of_a_day_have_their_time_in_the_name(member: Person) -> None:
    series = made(member, rule="FREQ=DAILY;BYHOUR=14,16;COUNT=3")
    assert [one["name"][-15:] for one in series["occurrences"]] == [
        "2030-02-05-1400",
        "2030-02-05-1600",
        "2030-02-06-1400",
    ]


def test_all_or_none(member: Person, stranger: Person, climate: Climate) -> None:
    taken(stranger, "2030-02-12")
    refused = member("POST", "/series", asked())
    assert refused.status_code == 409
    assert "1 of 3 occurrences" in refused.json["error_message"]
    assert "training-2030-02-12" in refused.json["error_message"]
    (clash,) = refused.json["occurrences"]
    assert clash["start_date"] == "2030-02-12T10:00:00Z"
    assert "8 match, 0 of them free" in clash["reason"]
    assert member.get("/leases")["leases"] == member.get("/series")["series"] == []
    assert consistency_check.differences(climate) == []


def test_those_that_fit(member: Person, stranger: Person, climate: Climate) -> None:
    taken(stranger, "2030-02-12")
    series = made(member, make="fitting")
    assert fits(series) == [True, False, True]
    skipped = series["occurrences"][1]
    assert skipped["lease_id"] is None
    assert "Not enough hosts" in skipped["reason"]
    assert skipped["binding"]["name"] == "hosts"
    later = next(one for one in skipped["alternatives"] if one["kind"] == "later")
    assert later["offer"]["start_date"][:16] == "2030-02-12T11:00"
    taker = member("POST", "/holds", {"offer": later["offer"]["id"], "name": "instead"})
    assert taker.status_code == 201, "an alternative is an offer"
    shown = member.get(f"/series/{series['id']}")["series"]
    assert [one["reason"] for one in shown["occurrences"]] == [one["reason"] for one in series["occurrences"]]
    assert shown["leases"] == 2
    assert consistency_check.differences(climate) == []


def test_what_was_skipped_keeps_its_name(member: Person, stranger: Person) -> None:
    taken(stranger, "2030-02-05")
    series = made(member, rule="FREQ=DAILY;BYHOUR=11,14;COUNT=2", make="fitting")
    assert fits(series) == [False, True]
    shown = member.get(f"/series/{series['id']}")["series"]
    assert [one["name"] for one in shown["occurrences"]] == ["training-2030-02-05-1100", "training-2030-02-05-1400"]
    renamed = member.done(member("PUT", f"/series/{series['id']}", {"name": "course"}), 200)["series"]
    assert [one["name"] for one in renamed["occurrences"]] == ["course-2030-02-05-1100", "course-2030-02-05-1400"]


def test_none_that_fits_is_a_refusal(member: Person, stranger: Person) -> None:
    for day in ("05", "12", "19"):
        taken(stranger, f"2030-02-{day}")
    assert member("POST", "/series", asked(make="fitting")).status_code == 409
    assert member.get("/series")["series"] == []


@pytest.mark.parametrize("make", ["all", "fitting"])
def test_a_dry_run_shows_each_occurrence_and_creates_nothing(member: Person, stranger: Person, make: str) -> None:
    taken(stranger, "2030-02-19")
    plan = member.done(member("POST", "/series?dry_run=true", asked(make=make)))["series"]
    assert fits(plan) == [True, True, False]
    assert plan["occurrences"][2]["alternatives"]
    assert member.get("/leases")["leases"] == member.get("/series")["series"] == []


def test_limits_count_each_occurrence(member: Person, admin: Person) -> None:
    admin.done(admin("PUT", "/limits/project", {"leases": 2}))
    refused = member("POST", "/series", asked())
    assert refused.status_code == 409
    assert "leases" in refused.json["occurrences"][0]["reason"]
    assert fits(made(member, make="fitting")) == [True, True, False]


def test_a_repeated_request_creates_one_series(member: Person) -> None:
    sent: Body = {"headers": {"Idempotency-Key": "k1"}}
    first = member.done(member("POST", "/series", asked(), **sent), 201)
    assert member.done(member("POST", "/series", asked(), **sent), 201) == first
    assert len(member.get("/leases")["leases"]) == 3
    other = member("POST", "/series", asked(rule="FREQ=DAILY;COUNT=2"), **sent)
    assert other.status_code == 422
    assert member("POST", "/leases", order(), **sent).status_code == 422, "a key is of one request"


def test_a_repeated_request_is_answered_as_before_whatever_has_happened_since(member: Person) -> None:
    for path in ("/series", "/leases"):
        sent: Body = {"headers": {"Idempotency-Key": f"of {path}"}}
        first = member("POST", path, asked(), **sent)
        series = member.done(first, 201)["series"]
        member.done(member("PUT", f"/series/{series['id']}", {"name": "course", "move_by": 60}))
        assert member("DELETE", f"/leases/{series['occurrences'][0]['lease_id']}").status_code == 204
        assert member.done(member("POST", path, asked(), **sent), 201)["series"] == series
        assert member("DELETE", f"/series/{series['id']}").status_code == 204
        again = member("POST", path, asked(), **sent)
        assert member.done(again, 201)["series"] == series
        assert again.headers["ETag"] == first.headers["ETag"]
        assert member.get("/leases")["leases"] == []


def test_a_lease_that_repeats_is_a_series(member: Person, stranger: Person, climate: Climate) -> None:
    taken(stranger, "2030-02-12")
    answer = member.done(member("POST", "/leases", asked(make="fitting")), 201)
    series = answer["series"]
    assert fits(series) == [True, False, True]
    assert series["occurrences"][1]["alternatives"]
    assert member.get(f"/leases/{series['occurrences'][0]['lease_id']}")["lease"] == answer["lease"]
    assert answer["lease"]["series_id"] == series["id"]
    shown = member.get(f"/series/{series['id']}")["series"]
    assert starts(shown) == starts(made(member, make="fitting"))
    refused = member("POST", "/leases", asked())
    assert refused.status_code == 409
    assert [one["start_date"] for one in refused.json["occurrences"]] == ["2030-02-12T10:00:00Z"]
    assert consistency_check.differences(climate) == []


def test_a_dry_run_of_a_lease_that_repeats(member: Person, stranger: Person) -> None:
    taken(stranger, "2030-02-05")
    plan = member.done(member("POST", "/leases?dry_run=true", asked()))
    assert fits(plan["series"]) == [False, True, True]
    assert plan["lease"]["start_date"][:10] == "2030-02-12"
    for day in ("12", "19"):
        taken(stranger, f"2030-02-{day}")
    nothing = member.done(member("POST", "/leases?dry_run=true", asked()))
    assert nothing["lease"] is None
    assert fits(nothing["series"]) == [False] * 3
    assert member.get("/series")["series"] == member.get("/leases")["leases"] == []


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"hold_seconds": 60}, "hold_seconds: not together with repeat"),
        ({"wait": {}}, "wait: not together with repeat"),
        ({"hold": "00000000-0000-4000-8000-000000000000"}, "not together with hold"),
        ({"name": "x" * 65}, "1 to 64 characters"),
        ({"repeat": {}}, "rule"),
        ({"repeat": "FREQ=DAILY;COUNT=2"}, "repeat"),
        ({"repeat": [1]}, "repeat"),
        ({"repeat": {"rule": "FREQ=DAILY;COUNT=2", "zone": "Europe/Atlantis"}}, "not a time zone"),
        ({"repeat": {"rule": "FREQ=DAILY"}}, "must end"),
        ({"start_date": "absent"}, "start_date"),
        ({"reservations": [reservation(zone="north")]}, "zone"),
    ],
    ids=lambda one: str(one)[:40],
)
def test_refused_leases_that_repeat(standing: tuple[Flask, Climate], more: Body, said: str) -> None:
    refused = Person(standing[0], "member")("POST", "/leases", asked(**more))
    assert refused.status_code == 400, refused.json
    assert said in refused.json["error_message"]


def changed(member: Person, series: Mapping[str, Any], **body: Any) -> Body:
    result: Body = member.done(member("PUT", f"/series/{series['id']}", body))["series"]
    return result


def test_occurrences_move_by_a_difference_of_local_times(member: Person, climate: Climate) -> None:
    dates = {"start_date": "2030-03-26 09:00", "end_date": "2030-03-26 10:00"}
    series = made(member, **dates)
    assert starts(changed(member, series, move_by="P1DT1H")) == [
        "2030-03-27T10:00",
        "2030-04-03T09:00",
        "2030-04-10T09:00",
    ]
    leases = member.get(f"/leases?series_id={series['id']}")["leases"]
    assert [lease["name"] for lease in leases] == [f"training-2030-{day}" for day in ("03-27", "04-03", "04-10")]
    assert consistency_check.differences(climate) == []


def test_a_local_time_that_does_not_exist_is_the_moment_of_the_change(member: Person) -> None:
    dates = {"start_date": "2030-03-30 00:00", "end_date": "2030-03-30 00:30"}  # 01:00 in Berlin
    series = made(member, rule="FREQ=DAILY;COUNT=3", **dates)
    assert starts(series) == ["2030-03-30T00:00", "2030-03-31T00:00", "2030-03-31T23:00"]
    assert starts(changed(member, series, move_by=5400)) == ["2030-03-30T01:30", "2030-03-31T01:00", "2030-04-01T00:30"]


def test_changes_from_one_on_and_one_by_one(member: Person, climate: Climate) -> None:
    series = made(member)
    ids = [one["lease_id"] for one in series["occurrences"]]
    assert starts(changed(member, series, move_by=3600, **{"from": ids[1]})) == [
        "2030-02-05T10:00",
        "2030-02-12T11:00",
        "2030-02-19T11:00",
    ]
    member.done(member("PUT", f"/leases/{ids[2]}", {"name": "finale", "end_date": "2030-02-19 15:00"}))
    after = changed(member, series, name="course", extend_by="-PT30M")
    assert [one["name"] for one in after["occurrences"]] == ["course-2030-02-05", "course-2030-02-12", "finale"]
    assert [one["end_date"][11:16] for one in after["occurrences"]] == ["11:30", "12:30", "14:30"]
    assert after["name"] == "course"
    assert consistency_check.differences(climate) == []


def test_changes_together_are_all_or_nothing(member: Person, stranger: Person, climate: Climate) -> None:
    series = made(member)
    stranger.lease("o", reservations=EVERY_HOST, start_date="2030-02-12 13:00", end_date="2030-02-12 14:00")
    refused = member("PUT", f"/series/{series['id']}", {"extend_by": 7200})
    assert refused.status_code == 409
    (clash,) = refused.json["occurrences"]
    assert clash["lease_id"] == series["occurrences"][1]["lease_id"]
    assert member.get(f"/series/{series['id']}")["series"] == series
    assert consistency_check.differences(climate) == []


def test_a_dry_run_of_a_change_keeps_all_as_it_is(member: Person) -> None:
    series = made(member)
    plan = member.done(member("PUT", f"/series/{series['id']}?dry_run=true", {"move_by": 3600}))["series"]
    assert starts(plan)[0] == "2030-02-05T11:00"
    assert member("DELETE", f"/series/{series['id']}?dry_run=true").status_code == 204
    assert member.get(f"/series/{series['id']}")["series"] == series


def test_occurrences_may_follow_one_another_closely(member: Person) -> None:
    dates = {"start_date": "2030-02-05 10:00", "end_date": "2030-02-06 10:00"}
    series = made(member, rule="FREQ=DAILY;COUNT=4", reservations=EVERY_HOST, **dates)
    assert starts(changed(member, series, move_by=3600))[0] == "2030-02-05T11:00"
    assert starts(changed(member, series, move_by=-7200))[3] == "2030-02-08T09:00"


def test_deletion(member: Person, climate: Climate) -> None:
    series = made(member)
    ids = [one["lease_id"] for one in series["occurrences"]]
    assert member("DELETE", f"/series/{series['id']}?from={ids[1]}").status_code == 204
    assert [one["lease_id"] for one in member.get(f"/series/{series['id']}")["series"]["occurrences"]] == ids[:1]
    assert member("DELETE", f"/series/{series['id']}").status_code == 204
    assert member.get("/leases")["leases"] == member.get("/series")["series"] == []
    assert member("GET", f"/series/{series['id']}").status_code == 404
    assert consistency_check.differences(climate) == []


def test_a_change_for_an_outdated_version_is_refused(member: Person) -> None:
    series = made(member)
    first = {"headers": {"If-Match": '"1"'}}
    path = f"/series/{series['id']}"
    assert member("PUT", path, {"move_by": 60}, **first).headers["ETag"] == '"2"'
    assert member("PUT", path, {"move_by": 60}, **first).status_code == 412
    assert member("DELETE", path, **first).status_code == 412
    assert starts(member.get(path)["series"])[0] == "2030-02-05T10:01"


def test_roles_and_other_projects(member: Person, reader: Person, stranger: Person, admin: Person) -> None:
    series = made(member)
    path = f"/series/{series['id']}"
    assert reader("POST", "/series", asked()).status_code == 403
    assert reader("PUT", path, {"move_by": 60}).status_code == 403
    assert reader("DELETE", path).status_code == 403
    assert reader.get(path)["series"] == admin.get(path)["series"] == series
    assert stranger.get("/series")["series"] == []
    assert stranger.get(f"/leases?series_id={series['id']}")["leases"] == []
    for method, body in (("GET", None), ("PUT", {"move_by": 60}), ("DELETE", None)):
        assert stranger(method, path, body).status_code == 404
    assert len(admin.get("/series")["series"]) == 1


REFUSED: list[tuple[Body, str]] = [
    ({"rule": ""}, "rule"),
    ({"rule": "every Tuesday"}, "not one of its parts"),
    ({"rule": "FREQ=WEEKLY"}, "must end"),
    ({"rule": "FREQ=WEEKLY;COUNT=2;UNTIL=20300301T000000Z"}, "either COUNT or UNTIL"),
    ({"rule": "FREQ=WEEKLY;COUNT=0"}, "COUNT must be 1 to 52"),
    ({"rule": "FREQ=WEEKLY;COUNT=-1"}, "COUNT"),
    ({"rule": "FREQ=DAILY;COUNT=53"}, "CLIMATE_SERIES_OCCURRENCES"),
    ({"rule": "FREQ=DAILY;COUNT=1000000000000"}, "COUNT"),
    ({"rule": "FREQ=DAILY;COUNT=ten"}, "COUNT"),
    ({"rule": "FREQ=DAILY;COUNT=١"}, "COUNT"),
    ({"rule": "FREQ=SECONDLY;COUNT=2"}, "FREQ"),
    ({"rule": "FREQ=MINUTELY;COUNT=2"}, "FREQ"),
    ({"rule": "FREQ=HOURLY;COUNT=2"}, "BYHOUR"),
    ({"rule": "COUNT=2"}, "FREQ"),
    ({"rule": "FREQ=DAILY;FREQ=DAILY;COUNT=2"}, "given twice"),
    ({"rule": "FREQ=DAILY;UNTIL=20300301T000000"}, "UNTIL must be a time in UTC"),
    ({"rule": "FREQ=DAILY;UNTIL=20300301"}, "UNTIL"),
    ({"rule": "FREQ=DAILY;UNTIL=20309901T000000Z"}, "UNTIL"),
    ({"rule": "FREQ=DAILY;UNTIL=20310301T000000Z"}, "more than 52 occurrences"),
    ({"rule": "FREQ=YEARLY;UNTIL=30300301T000000Z"}, "UNTIL may be"),
    ({"rule": "FREQ=DAILY;UNTIL=20200301T000000Z"}, "none of its occurrences"),
    ({"rule": "FREQ=YEARLY;INTERVAL=1000;COUNT=2"}, "only 1"),
    ({"rule": "FREQ=YEARLY;INTERVAL=1001;COUNT=2"}, "INTERVAL"),
    ({"rule": "FREQ=DAILY;INTERVAL=0;COUNT=2"}, "INTERVAL"),
    ({"rule": "FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30;COUNT=2"}, "none of its occurrences"),
    ({"rule": "FREQ=MONTHLY;BYDAY=MO;BYSETPOS=6;COUNT=2"}, "none of its occurrences"),
    ({"rule": "FREQ=MONTHLY;BYSETPOS=1;COUNT=2"}, "BYSETPOS"),
    ({"rule": "FREQ=MONTHLY;BYDAY=MO;BYSETPOS=0;COUNT=2"}, "BYSETPOS"),
    ({"rule": "FREQ=MONTHLY;BYDAY=MO;BYSETPOS=367;COUNT=2"}, "BYSETPOS"),
    ({"rule": "FREQ=WEEKLY;BYDAY=XX;COUNT=2"}, "BYDAY"),
    ({"rule": "FREQ=WEEKLY;BYDAY=1MO;COUNT=2"}, "needs FREQ"),
    ({"rule": "FREQ=WEEKLY;BYMONTHDAY=3;COUNT=2"}, "BYMONTHDAY"),
    ({"rule": "FREQ=MONTHLY;BYDAY=54MO;COUNT=2"}, "BYDAY"),
    ({"rule": "FREQ=DAILY;BYHOUR=24;COUNT=2"}, "BYHOUR"),
    ({"rule": "FREQ=DAILY;BYSECOND=1;COUNT=2"}, "BYSECOND"),
    ({"rule": "FREQ=DAILY;WKST=1;COUNT=2"}, "WKST"),
    ({"rule": "FREQ=DAILY;COUNT=2\nDTSTART:20300101"}, "COUNT"),
    ({"rule": "FREQ=DAILY;BYHOUR=" + ",".join(["1"] * 500_000) + ";COUNT=2"}, "rule"),
    ({"rule": 7}, "rule"),
    ({"zone": "Europe/Atlantis"}, "not a time zone"),
    ({"zone": "../etc/passwd"}, "not a time zone"),
    ({"zone": "localtime"}, "not a time zone"),
    ({"zone": "right/UTC"}, "not a time zone"),
    ({"zone": ""}, "zone"),
    ({"make": "some"}, "make"),
    ({"more": 1}, "Unknown parameter"),
]


@pytest.mark.parametrize(("repeat", "said"), REFUSED, ids=[str(one[0])[:60] for one in REFUSED])
def test_wrong_rules(standing: tuple[Flask, Climate], repeat: Body, said: str) -> None:
    member = Person(standing[0], "member")
    whole = {"rule": "FREQ=WEEKLY;COUNT=3", "zone": "Europe/Berlin", "make": "all"} | repeat
    refused = member("POST", "/series", asked() | {"repeat": whole})
    assert refused.status_code == 400, refused.json
    assert said in refused.json["error_message"]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"repeat": "absent"}, "repeat"),
        ({"repeat": None}, "repeat"),
        ({"name": "x" * 65}, "64"),
        ({"start_date": "2029-12-31 10:00", "end_date": "2029-12-31 12:00"}, "Start date"),
        ({"start_date": "2020-01-01 10:00"}, "730 days"),
        ({"end_date": "2030-02-05 10:00"}, "End date"),
        ({"end_date": "absent"}, "end_date"),
        ({"start_date": "2199-12-30 10:00", "end_date": "2199-12-30 12:00"}, "2199"),
        ({"hold_seconds": 5}, "Unknown parameter"),
        ({"reservations": [reservation(zone="north")]}, "zone cannot be used in a series"),
        ({"reservations": [{"resource_type": "moon"}]}, "moon"),
    ],
)
def test_wrong_leases(standing: tuple[Flask, Climate], more: Body, said: str) -> None:
    member = Person(standing[0], "member")
    refused = member("POST", "/series", asked(**more))
    assert refused.status_code == 400, refused.json
    assert said in refused.json["error_message"]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({}, "nothing to change"),
        ({"from": "00000000-0000-4000-8000-000000000000"}, "nothing to change"),
        ({"move_by": 60, "from": "x"}, "from"),
        ({"move_by": 0}, "move_by"),
        ({"move_by": "soon"}, "move_by"),
        ({"move_by": 1.5}, "move_by"),
        ({"move_by": True}, "move_by"),
        ({"move_by": "--PT1H"}, "move_by"),
        ({"extend_by": 10**12}, "extend_by"),
        ({"name": " "}, "name"),
        ({"rules": "FREQ=DAILY;COUNT=2"}, "Unknown parameter"),
    ],
)
def test_wrong_changes(standing: tuple[Flask, Climate], body: Body, said: str) -> None:
    refused = Person(standing[0], "member")("PUT", "/series/00000000-0000-4000-8000-000000000000", body)
    assert refused.status_code == 400, refused.json
    assert said in refused.json["error_message"]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"extend_by": -7200}, 409),
        ({"move_by": "-P60D"}, 409),
        ({"move_by": 60, "from": "00000000-0000-4000-8000-000000000000"}, 400),
    ],
)
def test_impossible_changes(member: Person, body: Body, status: int) -> None:
    series = made(member)
    assert member("PUT", f"/series/{series['id']}", body).status_code == status
    assert member.get(f"/series/{series['id']}")["series"] == series


@pytest.mark.parametrize("body", [{"move_by": "P1D"}, {"extend_by": 3 * 86400}])
def test_no_occurrence_ends_after_the_last_possible_date(member: Person, body: Body) -> None:
    dates = {"start_date": "2199-12-29 10:00", "end_date": "2199-12-30 12:00"}
    series = made(member, rule="FREQ=DAILY;COUNT=1", **dates)
    assert member("PUT", f"/series/{series['id']}", {"move_by": 60}).status_code == 200
    refused = member("PUT", f"/series/{series['id']}", body)
    assert refused.status_code == 409, refused.json
    assert "2199-12-31, the last possible date" in refused.json["error_message"]
