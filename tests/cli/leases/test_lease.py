"""climate lease: what is sent, what is shown, what is waited for."""

from typing import Any

import pytest

from tests.cli.conftest import Cli
from tests.cli.fake_server import Wire

LEASES = "/reservation/v1/leases"


@pytest.mark.parametrize(
    ("options", "start", "end"),
    [
        (("--for", "6h"), "2030-01-01T12:00:00Z", "2030-01-01T18:00:00Z"),
        (("--end", "+6h"), "now", "2030-01-01T18:00:00Z"),
        (("--start", "+30m", "--for", "1d12h"), "2030-01-01T12:30:00Z", "2030-01-03T00:30:00Z"),
        (("--start", "2030-02-01 08:00", "--for", "90s"), "2030-02-01T08:00:00Z", "2030-02-01T08:01:30Z"),
        (
            ("--start", "2030-02-01T08:00:05+02:00", "--end", "2030-02-02"),
            "2030-02-01T06:00:05Z",
            "2030-02-02T00:00:00Z",
        ),
        (("--start", "tomorrow 08:00", "--end", "+2d"), "2030-01-02T08:00:00Z", "2030-01-03T12:00:00Z"),
    ],
)
def test_dates_are_those_of_the_servers_clock_in_utc(
    cli: Cli, wire: Wire, options: tuple[str, ...], start: str, end: str
) -> None:
    assert cli("lease", "create", "one", *options, "--hosts", "2").code == 0
    body = wire.sent("POST", LEASES).body
    assert (body["start_date"], body["end_date"]) == (start, end)


def test_a_lease_of_hosts_is_sent_as_the_peers_client_does(cli: Cli, wire: Wire) -> None:
    wanted = '["and", [">=", "$vcpus", "4"], [">", "$gpu_count", "1"]]'
    cli("lease", "create", "one", "--for", "1h", "--min", "1", "--max", "3", "--resource", wanted)
    body = wire.sent("POST", LEASES).body
    assert set(body) == {"name", "start_date", "end_date", "before_end_date", "events", "reservations"}
    assert body["reservations"] == [
        {
            "resource_type": "physical:host", "min": 1, "max": 3,
            "hypervisor_properties": "", "resource_properties": wanted,
        }
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("options", "keys"),
    [
        (("--zone", "left"), {"zone": "left"}),
        (("--cell", "top!left"), {"cell": "top!left"}),
        (("--across",), {"across": True}),
    ],
)
def test_hosts_can_be_asked_of_a_zone_or_cell(
    cli: Cli, wire: Wire, options: tuple[str, ...], keys: dict[str, object]
) -> None:
    assert cli("lease", "create", "one", "--for", "1h", "--hosts", "2", *options).code == 0
    (one,) = wire.sent("POST", LEASES).body["reservations"]
    assert {key: one[key] for key in ("zone", "cell", "across") if key in one} == keys


def test_a_lease_can_be_held_and_confirmed(cli: Cli, wire: Wire) -> None:
    cli("lease", "create", "one", "--for", "1h", "--hosts", "1", "--hold", "5m")
    assert wire.sent("POST", LEASES).body["hold_seconds"] == 300
    said = cli("lease", "create", "one", "--for", "1h", "--hosts", "1", "--hold", "5m", "--wait")
    assert said.code == 2
    assert "--wait and --hold exclude each other" in said.err


def test_a_server_can_be_reserved(cli: Cli, wire: Wire) -> None:
    cli("lease", "create", "one", "--for", "1h", "--server", "s1", "--on-end", "suspend")
    assert wire.sent("POST", LEASES).body["reservations"] == [
        {"resource_type": "virtual:instance", "resource_id": "s1", "on_end": "suspend"}
    ]


def test_additional_events_are_named_with_their_times(cli: Cli, wire: Wire) -> None:
    named = ("--event", "remind=2030-01-02 11:00", "--event", "farewell=2030-01-02 11:30")
    assert cli("lease", "create", "one", "--for", "1h", "--hosts", "1", *named).code == 0
    assert wire.sent("POST", LEASES).body["events"] == [
        {"event_type": "remind", "event_date": "2030-01-02T11:00:00Z"},
        {"event_type": "farewell", "event_date": "2030-01-02T11:30:00Z"},
    ]


@pytest.mark.parametrize("wrong", ["remind", "=now", "remind=soon"])
def test_an_additional_event_without_a_time_is_refused(cli: Cli, wrong: str) -> None:
    said = cli("lease", "create", "one", "--for", "1h", "--hosts", "1", "--event", wrong)
    assert said.code == 2
    assert "--event" in said.err


