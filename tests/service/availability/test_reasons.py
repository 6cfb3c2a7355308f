"""Why nothing fits, and what would."""

from datetime import timedelta
from typing import Any

from climate.context import Climate
from climate.service.availability import reasons, search
from climate.service.availability.question import SearchRequest
from climate.service.availability.reasons import Reason
from climate.service.host_operations import maintenance
from climate.service.host_operations.maintenance import WindowRequest
from tests.conftest import ADMIN, MEMBER, Clock
from tests.service.lease_actions import hosts_wanted, make

HOUR = timedelta(hours=1)


def why(climate: Climate, clock: Clock, *reservations: dict[str, Any], within: float = 3) -> Reason:
    wanted = SearchRequest(reservations, 2 * HOUR, clock.time, clock.time + within * HOUR)
    inquiry = search.prepare(climate, MEMBER, wanted)
    found = search.find(inquiry)
    assert found.offers == ()
    return reasons.explain(inquiry, found)


def test_maintenance_is_named(climate: Climate, clock: Clock) -> None:
    for host in range(1, 9):
        maintenance.plan(climate, ADMIN, WindowRequest(str(host), clock.time + HOUR, clock.time + 2 * HOUR, "disks"))
    reason = why(climate, clock, hosts_wanted(1))
    assert reason.binding.name == "maintenance"
    assert [one.kind for one in reason.alternatives] == ["later", "shorter"]


def test_reservations_that_do_not_fit_together_are_named(climate: Climate, clock: Clock) -> None:
    gpu = '["==", "$gpu_count", "2"]'
    reason = why(climate, clock, hosts_wanted(5), hosts_wanted(4, resource_properties=gpu))
    assert reason.binding.name == "together"
    fewer = next(one for one in reason.alternatives if one.kind == "fewer")
    assert [one.count for one in fewer.offer.reservations] == [4, 3]


def test_too_few_free_hosts_are_named_with_their_reservation(climate: Climate, clock: Clock) -> None:
    make(climate, clock, hosts_wanted(5), start=0, hours=4)
    reason = why(climate, clock, hosts_wanted(2), hosts_wanted(4))
    assert (reason.binding.name, reason.binding.reservation) == ("hosts", 1)
