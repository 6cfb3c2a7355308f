"""Preemptible leases over HTTP: as they are asked for, and as each role sees them."""

from datetime import timedelta

from sqlalchemy import text

from climate.context import Climate
from climate.service.preemption import round as preemption
from tests.api.reservation.api_clients import Person, order, reservation, run_due
from tests.conftest import Clock


def _displaced(member: Person, stranger: Person, climate: Climate) -> tuple[str, str]:
    """The ids of a preemptible lease that runs, and of an ordinary one that needs a host of it."""
    spare = member.lease(
        "spare",
        start_date="now",
        end_date="2030-01-01 20:00",
        reservations=[reservation(min=1, max=100, preemptible=True)],
    )
    run_due(climate)
    other = stranger.lease("secret", start_date="2030-01-01 15:00", end_date="2030-01-01 16:00")
    return str(spare["id"]), str(other["id"])


def test_it_is_shown_as_it_was_asked_for(member: Person, climate: Climate) -> None:
    made = member.lease(reservations=[reservation(preemptible=True)])
    assert made["reservations"][0]["preemptible"] is True
    assert "preemption_at" not in made["reservations"][0]
    assert "preemptible" not in member.lease()["reservations"][0]


def test_the_owner_sees_when_and_nobody_whose_lease_it_was(
    member: Person, stranger: Person, admin: Person, climate: Climate, clock: Clock
) -> None:
    spare, other = _displaced(member, stranger, climate)
    shown = member.get(f"/leases/{spare}")["lease"]
    lead = timedelta(seconds=climate.settings.recycle_lead)
    assert "2030-01-01" in shown["reservations"][0]["preemption_at"]
    clock.time = clock.time.replace(hour=15) - lead
    preemption.run_round(climate)
    clock.forward(seconds=climate.settings.preemption_notice)
    preemption.run_round(climate)
    told = [member.get("/notices"), member.get(f"/leases/{spare}/history"), member.get(f"/leases/{spare}")]
    for answer in told:
        assert other not in str(answer)
        assert "secret" not in str(answer)
        assert "other-project" not in str(answer)
    kinds = [one["kind"] for one in told[1]["history"]]
    assert {"PreemptionPlanned", "PreemptionWarned", "HostPreempted"} <= set(kinds)
    assert other in str(admin.get(f"/leases/{spare}/history"))
    assert spare not in str(stranger.get(f"/leases/{other}/history")), "the other one reads nothing either"


def test_a_search_counts_preemptible_hosts_as_free(member: Person, stranger: Person, climate: Climate) -> None:
    _displaced(member, stranger, climate)
    everything = reservation(min=_hosts(climate), max=_hosts(climate))
    wanted = {"duration": 3600, "earliest": "2030-01-01 13:00", "latest": "2030-01-01 14:00"}
    found = stranger.done(stranger("POST", "/availability", {**wanted, "reservations": [everything]}))
    assert len(found["offers"]) == 1
    spare = stranger("POST", "/availability", {**wanted, "reservations": [reservation(preemptible=True)]})
    assert stranger.done(spare)["offers"] == [], "a preemptible one gets only what is free"


def test_preemptible_hosts_have_a_limit_of_their_own(member: Person, admin: Person) -> None:
    limits = {"hosts_at_once": 1, "preemptible_hosts_at_once": 1}
    admin.done(admin("PUT", "/limits/project", limits))
    member.lease(reservations=[reservation(preemptible=True)])
    member.lease()
    more = order(reservations=[reservation(preemptible=True)])
    answer = member("POST", "/leases", more)
    assert answer.status_code == 403
    assert "Limit preemptible_hosts_at_once of the project is 1" in answer.get_data(as_text=True)


def _hosts(climate: Climate) -> int:
    with climate.engine.connect() as conn:
        return int(conn.scalar(text("SELECT count(*) FROM hosts")) or 0)


def test_slots_are_never_preemptible(member: Person) -> None:
    size = {"vcpus": 1, "memory_mb": 128, "disk_gb": 1, "amount": 1, "affinity": None, "resource_properties": ""}
    slots = {"resource_type": "virtual:instance", "preemptible": True, **size}
    for path, body in (
        ("/leases", order(reservations=[slots])),
        ("/leases", order(reservations=[reservation(preemptible=True), slots])),
        ("/availability", {"duration": 3600, "reservations": [slots]}),
    ):
        refused = member("POST", path, body)
        assert refused.status_code == 400, refused.json
        assert "preemptible is for whole hosts" in refused.json["error_message"]
        assert "virtual:instance never gives way" in refused.json["error_message"]