SIZE = ("--vcpus", "2", "--memory-mb", "512", "--disk-gb", "5")
ROOM = {"resource_type": "virtual:instance", "amount": 3, "vcpus": 2, "memory_mb": 512, "disk_gb": 5}
HOSTS = {"resource_type": "physical:host", "min": 1, "max": 1, "hypervisor_properties": "", "resource_properties": ""}


@pytest.mark.parametrize(
    ("options", "sent"),
    [
        (("--servers", "3", *SIZE), ROOM),
        (("--servers", "3", *SIZE, "--affinity", "together"), {**ROOM, "affinity": True}),
        (("--servers", "3", *SIZE, "--affinity", "apart"), {**ROOM, "affinity": False}),
        (("--servers", "3", *SIZE, "--affinity", "any"), {**ROOM, "affinity": None}),
        (
            ("--servers", "3", *SIZE, "--resource", '["==", "$ssd", "yes"]'),
            {**ROOM, "resource_properties": '["==", "$ssd", "yes"]'},
        ),
        (("--servers", "3", *SIZE, "--grace", "10m"), {**ROOM, "grace_period": 600}),
        (
            ("--flavor", "m1.tiny", "--servers", "2"),
            {"resource_type": "flavor:instance", "flavor_id": "m1.tiny", "amount": 2},
        ),
        (
            ("--hosts", "1", "--on-end", "recycle", "--grace", "1h"),
            {**HOSTS, "on_end": "recycle", "grace_period": 3600},
        ),
        (("--hosts", "1", "--grace", "0s"), {**HOSTS, "grace_period": 0}),
    ],
)
def test_room_for_servers_is_reserved_by_its_size_or_a_flavor_and_any_of_it_with_an_end(
    cli: Cli, wire: Wire, options: tuple[str, ...], sent: dict[str, Any]
) -> None:
    assert cli("lease", "create", "one", "--for", "1h", *options).code == 0
    assert wire.sent("POST", LEASES).body["reservations"] == [sent]


@pytest.mark.parametrize(
    ("options", "change"),
    [
        (("--servers", "4"), {"amount": 4}),
        (("--affinity", "any", "--vcpus", "1"), {"affinity": None, "vcpus": 1}),
        (("--on-end", "release", "--grace", "5m"), {"on_end": "release", "grace_period": 300}),
    ],
)
def test_room_and_the_end_can_be_changed(
    cli: Cli, wire: Wire, options: tuple[str, ...], change: dict[str, Any]
) -> None:
    lease = wire.add_lease("one")
    assert cli("lease", "set", "one", *options).code == 0
    number = lease["reservations"][0]["id"]
    assert wire.sent("PUT", f"{LEASES}/{lease['id']}").body == {"reservations": [{"id": number, **change}]}


def test_a_create_carries_a_key_so_that_it_can_be_repeated(cli: Cli, wire: Wire) -> None:
    cli("lease", "create", "one", "--for", "1h")
    cli("lease", "create", "one", "--for", "1h", "--idempotency-key", "mine")
    keys = [asked.headers["Idempotency-Key"] for asked in wire.asked if asked.method == "POST" and asked.path == LEASES]
    assert len(keys[0]) == 36
    assert keys[1] == "mine"


def test_times_are_shown_in_utc_with_zone(cli: Cli, wire: Wire) -> None:
    wire.add_lease("one")
    shown = cli("lease", "show", "one", "-f", "json").data
    assert shown["start_date"] == "2030-01-01T12:00:00Z"
    assert shown["created_at"] == "2030-01-01T11:00:00.250000Z"


def test_a_name_that_two_leases_have_is_a_conflict_that_lists_the_ids(cli: Cli, wire: Wire) -> None:
    ids = [wire.add_lease("one")["id"], wire.add_lease("one")["id"]]
    ran = cli("lease", "show", "one")
    assert ran.code == 5
    assert all(lease_id in ran.err for lease_id in ids)


def test_a_name_that_no_lease_has_is_not_found(cli: Cli) -> None:
    ran = cli("lease", "delete", "nothing")
    assert (ran.code, ran.out) == (3, "")


def test_a_lease_is_found_by_name_on_a_later_page(cli: Cli, wire: Wire) -> None:
    for number in range(1101):
        wire.add_lease(f"lease-{number}")
    assert cli("lease", "show", "lease-1100", "-f", "value", "-c", "name").out == "lease-1100\n"
    assert len(cli("lease", "list", "-f", "json").data) == 1101


