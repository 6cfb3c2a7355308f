"""Facts about sub-leases as earlier releases have written them."""

from datetime import UTC, datetime
from uuid import UUID

from climate.domain.facts import Hold
from climate.domain.period import Period
from climate.domain.sharing import sublease
from climate.domain.sharing.sublease import Sublet
from climate.domain.sharing.sublease_facts import SubletHostsReturned

R, S = UUID(int=1), UUID(int=2)
NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
HOLDS = (Hold(1, Period(NOON, datetime(2030, 1, 2, tzinfo=UTC))),)
AWAY = Sublet(2, S, NOON, NOON, NOON, taken=True)


def test_a_return_by_an_earlier_release_leaves_no_record_of_the_hosts() -> None:
    earlier = SubletHostsReturned(R, NOON, S)
    assert earlier.too_late is False
    assert sublease.changed(HOLDS, (AWAY,), earlier) == (HOLDS, ())


def test_a_return_that_came_too_late_keeps_the_record() -> None:
    assert sublease.changed(HOLDS, (AWAY,), SubletHostsReturned(R, NOON, S, too_late=True)) == (HOLDS, (AWAY,))
