"""Polls of child zones: outcomes in the database, one poller for each child in a period, loops."""

import json
import threading
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import text

from climate.compute import Compute
from climate.compute.zones import polling, registry, service_reports
from climate.compute.zones.client_interface import ChildAnswer, ChildError, ChildRefused, ChildRequest, ChildTimeout
from climate.compute.zones.models import ChildZone
from tests.compute.zones.tree import Tree


class Script:
    """A client whose answers are set by the test, by the URL of the child."""

    def __init__(self, **answers: ChildAnswer | ChildError) -> None:
        self.answers = answers
        self.asked: list[tuple[str, str]] = []

    def send(self, zone: ChildZone, request: ChildRequest, seconds: float | None = None) -> ChildAnswer:
        raise NotImplementedError

    def send_all(self, requests: Any, seconds: float | None = None) -> list[ChildAnswer | ChildError]:
        self.asked += [(zone.api_url, zone.password) for zone, _ in requests]
        return [self.answers[zone.api_url.removeprefix("http://")] for zone, _ in requests]


def info(**zone: Any) -> ChildAnswer:
    return ChildAnswer(200, {"zone": zone})


@pytest.fixture
def compute(lone: Tree) -> Compute:
    return lone["parent"].compute


def child(compute: Compute, name: str = "child") -> int:
    return registry.add(compute, {"api_url": f"http://{name}", "username": "u", "password": "pass-word"}).id


def polled(compute: Compute, script: Script, later: float = 0) -> list[tuple[int, bool]]:
    """Poll as if `later` seconds had passed; the children whose state has changed."""
    told: list[tuple[int, bool]] = []
    moved = replace(
        compute,
        zones=replace(compute.zones, client=script),
        now=lambda conn: compute.now(conn) + timedelta(seconds=later),
    )
    polling.poll(moved, lambda conn, now, zone: told.append((zone.id, zone.is_active)))
    return told


def test_zn_10_answer_is_kept_and_failures_before_it_are_forgotten(compute: Compute) -> None:
    zone_id = child(compute)
    polled(compute, Script(child=ChildError("away")))
    assert registry.get(compute, zone_id).attempts == 1
    polled(compute, Script(child=info(name="zohan", capabilities="hairdresser", b="1,2")), 100)
    zone = registry.get(compute, zone_id)
    assert (zone.attempts, zone.name, zone.is_active) == (0, "zohan", True)
    assert zone.capabilities == "capabilities=hairdresser, b=1,2"
    assert zone.last_seen is not None


def test_child_without_a_name_is_shown_as_such(compute: Compute) -> None:
    zone_id = child(compute)
    polled(compute, Script(child=info()))
    assert registry.get(compute, zone_id).name == "n/a"


def test_zn_11_three_failures_make_a_child_inactive_and_one_answer_active(compute: Compute) -> None:
    zone_id = child(compute)
    broken = Script(child=ChildError("the child is away"))
    assert polled(compute, broken, 100) == []
    assert polled(compute, broken, 200) == []
    assert registry.get(compute, zone_id).is_active
    assert polled(compute, broken, 300) == [(zone_id, False)]
    zone = registry.get(compute, zone_id)
    assert (zone.attempts, zone.is_active, zone.name, zone.last_error) == (3, False, None, "the child is away")
    assert polled(compute, broken, 400) == [], "it is told once"
    assert polled(compute, Script(child=info(name="back")), 500) == [(zone_id, True)]
    zone = registry.get(compute, zone_id)
    assert (zone.attempts, zone.is_active, zone.last_error) == (0, True, None)


def test_name_and_capabilities_stay_while_a_child_is_away(compute: Compute) -> None:
    zone_id = child(compute)
    polled(compute, Script(child=info(name="old", a="b")))
    polled(compute, Script(child=ChildError("away")), 100)
    zone = registry.get(compute, zone_id)
    assert (zone.name, zone.capabilities) == ("old", "a=b")