def test_wait_comes_back_when_the_lease_is_active(cli: Cli, wire: Wire) -> None:
    lease = wire.add_lease("one")
    wire.becoming[lease["id"]] = ["PENDING", "STARTING", "ACTIVE"]
    assert cli("lease", "wait", lease["id"], "-f", "json").data["status"] == "ACTIVE"


@pytest.mark.parametrize(
    ("ahead", "arguments", "code"),
    [
        (["PENDING", "ERROR"], ("--for", "ACTIVE"), 1),
        (["TERMINATED"], ("--for", "ACTIVE"), 1),
        (["gone"], ("--for", "ACTIVE"), 1),
        (["PENDING"], ("--timeout", "1s"), 7),
        (["DELETING", "gone"], ("--for", "DELETED"), 0),
    ],
)
def test_wait_ends_when_it_is_pointless_or_too_long(
    cli: Cli, wire: Wire, ahead: list[str], arguments: tuple[str, ...], code: int
) -> None:
    lease = wire.add_lease("one")
    wire.becoming[lease["id"]] = ahead
    assert cli("lease", "wait", lease["id"], *arguments).code == code


def test_delete_waits_until_it_is_gone(cli: Cli, wire: Wire) -> None:
    lease = wire.add_lease("one")
    assert cli("lease", "delete", "one", "--wait").code == 0
    assert lease["status"] == "gone"


def test_extend_adds_to_the_end_that_it_saw(cli: Cli, wire: Wire) -> None:
    lease = wire.add_lease("one")
    assert cli("lease", "extend", "one", "2h").code == 0
    sent = wire.sent("PUT", f"{LEASES}/{lease['id']}")
    assert sent.body == {"end_date": "2030-01-01T20:00:00Z"}
    assert sent.headers["If-Match"] == '"7"'


@pytest.mark.parametrize(
    ("arguments", "body"),
    [
        (("shorten", "one", "30m"), {"end_date": "2030-01-01T17:30:00Z"}),
        (("shorten", "one", "--until", "now"), {"end_date": "now"}),
        (("extend", "one", "--until", "+9h"), {"end_date": "2030-01-01T21:00:00Z"}),
        (("set", "one", "--name", "two", "--start", "+1h"), {"name": "two", "start_date": "2030-01-01T13:00:00Z"}),
    ],
)
def test_changes_are_sent_as_absolute_times(
    cli: Cli, wire: Wire, arguments: tuple[str, ...], body: dict[str, Any]
) -> None:
    lease = wire.add_lease("one")
    assert cli("lease", *arguments).code == 0
    assert wire.sent("PUT", f"{LEASES}/{lease['id']}").body == body


def test_set_changes_the_only_reservation(cli: Cli, wire: Wire) -> None:
    lease = wire.add_lease("one")
    reservation = lease["reservations"][0]["id"]
    assert cli("lease", "set", lease["id"], "--hosts", "3").code == 0
    assert wire.sent("PUT", f"{LEASES}/{lease['id']}").body == {
        "reservations": [{"id": reservation, "min": 3, "max": 3}]
    }


def test_choosing_columns_does_not_change_what_is_asked_for(cli: Cli, wire: Wire) -> None:
    ran = cli("lease", "create", "one", "--for", "1h", "--hosts", "1", "-c", "name", "-c", "status", "-f", "value")
    assert ran.out == "one\nPENDING\n"
    assert wire.sent("POST", LEASES).body["reservations"][0]["hypervisor_properties"] == ""


def test_a_dry_run_asks_the_server_for_a_plan(cli: Cli, wire: Wire) -> None:
    lease = wire.add_lease("one")
    for arguments in (("create", "two", "--for", "1h"), ("extend", "one", "1h"), ("delete", "one")):
        assert cli("lease", *arguments, "--dry-run").code == 0
    for method, path in (("POST", LEASES), ("PUT", f"{LEASES}/{lease['id']}"), ("DELETE", f"{LEASES}/{lease['id']}")):
        assert wire.sent(method, path).query == {"dry_run": "true"}


def test_history_is_listed(cli: Cli, wire: Wire) -> None:
    wire.add_lease("one")
    lines = cli("lease", "history", "one", "-f", "json").data
    assert [(line["kind"], line["event"], line["outcome"]) for line in lines] == [
        ("LeaseCreated", None, None),
        ("EventFinished", "start_lease", "OK"),
    ]


