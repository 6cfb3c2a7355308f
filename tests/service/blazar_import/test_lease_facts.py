"""Facts of imported leases, as climate would have recorded them."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import count

import pytest

from climate.domain.facts import Fact, LeaseCreated
from climate.domain.lease import fold
from climate.domain.status import EventKind, HoldState, LeaseStatus
from climate.service.blazar_import.lease_checks import convert
from climate.service.blazar_import.lease_facts import facts_of, tokens_needed
from climate.service.blazar_import.records import BlazarEvent, BlazarLease, WantedAddresses
from tests.service.blazar_import.blazar_factory import hour, lease, reservation
from tests.service.blazar_import.recordings import number

TYPES = frozenset({"physical:host", "virtual:floatingip"})


def facts(of: BlazarLease, tokens: Iterator[int] | None = None) -> list[Fact]:
    given = count(1) if tokens is None else tokens
    return facts_of(convert(of, TYPES), {"1": 11, "2": 12}, {"a": (7, "203.0.113.7")}, given, hour(0))


@pytest.mark.parametrize(
    ("status", "start", "state", "kinds"),
    [
        ("PENDING", 1, HoldState.HELD, []),
        ("ACTIVE", -1, HoldState.ACTIVE, ["EventClaimed", "EventFinished"]),
        ("TERMINATED", -9, HoldState.RELEASED, ["EventClaimed", "EventFinished"] * 2),
        ("ERROR", -1, HoldState.ACTIVE, ["EventClaimed", "EventFailed"]),
    ],
)
def test_a_lease_has_the_status_that_it_had(status: str, start: int, state: HoldState, kinds: list[str]) -> None:
    original = lease("a", ["2", "1"], start, start + 2, status, created=-10)
    told = facts(original)
    after = fold(told)
    assert (after.status, after.hold_state) == (LeaseStatus(status), state)
    assert [type(fact).__name__ for fact in told] == ["LeaseCreated", *kinds]
    assert after.reservations[0].hosts == (11, 12)
    assert after.touched is (status != "PENDING"), "a deletion takes the hosts back"
    assert tokens_needed(convert(original, TYPES)) == kinds.count("EventClaimed")


def test_facts_are_in_the_order_of_their_times_and_none_is_in_the_future() -> None:
    late = lease("a", "1", -3, -1, "TERMINATED", created=-2)
    before = BlazarEvent(str(number("before")), "before_end_lease", hour(-2), "UNDONE")
    told = facts(replace(late, events=(*late.events, before)))
    assert [fact.at for fact in told] == [hour(-2)] * 4 + [hour(-1)] * 2
    assert [type(fact).__name__ for fact in told][3] == "EventSkipped"
    assert fold(told).event(EventKind.BEFORE_END).outcome == "SKIPPED"
    assert facts(lease("a", "1", 1, 2, created=5))[0].at == hour(0)
    assert facts(lease("a", "1", -90, 2, created=-1))[0].at == hour(-66), "a day after the start at most"


def test_a_time_outside_the_lease_is_moved_into_it() -> None:
    plain = lease("a", "1", 1, 3)
    early = BlazarEvent(str(number("before")), "before_end_lease", hour(-5), "UNDONE")
    after = fold(facts(replace(plain, events=(*plain.events, early))))
    assert after.before_end == hour(1)


def test_a_deletion_before_the_start_ends_what_blazar_created() -> None:
    plain = lease("a", "1")
    addresses = replace(reservation("b", (), WantedAddresses("net", 1, ())), resource_type="virtual:floatingip")
    both = replace(plain, reservations=(*plain.reservations, replace(addresses, addresses=("a",))))
    created = facts(both)[0]
    assert isinstance(created, LeaseCreated)
    assert [one.exists_before_start for one in created.reservations] == [True, False]
    assert [hold.address for hold in created.reservations[1].addresses] == ["203.0.113.7"]
    begun = facts(lease("a", "1", -1, 1, "ACTIVE"))[0]
    assert isinstance(begun, LeaseCreated)
    assert not begun.reservations[0].exists_before_start


def test_allocations_of_unknown_hosts_are_left_out_of_history() -> None:
    assert fold(facts(lease("a", ["1", "9"], -3, -2, "TERMINATED"))).reservations[0].hosts == (11,)


def test_missing_hosts_are_recorded() -> None:
    plain = lease("a", "1", -1, 1, "ACTIVE")
    lacking = replace(plain.reservations[0], missing_resources=True, resources_changed=True)
    after = fold(facts(replace(plain, reservations=(lacking,))))
    assert (after.degraded, after.reservations[0].missing, after.reservations[0].resources_changed) == (True, 1, True)