def test_child_is_polled_once_in_a_period_however_many_pollers_there_are(compute: Compute) -> None:
    child(compute)
    child(compute, "other")
    script = Script(child=info(name="c"), other=info(name="o"))
    start = threading.Barrier(4)

    def race() -> None:
        start.wait()
        polled(compute, script, 100)

    threads = [threading.Thread(target=race) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    polls = [url for url, _ in script.asked]
    # Each first answer is followed by one request that looks for loops.
    assert sorted(polls) == sorted(["http://child", "http://other"] * 2)


def test_password_is_opened_for_the_poll(compute: Compute) -> None:
    child(compute)
    script = Script(child=ChildError("away"))
    polled(compute, script)
    assert script.asked == [("http://child", "pass-word")]


def test_password_whose_key_is_gone_is_a_failure(compute: Compute) -> None:
    zone_id = child(compute)
    with compute.engine.begin() as conn:
        conn.execute(text("UPDATE compute_zones SET password = 'gAAAAABnonsense'"))
    polled(compute, Script())
    assert "set it again" in str(registry.get(compute, zone_id).last_error)


@pytest.mark.parametrize("error", [ChildTimeout("late"), ChildRefused("wrong password")])
def test_costly_failure_keeps_requests_from_the_child_until_the_next_poll(compute: Compute, error: ChildError) -> None:
    zone_id = child(compute)
    polled(compute, Script(child=error))
    with compute.engine.connect() as conn:
        now = compute.now(conn)
    zone = registry.get(compute, zone_id)
    assert zone.is_active
    assert not zone.is_asked(now)
    assert zone.is_asked(now + timedelta(seconds=compute.zones.poll_seconds + 1))


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (ChildAnswer(403), "administrator"),
        (ChildAnswer(404), "no zones API"),
        (ChildAnswer(500), "HTTP 500"),
        (ChildAnswer(200, None), "invalid body"),
        (ChildAnswer(200, {"zone": []}), "invalid body"),
        (info(name=["x"]), "invalid body"),
        (info(name="x" * 300), "invalid body"),
        (info(name="x", b="\0"), "invalid body"),
        (info(name="x\ud800"), "invalid body"),
        (info(name="\x1b[2J"), "invalid body"),
        (info(name="x", **{"a\nb": "c"}), "invalid body"),
        (info(**{f"k{number}": "v" for number in range(300)}), "invalid body"),
    ],
)
def test_answers_that_are_none_of_a_zone_are_failures(compute: Compute, answer: ChildAnswer, says: str) -> None:
    zone_id = child(compute)
    polled(compute, Script(child=answer))
    zone = registry.get(compute, zone_id)
    assert zone.attempts == 1
    assert says in str(zone.last_error)


def test_unusable_answer_costs_no_other_child_its_poll(compute: Compute) -> None:
    child(compute, "odd")
    fine = child(compute, "fine")
    polled(compute, Script(odd=info(name="\ud800"), fine=info(name="fine")))
    assert registry.get(compute, fine).name == "fine"


def test_outcome_for_a_child_that_was_changed_meanwhile_is_dropped(compute: Compute) -> None:
    zone_id = child(compute)

    class Changing(Script):
        def send_all(self, requests: Any, seconds: float | None = None) -> list[ChildAnswer | ChildError]:
            if not self.asked:
                registry.change(compute, zone_id, {"api_url": "http://moved"})
            return super().send_all(requests, seconds)

    polled(compute, Changing(child=info(name="old")))
    assert registry.get(compute, zone_id).name is None


def test_without_children_nobody_is_asked(compute: Compute) -> None:
    script = Script()
    assert polled(compute, script) == []
    assert script.asked == []