@pytest.mark.parametrize(
    "arguments",
    [
        ("create", "one"),
        ("create", "one", "--for", "1h", "--end", "+2h"),
        ("create", "one", "--for", "1"),
        ("create", "one", "--for", "1h", "--hosts", "0"),
        ("create", "one", "--for", "1h", "--hosts", "1", "--min", "1"),
        ("create", "one", "--for", "1h", "--min", "3", "--max", "1"),
        ("create", "one", "--for", "1h", "--property", "{}"),
        ("create", "one", "--for", "1h", "--property", "[nonsense"),
        ("create", "one", "--for", "1h", "--start", "2026-02-30 10:00"),
        ("create", "one", "--for", "1h", "--on-end", "delete"),
        ("create", "one", "--for", "1h", "--grace", "1h"),
        ("create", "one", "--for", "1h", "--cell", "left"),
        ("create", "one", "--for", "1h", "--hosts", "1", "--cell", "left", "--zone", "left"),
        ("create", "one", "--for", "1h", "--servers", "2"),
        ("create", "one", "--for", "1h", "--servers", "2", "--vcpus", "1", "--memory-mb", "1"),
        ("create", "one", "--for", "1h", *SIZE),
        ("create", "one", "--for", "1h", "--flavor", "f"),
        ("create", "one", "--for", "1h", "--flavor", "f", "--servers", "2", "--vcpus", "1"),
        ("create", "one", "--for", "1h", "--flavor", "f", "--servers", "2", "--affinity", "apart"),
        ("create", "one", "--for", "1h", "--flavor", "f", "--hosts", "2"),
        ("create", "one", "--for", "1h", "--servers", "2", *SIZE, "--hosts", "2"),
        ("create", "one", "--for", "1h", "--servers", "0", *SIZE),
        ("create", "one", "--for", "1h", "--servers", "2", *SIZE, "--affinity", "sometimes"),
        ("set", "one", "--servers", "2", "--min", "1"),
        ("extend", "one"),
        ("extend", "one", "1h", "--until", "+1h"),
        ("set", "one"),
        ("list", "-f", "xml"),
    ],
)
def test_a_wrong_command_is_a_usage_error_and_sends_nothing(cli: Cli, wire: Wire, arguments: tuple[str, ...]) -> None:
    ran = cli("lease", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert "try: " in ran.err
    assert [asked for asked in wire.asked if asked.method in ("POST", "PUT") and asked.path.startswith(LEASES)] == []


@pytest.mark.parametrize(
    ("options", "wait"),
    [(("--wait-list",), {}), (("--wait-list", "--wait-until", "+2d"), {"until": "2030-01-03T12:00:00Z"})],
)
def test_a_lease_may_stand_in_line(cli: Cli, wire: Wire, options: tuple[str, ...], wait: dict[str, str]) -> None:
    assert cli("lease", "create", "one", "--for", "1h", "--hosts", "2", *options).code == 0
    assert wire.sent("POST", LEASES).body["wait"] == wait


def test_options_of_the_waiting_list_that_exclude_each_other(cli: Cli) -> None:
    for options, reason in (
        (("--wait-until", "+2d"), "--wait-until needs --wait-list"),
        (("--wait-list", "--hold", "5m"), "--wait-list and --hold exclude each other"),
    ):
        ran = cli("lease", "create", "one", "--for", "1h", "--hosts", "2", *options)
        assert (ran.code, reason in ran.err) == (2, True)


LEFT_OUT = '199 - "Lease l1 cannot be read", 199 proxy "say \\"so\\"", 110 - "stale"'


def test_list_names_the_leases_that_the_server_left_out(cli: Cli, wire: Wire) -> None:
    assert cli("lease", "list").code == 0
    link = [{"rel": "next", "href": "http://any/leases?limit=500&marker=m1"}]
    wire.answers = [
        (200, {"leases": [], "leases_links": link}, {"Warning": LEFT_OUT}),
        (200, {"leases": [{"id": "l2", "name": "sound"}], "leases_links": []}, {"Warning": LEFT_OUT}),
    ]
    said = cli("lease", "list", "-f", "json")
    assert (said.code, [lease["name"] for lease in said.data]) == (0, ["sound"])
    assert said.err.splitlines() == ["warning: Lease l1 cannot be read", 'warning: say "so"']
    assert wire.sent("GET", LEASES).query["marker"] == "m1", "a page without rows has a next one"


def test_pages_end_with_a_link_that_leads_nowhere(cli: Cli, wire: Wire) -> None:
    assert cli("lease", "list").code == 0
    link = [{"rel": "next", "href": "http://any/leases?marker=m1"}]
    wire.answers = [(200, {"leases": [{"id": "l1", "name": "one"}], "leases_links": link}, {})] * 2
    said = cli("lease", "list", "-f", "json")
    assert (said.code, len(said.data)) == (0, 2)
