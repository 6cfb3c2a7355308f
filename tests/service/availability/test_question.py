"""What is read for a search, and the limits of the project for leases that are only thought of."""

from datetime import timedelta

from climate.context import Climate
from climate.database.connections import reading
from climate.domain.availability.demands import WholeDemand
from climate.domain.availability.gaps import FAR
from climate.domain.availability.search import Candidate, Mode
from climate.domain.limits import Limit
from climate.service.admission import limits
from climate.service.availability import question, search
from climate.service.availability.question import SearchRequest
from tests.conftest import ADMIN, MEMBER, Clock
from tests.service.lease_actions import hosts_wanted, make


def test_limits_count_what_the_project_has_and_what_the_lease_would_take(climate: Climate, clock: Clock) -> None:
    limits.put(climate, ADMIN, "project", {Limit.HOSTS_AT_ONCE: 4, Limit.HELD_LEASES: 0})
    make(climate, clock, hosts_wanted(2), start=0, hours=2)
    two = timedelta(hours=2)
    wanted = SearchRequest((hosts_wanted(1, 8),), two, clock.time, clock.time + 2 * two, mode=Mode.AT)
    known = search.prepare(climate, MEMBER, wanted).read()
    begin = int(clock.time.timestamp())
    assert known.rules.permit(Candidate(begin, begin + 3600, (2,))) == 1.0
    assert known.rules.permit(Candidate(begin, begin + 3600, (3,))) is None
    assert list(known.rules.exceeded) == ["hosts_at_once"]
    assert known.rules.permit(Candidate(begin + 7200, begin + 10800, (3,))) == 0.75
    assert begin + 7200 in known.rules.turns()
    assert question.start_question(wanted, known, wanted.whole, two).openings == [(begin, begin + 14400)]


def test_the_free_times_are_those_of_the_period(climate: Climate, clock: Clock) -> None:
    make(climate, clock, hosts_wanted(8), start=0, hours=2)
    make(climate, clock, hosts_wanted(8), start=40, hours=2)
    hour = timedelta(hours=1)
    wanted = SearchRequest((hosts_wanted(1),), hour, clock.time, clock.time + 9 * hour)
    inquiry = search.prepare(climate, MEMBER, wanted)
    with reading(climate.engine) as conn:
        known = question.read(conn, climate, MEMBER, wanted, inquiry.requested, wanted.whole)
    [demand] = known.demands
    assert isinstance(demand, WholeDemand)
    begin = int(clock.time.timestamp())
    assert [*demand.level().at_least(8)] == [(0, begin), (begin + 7200, FAR)]
