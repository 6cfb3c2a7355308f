"""How many hosts the reservation pool is to have for its backlog, and which of them come and go."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from climate.domain.hosts.pool_scaling import Candidate, HostsState, Level, Member, Plan, Rules, Step, plan

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
LONG_AGO = NOON - timedelta(days=9)
RULES = Rules(horizon=timedelta(days=2), spare=2, margin=25, slack=2, dwell=timedelta(hours=1))


def there(size: int = 0, promised: int = 0, **more: object) -> HostsState:
    backlog = [Level(NOON, 0), Level(NOON + timedelta(hours=3), promised), Level(NOON + timedelta(hours=5), 0)]
    return replace(HostsState(NOON, size, backlog), **more)  # type: ignore[arg-type]


def members(count: int, since: datetime = LONG_AGO) -> list[Member]:
    return [Member(number, since) for number in range(1, count + 1)]


def empties(count: int) -> list[Candidate]:
    return [Candidate(100 + number, 0) for number in range(count)]


def steps(found: Plan) -> list[tuple[int, Step]]:
    return [(one.host, one.step) for one in found.moves]


def test_what_is_wanted_is_the_peak_and_the_greater_of_both_margins() -> None:
    for promised, wanted in ((0, 2), (8, 10), (9, 12), (40, 50)):
        found = plan(there(promised=promised), RULES)
        assert (found.promised, found.wanted, found.most) == (promised, wanted, wanted + 2)
    assert plan(there(promised=8), replace(RULES, target=30)).wanted == 30
    assert there(promised=8).peak == Level(NOON + timedelta(hours=3), 8)
    assert plan(HostsState(NOON, 0), RULES).wanted == 2


def test_empty_hosts_are_taken_first_and_those_with_few_servers_drained_then() -> None:
    others = [Candidate(1, 5), Candidate(2, None), Candidate(3, 0), Candidate(4, 1)]
    found = plan(there(size=7, promised=8, candidates=others), RULES)
    assert steps(found) == [(3, Step.TAKE), (4, Step.DRAIN), (1, Step.DRAIN)]
    assert found.moves[0].reason == "10 hosts are wanted: 8 are promised at once, 2 spare"
    found = plan(there(size=7, promised=8, candidates=others), replace(RULES, drain=False))
    assert (steps(found), found.lacking) == ([(3, Step.TAKE)], 2)


def test_draining_hosts_count_and_are_opened_again_before_any_is_released() -> None:
    assert plan(there(size=7, promised=8, draining=[1, 2, 3], candidates=empties(5)), RULES).moves == ()
    found = plan(there(size=11, promised=8, draining=[1, 2, 3], members=members(11)), RULES)
    assert steps(found) == [(3, Step.REOPEN), (2, Step.REOPEN)]


def test_only_what_is_beyond_the_slack_is_released() -> None:
    for size, released in ((10, 0), (12, 0), (13, 1), (20, 8)):
        found = plan(there(size=size, promised=8, members=members(size)), RULES)
        assert steps(found) == [(number, Step.RELEASE) for number in range(1, released + 1)]


def test_a_host_is_released_only_when_it_was_idle_for_a_while_and_nothing_binds_it() -> None:
    known = [
        Member(1, NOON - timedelta(minutes=59)),
        Member(2, LONG_AGO, "promised to a lease"),
        Member(3, NOON - timedelta(hours=1)),
        Member(4, LONG_AGO),
    ]
    found = plan(there(size=8, members=known), RULES)
    assert steps(found) == [(4, Step.RELEASE), (3, Step.RELEASE)]
    assert [(one.host, one.reason) for one in found.kept] == [
        (2, "promised to a lease"),
        (1, "idle since 2030-01-01 11:01:00 UTC only"),
    ]
    assert plan(there(size=6, members=known), RULES).kept == (), "enough of them can be released"


situations = st.builds(
    lambda size, promised, draining, servers, idle: there(
        size=size + draining % 2,
        promised=min(promised, size),
        members=members(min(idle, size)),
        draining=list(range(200, 200 + draining)),
        candidates=[Candidate(100 + place, count) for place, count in enumerate(servers)],
    ),
    st.integers(0, 30),
    st.integers(0, 30),
    st.integers(0, 5),
    st.lists(st.none() | st.integers(0, 4), max_size=20),
    st.integers(0, 30),
)
rules = st.builds(
    Rules,
    horizon=st.just(timedelta(days=2)),
    spare=st.integers(0, 5),
    margin=st.integers(0, 100),
    slack=st.integers(0, 5),
    dwell=st.just(timedelta(hours=1)),
    drain=st.booleans(),
    target=st.integers(0, 10),
)


def carried_out(before: HostsState, found: Plan) -> HostsState:
    """The situation after the moves."""
    gone = {one.host: one.step for one in found.moves}
    count = list(gone.values()).count
    return replace(
        before,
        size=before.size + count(Step.TAKE) - count(Step.RELEASE),
        members=[one for one in before.members if one.host not in gone],
        draining=[host for host in before.draining if host not in gone]
        + [host for host, step in gone.items() if step is Step.DRAIN],
        candidates=[one for one in before.candidates if one.host not in gone]
        + [Candidate(host, 0) for host, step in gone.items() if step in (Step.RELEASE, Step.REOPEN)],
    )


@given(situations, rules)
def test_nothing_is_to_be_done_again_once_it_was_done(before: HostsState, given_rules: Rules) -> None:
    found = plan(before, given_rules)
    after = carried_out(before, found)
    assert steps(plan(after, given_rules)) == []
    assert len({one.host for one in found.moves}) == len(found.moves)
    assert after.size >= min(before.size, found.most), "it never shrinks below what is wanted"


@given(situations, rules)
def test_the_pool_never_grows_and_shrinks_at_once(before: HostsState, given_rules: Rules) -> None:
    done = {step for _, step in steps(plan(before, given_rules))}
    assert not (done & {Step.TAKE, Step.DRAIN} and done & {Step.RELEASE, Step.REOPEN})
