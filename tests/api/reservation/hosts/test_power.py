"""The power of hosts over the API: set and never told, by hand, listed, reported; and what is refused."""

import json
from typing import Any

import pytest
from flask import Flask

from climate.context import Climate
from climate.power.simulated import MemoryDriver, Trouble
from climate.service.power import switching
from climate.store.hosts import power
from tests.api.reservation.api_clients import Person, reservation, run_due, written
from tests.conftest import Clock

PASSWORD = "correct horse battery"
MEMORY = {"driver": "memory", "settings": {"boot_seconds": 0, "shutdown_seconds": 0, "password": PASSWORD}, "watts": 90}
REDFISH = {"address": "https://bmc.example", "system": "/redfish/v1/Systems/1", "username": "root"}


def driver(app: Flask) -> MemoryDriver:
    made: Any = app.extensions["climate"].climate.power["memory"]
    assert isinstance(made, MemoryDriver)
    return made


def wire(admin: Person, number: int = 1, **changes: Any) -> dict[str, Any]:
    told: dict[str, Any] = admin.done(admin("PUT", f"/os-hosts/{number}/power", {**MEMORY, **changes}))["power"]
    return told


def test_what_is_set_is_shown_but_no_secret(admin: Person) -> None:
    made = wire(admin)
    assert made == {
        "id": "1",
        "name": "h1",
        "pool": "reservation",
        "driver": "memory",
        "settings": {"boot_seconds": 0.0, "shutdown_seconds": 0.0, "timeout_seconds": 10.0},
        "secrets": ["password"],
        "watts": 90,
        "on": True,
        "wanted": None,
        "wanted_at": None,
        "state": "unknown",
        "seen_at": None,
        "changed_at": None,
        "failures": 0,
        "error": "",
        "created_at": "2030-01-01 12:00:00.000000",
        "updated_at": None,
    }
    assert admin.get("/os-hosts/1/power")["power"] == made
    assert admin.get("/power")["power"] == [made]


def test_secrets_are_nowhere(
    app: Flask, admin: Person, climate: Climate, clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    """Neither in answers nor in logs, the journal, notices, any row as it is, or what objects say of themselves."""
    wire(admin)
    answers = [admin("PUT", "/os-hosts/1/power", {**MEMORY, "settings": {"password": PASSWORD, "boot_seconds": -1}})]
    driver(app).inject("h1", Trouble.REFUSES)
    answers += [admin("POST", "/os-hosts/1/power/off"), admin("POST", "/os-hosts/1/power/on")]
    answers += [admin("GET", path) for path in ("/os-hosts/1/power", "/power", "/notices", "/os-hosts/1/history")]
    with climate.engine.connect() as conn:
        supply = power.of(conn, [1])[1]
        rows = [
            str(list(conn.exec_driver_sql(f"SELECT * FROM {table}")))
            for table in ("journal", "host_power", "notices", "hosts")
        ]
    job = switching.Job(climate.engine, supply)  # type: ignore[arg-type]
    said = capsys.readouterr()
    told = [*(answer.get_data(as_text=True) for answer in answers), *rows, repr(supply), repr(job), *said]
    assert [answer.status_code for answer in answers] == [400, 409, 409, 200, 200, 200, 200]
    assert not [text for text in told if PASSWORD in text]
    assert "sealed" not in supply.secrets


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({"driver": "candle"}, "ipmi, memory, redfish"),
        ({"driver": "memory", "settings": {"boot_seconds": "soon"}}, "settings.boot_seconds"),
        ({"driver": "memory", "settings": {"colour": "red"}}, "settings.colour"),
        ({"driver": "memory", "settings": []}, "settings"),
        ({"driver": "memory", "watts": -1}, "watts"),
        ({"driver": "memory", "watts": True}, "watts"),
        ({"driver": "memory", "wats": 5}, "wats"),
        ({"driver": "redfish", "settings": REDFISH}, "settings.password"),
        ({"driver": "redfish", "settings": {**REDFISH, "password": "x", "address": "ftp://a"}}, "settings.address"),
        ({"driver": "memory", "settings": {str(n): n for n in range(100)}}, "64"),
        ({"settings": {}}, "driver"),
        ({"driver": None}, "driver"),
        ({"driver": "me\u0000mory"}, "U+0000"),
        ({"driver": "memory", "settings": {"password": "x" * 300}}, "settings.password"),
    ],
    ids=range(14),
)
def test_what_no_driver_accepts_is_refused(admin: Person, climate: Climate, body: dict[str, Any], says: str) -> None:
    before = written(climate.engine)
    answer = admin("PUT", "/os-hosts/1/power", body)
    assert (answer.status_code, written(climate.engine)) == (400, before)
    assert says in answer.json["error_message"]
    assert admin("GET", "/os-hosts/1/power").status_code == 404