def test_poll_of_real_zones_shows_their_numbers(family: Tree) -> None:
    left = family["left"]
    service_reports.report_compute(left.compute)
    polling.poll(family["parent"].compute)
    first, second = registry.listed(family["parent"].compute)
    assert (first.name, second.name) == ("left", "right")
    free = 8192 * 2**20
    assert first.capabilities is not None
    assert f"compute_host_memory_free={free},{free}" in first.capabilities
    assert second.capabilities == "hypervisor=memory", "it has no reports yet"
    assert "left-n" not in json.dumps([first.capabilities])


def test_numbers_are_lowest_and_highest_over_the_hosts(family: Tree) -> None:
    left = family["left"]
    with left.compute.engine.begin() as conn:
        conn.execute(text("UPDATE compute_nodes SET memory_mb = 1024 WHERE name = 'left-n1'"))
        conn.execute(text("UPDATE compute_nodes SET memory_mb = 3072 WHERE name = 'left-n2'"))
    service_reports.report_compute(left.compute)
    zone = left.ask("GET", "/zones/info").get_json()["zone"]
    assert zone["compute_host_memory_free"] == "1073741824,3221225472"
    with left.compute.engine.begin() as conn:
        conn.execute(text("UPDATE compute_nodes SET memory_mb = 8192"))
        conn.execute(text("UPDATE compute_services SET enabled = false"))
    service_reports.report_compute(left.compute)
    assert set(left.ask("GET", "/zones/info").get_json()["zone"]) == {"name", "hypervisor"}
    with left.compute.engine.begin() as conn:
        conn.execute(text("UPDATE compute_services SET enabled = true"))


def test_report_of_a_service_that_is_gone_no_longer_counts(family: Tree) -> None:
    left = family["left"]
    service_reports.report_compute(left.compute)
    stale = timedelta(seconds=3 * left.compute.zones.report_seconds + 1)
    later = replace(left.compute, now=lambda conn: left.compute.now(conn) + stale)
    assert set(registry.info(left.compute)) > {"name", "hypervisor"}
    assert set(registry.info(later)) == {"name", "hypervisor"}


def test_unchanged_report_is_not_written_again(family: Tree) -> None:
    left = family["left"]

    def written() -> list[Any]:
        service_reports.report_compute(left.compute)
        with left.compute.engine.connect() as conn:
            return list(conn.execute(text("SELECT xmin::text FROM compute_service_capabilities ORDER BY host")))

    assert written() == written()


def test_zone_that_is_registered_below_itself_becomes_inactive(lone: Tree) -> None:
    parent = lone["parent"]
    lone.applications["alias"] = lone.applications["parent"]
    values = {"api_url": "http://alias", "username": "admin", "password": parent.password("admin")}
    zone_id = registry.add(parent.compute, values).id
    polling.poll(parent.compute)
    zone = registry.get(parent.compute, zone_id)
    assert zone.attempts == 1
    assert "leads back" in str(zone.last_error)


def test_cycle_is_found_by_the_first_poll_and_named_on_both_sides(family: Tree) -> None:
    parent, left, grandchild = family["parent"], family["left"], family["grandchild"]
    grandchild.adopt(parent)
    polling.poll(parent.compute)
    (above,) = registry.listed(grandchild.compute)
    assert above.loop_at is not None, "the zone whose child is its grandparent names it"
    assert registry.listed(parent.compute)[0].loop_at is not None
    assert registry.listed(parent.compute)[1].loop_at is None
    registry.remove(grandchild.compute, above.id)
    with parent.compute.engine.begin() as conn:
        conn.execute(text("UPDATE compute_zones SET polled_at = NULL"))
    polling.poll(parent.compute)
    assert registry.listed(parent.compute)[0].loop_at is None, "a loop that is gone is forgotten"
    assert registry.listed(left.compute)[0].loop_at is None


def test_grandchildren_are_not_known(family: Tree) -> None:
    for name in ("left", "parent"):
        polling.poll(family[name].compute)
    with family["parent"].compute.engine.connect() as conn:
        rows = conn.execute(text("SELECT to_jsonb(z) FROM compute_zones z")).scalars().all()
    assert "grandchild" not in json.dumps(rows)
