"""The history of a lease in sentences: each kind of fact has one."""

from typing import get_args

from climate.cli.leases.history_sentences import SENTENCES, sentences
from climate.cli.tables import Look
from climate.domain import facts
from tests.cli.conftest import Cli
from tests.cli.fake_server import Wire


def test_each_fact_of_a_lease_has_a_sentence() -> None:
    assert {fact.__name__ for fact in get_args(facts.Fact)} <= set(SENTENCES)


def test_a_history_says_when_by_whom_and_what(cli: Cli, wire: Wire) -> None:
    wire.add_lease("one")
    lines = cli("lease", "history", "one").out.splitlines()
    assert lines[0].split() == ["at", "by", "happened"]
    assert "created as 'one'" in lines[1]
    assert lines[2].endswith("the start is done")
    assert cli("lease", "history", "one", "-c", "kind").out.split() == ["kind", "LeaseCreated", "EventFinished"]


def test_authors_periods_reasons_and_outcomes_are_told() -> None:
    period = {"start": "2030-01-01T12:00:00+00:00", "end": "2030-01-01T14:00:00+00:00"}
    rows = [
        ("LeaseCreated", "ada", {"name": "n", "period": period, "reservations": [{"resource_type": "physical:host"}],
                                 "events": [{"id": "e", "kind": "end_lease"}]}),
        ("EventFailed", "climate:worker", {"event_id": "e", "outcome": "FAILED", "reason": "no answer"}),
        ("LeaseRescheduled", "ada", {"period": period}),
        ("LeaseOfTheFuture", "ada", {"reason": "why"}),
    ]  # fmt: skip
    entries = [{"kind": kind, "at": "", "actor": {"user_id": user}, "body": body} for kind, user, body in rows]
    said = sentences(entries, Look(80, utc=True))
    assert [row["by"] for row in said] == ["ada", "worker", "ada", "ada"]
    assert [row["happened"] for row in said] == [
        "created as 'n', from 2030-01-01 12:00 UTC to 2030-01-01 14:00 UTC, with physical:host",
        "the end failed: no answer",
        "moved: from 2030-01-01 12:00 UTC to 2030-01-01 14:00 UTC",
        "LeaseOfTheFuture: why",
    ]


def test_a_changed_reservation_is_shown_with_its_number_and_its_period() -> None:
    during = {"start": "2030-01-01T12:00:00+00:00", "end": "2030-01-01T14:00:00+00:00"}
    later = {**during, "end": "2030-01-01T15:00:00+00:00"}
    reservations = [{"id": number, "resource_type": kind} for number, kind in (("1", "physical:host"), ("2", "rooms"))]
    bodies = [
        {"reservation_id": "1", "holds": [{"during": during, "slots": 0}, {"during": later, "slots": 0}]},
        {"reservation_id": "1", "holds": [{"during": during, "slots": 0}], "missing": 1, "reason": "gpu-1 failed"},
        {"reservation_id": "2", "holds": [{"during": during, "slots": 3}]},
        {"reservation_id": "2", "holds": [], "addresses": [{"during": during}]},
        {"reservation_id": "3", "holds": [], "amounts": [{}, {}]},
        {"reservation_id": "1", "holds": [], "missing": 2},
    ]
    entries = [{"kind": "LeaseCreated", "at": "", "body": {"period": during, "reservations": reservations}}]
    entries += [{"kind": "ReservationChanged", "at": "", "body": body} for body in bodies]
    until = "from 2030-01-01 12:00 UTC to 2030-01-01"
    assert [row["happened"] for row in sentences(entries, Look(80, utc=True))[1:]] == [
        f"physical:host has 2 hosts {until} 15:00 UTC",
        f"physical:host has 1 host {until} 14:00 UTC; 1 host missing: gpu-1 failed",
        f"rooms has 3 slots on 1 host {until} 14:00 UTC",
        f"rooms has 1 floating IP {until} 14:00 UTC",
        "its reservation has 2 amounts",
        "physical:host has no hosts; 2 hosts missing",
    ]