@pytest.mark.parametrize("number", ["99", "x", "-1", "1e3"])
def test_hosts_that_there_are_not(admin: Person, number: str) -> None:
    for method, path in (("GET", ""), ("PUT", ""), ("DELETE", ""), ("POST", "/on"), ("POST", "/off")):
        body = MEMORY if method == "PUT" else None
        assert admin(method, f"/os-hosts/{number}/power{path}", body).status_code == 404


def test_on_and_off_by_hand(app: Flask, admin: Person) -> None:
    wire(admin)
    asked = admin.done(admin("POST", "/os-hosts/1/power/off"))["power"]
    assert (asked["wanted"], asked["on"], asked["state"]) == ("off", True, "on")
    seen = admin.done(admin("POST", "/os-hosts/1/power/off?hard=true"))["power"]
    assert (seen["on"], seen["state"], seen["changed_at"]) == (False, "off", "2030-01-01T12:00:00.000000")
    assert admin.done(admin("POST", "/os-hosts/1/power/on"))["power"]["wanted"] == "on"
    assert driver(app).machine("h1").switches == 2
    kinds = [one["kind"] for one in admin.get("/os-hosts/1/history")["history"]]
    assert kinds == ["HostEnrolled", "HostPowerSet", "HostSwitched"]


def test_a_host_on_its_way_off_does_not_turn_round(admin: Person) -> None:
    wire(admin, settings={"shutdown_seconds": 600})
    admin.done(admin("POST", "/os-hosts/1/power/off"))
    answer = admin("POST", "/os-hosts/1/power/on")
    assert (answer.status_code, "being switched off" in answer.json["error_message"]) == (409, True)


def test_who_is_in_use_is_not_switched_off(admin: Person, member: Person, climate: Climate, clock: Clock) -> None:
    for number in range(1, 9):
        wire(admin, number)
    everything = [reservation(min=8, max=8)]
    lease = member.lease(start_date="2030-01-01 12:05", end_date="2030-01-01 13:00", reservations=everything)
    soon = admin("POST", "/os-hosts/1/power/off")
    assert (soon.status_code, "is needed at 2030-01-01 12:05:00 UTC" in soon.json["error_message"]) == (409, True)
    clock.forward(minutes=6)
    run_due(climate)
    assert member.get(f"/leases/{lease['id']}")["lease"]["status"] == "ACTIVE"
    used = admin("POST", "/os-hosts/1/power/off")
    assert (used.status_code, "in the pool lent" in used.json["error_message"]) == (409, True)
    assert admin("POST", "/os-hosts/1/power/off?force=true").status_code == 200


def test_servers_keep_a_host_on(admin: Person, climate: Climate) -> None:
    wire(admin)
    climate.cloud._pool_of.pop("h1")  # type: ignore[attr-defined]
    climate.cloud.boot("somebody", "h1")  # type: ignore[attr-defined]
    answer = admin("POST", "/os-hosts/1/power/off")
    assert (answer.status_code, "1 servers are on it" in answer.json["error_message"]) == (409, True)


def test_a_supply_in_trouble_is_reported_and_wanted_no_longer(app: Flask, admin: Person) -> None:
    wire(admin)
    for trouble, status in ((Trouble.FAILS, 503), (Trouble.HANGS, 503), (Trouble.REFUSES, 409)):
        driver(app).inject("h1", trouble)
        answer = admin("POST", "/os-hosts/1/power/off")
        assert answer.status_code == status
        assert "the power supply of h1" in answer.json["error_message"]
        assert admin.get("/os-hosts/1/power")["power"]["wanted"] is None


def test_dry_runs_change_nothing(app: Flask, admin: Person) -> None:
    assert admin("PUT", "/os-hosts/1/power?dry_run=true", MEMORY).status_code == 200
    assert admin("GET", "/os-hosts/1/power").status_code == 404
    made = wire(admin)
    assert admin.done(admin("POST", "/os-hosts/1/power/off?dry_run=true"))["power"]["wanted"] == "off"
    assert admin("DELETE", "/os-hosts/1/power?dry_run=true").status_code == 204
    assert admin.get("/os-hosts/1/power")["power"] == made
    assert driver(app).calls == type(driver(app).calls)()


def test_clearing_a_host_that_is_off(admin: Person, climate: Climate) -> None:
    wire(admin)
    for _ in range(2):
        admin.done(admin("POST", "/os-hosts/1/power/off"))
    assert admin("DELETE", "/os-hosts/1/power").status_code == 409
    assert admin("DELETE", "/os-hosts/1/power?force=true").status_code == 204
    with climate.engine.connect() as conn:
        assert conn.exec_driver_sql("SELECT switched_on FROM hosts WHERE id = 1").scalar_one()
    assert admin("DELETE", "/os-hosts/1/power").status_code == 404


def test_pages(admin: Person) -> None:
    for number in (1, 3, 5):
        wire(admin, number)
    first = admin.get("/power?limit=2")
    assert [one["id"] for one in first["power"]] == ["1", "3"]
    assert first["power_links"]
    assert [one["id"] for one in admin.get("/power?limit=2&marker=3")["power"]] == ["5"]


def test_the_report(admin: Person, climate: Climate, clock: Clock) -> None:
    wire(admin)
    wire(admin, 2, watts=None)
    for number in (1, 2):
        for _ in range(2):
            admin.done(admin("POST", f"/os-hosts/{number}/power/off"))
    clock.forward(hours=10)
    whole = admin.get("/power/report")["report"]
    assert (whole["hours_off"], whole["kwh"]) == (20.0, 0.9)
    assert whole["hosts"] == [
        {"id": "1", "name": "h1", "hours_off": 10.0},
        {"id": "2", "name": "h2", "hours_off": 10.0},
    ]
    part = admin.get("/power/report?from=2030-01-01T15:00:00Z&to=2030-01-01T16:00:00Z")["report"]
    assert (part["hours_off"], part["kwh"]) == (2.0, 0.09)
    assert admin.get("/power/report?to=2030-01-01T11:00:00Z")["report"]["hours_off"] == 0.0


@pytest.mark.parametrize(
    "query",
    [
        "from=2031-01-01 10:00",
        "from=2029-01-01 10:00&to=2028-01-01 10:00",
        "from=2020-01-01 10:00",
        "from=x",
        "since=now",
    ],
)
def test_reports_that_nobody_can_make(admin: Person, query: str) -> None:
    assert admin("GET", f"/power/report?{query}").status_code == 400


def test_the_document_knows_the_drivers(app: Flask, admin: Person) -> None:
    schemas = app.test_client().get("/openapi.json").json["components"]["schemas"]
    order = schemas["PowerOrder"]["properties"]
    assert order["driver"]["enum"] == ["ipmi", "memory", "redfish"]
    assert len(order["settings"]["anyOf"]) == 3
    assert schemas["RedfishSettings"]["properties"]["password"]["writeOnly"]
    assert "example" not in json.dumps(schemas["RedfishSettings"]["properties"]["password"])
