"""Which hosts are switched off and on: never too late for a promise, never to and fro."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.energy import Load, Pool
from climate.domain.errors import InvalidInput
from climate.domain.hosts.power_planner import Machine, Report, Rules, Switch, applied, best, next_change, plan, saved
from climate.domain.period import Period
from tests.domain.lease_factory import HOUR, NOON

MINUTE = timedelta(minutes=1)
WEEK = 168 * HOUR
LONG_AGO = NOON - WEEK
RULES = Rules(
    idle_off_after=10 * MINUTE,
    power_on_lead=20 * MINUTE,
    warm=0,
    least_on=30 * MINUTE,
    least_off=40 * MINUTE,
    boot=15 * MINUTE,
    spare_for=timedelta(0),
)
WORTH = RULES.power_on_lead + RULES.least_off


def on(host: int, need: timedelta | None = None, idle: timedelta = HOUR, **more: object) -> Machine:
    """Switched on long ago, given back `idle` ago, needed in `need`."""
    known = Machine(host, True, LONG_AGO, NOON - idle, None if need is None else NOON + need)
    return replace(known, **more)  # type: ignore[arg-type]


def off(host: int, need: timedelta | None = None, **more: object) -> Machine:
    return on(host, need, **{"on": False, **more})  # type: ignore[arg-type]


def planned(*machines: Machine, **rules: object) -> list[tuple[int, bool]]:
    switches = plan(machines, replace(RULES, **rules), NOON)  # type: ignore[arg-type]
    return [(switch.host, switch.on) for switch in switches]


@pytest.mark.parametrize(
    ("machine", "expected"),
    [
        (off(1), None),
        (off(1, RULES.power_on_lead + MINUTE), None),
        (off(1, RULES.power_on_lead), True),
        (off(1, -HOUR), True),
        (off(1, MINUTE, changed_at=NOON - MINUTE), True),  # a promise comes before least_off
        (off(1, MINUTE, busy=True), None),
        (off(1, MINUTE, changing=True), None),
        (off(1, MINUTE, managed=False), None),
        (on(1), False),
        (on(1, idle=RULES.idle_off_after), False),
        (on(1, idle=RULES.idle_off_after - MINUTE), None),
        (on(1, changed_at=NOON - RULES.least_on, idle_since=None), False),
        (on(1, changed_at=NOON - RULES.least_on + MINUTE, idle_since=None), None),
        (on(1, WORTH), None),
        (on(1, WORTH + MINUTE), False),
        (on(1, RULES.power_on_lead), None),
        (on(1, busy=True), None),
        (on(1, changing=True), None),
        (on(1, managed=False), None),
    ],
)
def test_one_host(machine: Machine, expected: bool | None) -> None:
    assert planned(machine) == ([] if expected is None else [(1, expected)])


def test_spares_that_stay_are_those_that_are_needed_last() -> None:
    machines = on(1, 3 * HOUR), on(2, 9 * HOUR), on(3), on(4, 5 * HOUR), on(5)
    assert planned(*machines, warm=0) == [(3, False), (5, False), (2, False), (4, False), (1, False)]
    assert planned(*machines, warm=1) == [(5, False), (2, False), (4, False), (1, False)]
    assert planned(*machines, warm=3) == [(4, False), (1, False)]
    assert planned(*machines, warm=5) == []


def test_what_may_not_be_switched_off_is_a_spare_as_well() -> None:
    assert planned(on(1), on(2, managed=False), warm=1) == [(1, False)]
    assert planned(on(1), on(2, idle=MINUTE), on(3, 3 * HOUR), warm=2) == [(3, False)]


def test_a_host_on_its_way_up_is_a_spare_already_but_none_for_which_another_goes() -> None:
    assert planned(on(1, changing=True), off(2), warm=1) == []
    assert planned(on(1, changing=True), on(2), warm=1) == []
    assert planned(on(1), on(2), warm=1) == [(2, False)]


def test_what_is_promised_soon_or_in_use_is_no_spare() -> None:
    assert planned(on(1, MINUTE), on(2, busy=True), off(3), warm=1) == [(3, True)]


def test_spares_are_woken_that_have_room_for_the_longest_lease() -> None:
    machines = off(1, 3 * HOUR), off(2, 9 * HOUR), off(3, busy=True), off(4), off(5, changing=True)
    assert planned(*machines, warm=1) == [(4, True)]
    assert planned(*machines, warm=9) == [(4, True), (2, True), (1, True)]


def test_a_spare_that_went_off_just_now_is_woken_only_when_no_other_can_be() -> None:
    just_now, rested = off(1, changed_at=NOON - MINUTE), off(2, 3 * HOUR)
    assert planned(just_now, rested, warm=1) == [(2, True)]
    assert planned(just_now, rested, warm=2) == [(2, True), (1, True)]


def test_among_equals_the_number_decides() -> None:
    assert planned(off(2, MINUTE), off(1, MINUTE)) == [(1, True), (2, True)]
    assert planned(off(3), off(2), off(1), warm=2) == [(1, True), (2, True)]
    assert planned(on(3), on(2), on(1), warm=1) == [(2, False), (3, False)]


def test_a_spare_without_room_is_replaced_by_one_that_has_room_when_there_is_one() -> None:
    rules = {"warm": 2, "spare_for": 6 * HOUR}
    spares = on(1), on(2, 6 * HOUR)
    assert planned(*spares, off(3, 6 * HOUR), **rules) == []
    assert planned(*spares, off(3, 7 * HOUR), off(4, 8 * HOUR), **rules) == [(4, True)]
    assert planned(*spares, off(4, changed_at=NOON - RULES.least_off + MINUTE), **rules) == []
    assert planned(*spares, on(4, changing=True), **rules) == []
    assert planned(*spares, on(4), **rules) == [(2, False)]


def test_the_most_pressing_comes_first_and_says_why() -> None:
    machines = [on(1, idle=HOUR), off(2), off(3, 2 * MINUTE), off(4, MINUTE), on(5, MINUTE)]
    assert plan(machines, replace(RULES, warm=2), NOON) == (
        Switch(4, True, "needed at 2030-01-01 12:01:00 UTC"),
        Switch(3, True, "needed at 2030-01-01 12:02:00 UTC"),
        Switch(2, True, "one of 2 spare hosts"),
    )
    assert plan([on(1)], RULES, NOON) == (Switch(1, False, "idle since 2030-01-01 11:00:00 UTC"),)


@pytest.mark.parametrize(
    ("machines", "warm", "expected"),
    [
        ([off(1)], 0, None),
        ([off(1, HOUR)], 0, HOUR - RULES.power_on_lead),
        ([off(1, HOUR, busy=True), off(2, HOUR, managed=False)], 0, None),
        ([on(1, idle=MINUTE)], 0, RULES.idle_off_after - MINUTE),
        ([on(1, idle=MINUTE)], 1, None),
        ([on(1, WORTH + MINUTE, idle=MINUTE)], 0, None),  # not worth while any more when it may go
        ([on(1, HOUR), off(2)], 1, HOUR - RULES.power_on_lead),  # then host 2 is to be woken in its place
        ([on(1, HOUR), on(3, 50 * MINUTE), off(4)], 2, 50 * MINUTE - RULES.power_on_lead),
        ([on(1, HOUR), on(2, busy=True), on(3, 50 * MINUTE), off(4)], 1, HOUR - RULES.power_on_lead),
    ],
)
def test_when_to_look_again(machines: Sequence[Machine], warm: int, expected: timedelta | None) -> None:
    again = next_change(machines, replace(RULES, warm=warm), NOON)
    assert again == (None if expected is None else NOON + expected)


def test_when_to_look_again_for_spares_with_room() -> None:
    rules = replace(RULES, warm=1, spare_for=6 * HOUR)
    asleep = off(2, 9 * HOUR)
    assert next_change([on(1, 7 * HOUR), asleep], rules, NOON) == NOON + HOUR
    just_off = replace(asleep, changed_at=NOON - MINUTE)
    assert next_change([on(1, 5 * HOUR), just_off], rules, NOON) == NOON - MINUTE + RULES.least_off


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"warm": -1}, "warm is -1: it must be a whole number"),
        ({"warm": 1.5}, "warm is 1.5"),
        ({"warm": True}, "warm is True"),
        ({"idle_off_after": -1}, "idle_off_after is -1 day, 23:59:59: it must lie between 0 and 365 days"),
        ({"least_on": 10**9}, "least_on is"),
        ({"least_off": float("nan")}, "least_off is nan seconds"),
        ({"boot": float("inf")}, "boot is inf seconds"),
        ({"boot": 600, "power_on_lead": 599}, "leases would start late"),
    ],
)
def test_rules_that_cannot_be_kept_are_refused(wrong: dict[str, float], says: str) -> None:
    seconds: dict[str, float] = {"idle_off_after": 60, "power_on_lead": 600, "least_on": 0, "least_off": 0, "boot": 300}
    assert Rules.of_seconds(warm=0, **seconds).power_on_lead == 10 * MINUTE
    with pytest.raises(InvalidInput, match=says):
        Rules.of_seconds(**{"warm": 0, **seconds, **wrong})  # type: ignore[arg-type]


def hours(*pairs: tuple[float, float]) -> list[Period]:
    return [Period(NOON + start * HOUR, NOON + end * HOUR) for start, end in pairs]


@pytest.mark.parametrize(
    ("promises", "expected"),
    [
        ([], 24),
        (hours((0, 24)), 0),
        (hours((-5, 1), (30, 40)), 23),
        (hours((3, 23)), 3 - 1 / 3 + 1),
        (hours((0, 1), (2, 23.5)), 2 / 3),  # 40 minutes can just be used, half an hour cannot
        (hours((0, 1), (1.9, 24)), 0),
        (hours((2, 24), (0, 3)), 0),
        (hours((0, 12), (1, 2), (13, 24)), 2 / 3),
        (hours((0, 12), (24.1, 25)), 12 - 1 / 3 + 0.1),
    ],
)
def test_what_full_knowledge_would_allow(promises: list[Period], expected: float) -> None:
    day = Period(NOON, NOON + 24 * HOUR)
    assert best({1: promises}, day, RULES) == pytest.approx(expected)
    assert best({1: promises, 2: [], 3: promises}, day, RULES) == pytest.approx(2 * expected + 24)


def test_what_was_saved() -> None:
    def at(hour: float, up: bool) -> tuple[datetime, bool]:
        return NOON + hour * HOUR, up

    history = {
        1: [at(1, False), at(3, True), at(4, False)],  # still off
        2: [at(5, True), at(2, False)],  # in any order
        3: [at(0, True), at(1, True)],
        4: [at(1, False), at(2, False), at(9, True), at(12, False)],  # asked twice; what comes later does not count
        5: [],
    }
    until = NOON + 10 * HOUR
    assert saved(history, until) == Report({1: 8, 2: 3, 3: 0, 4: 8, 5: 0}, 19, None)
    since = saved(history, until, NOON + 2.5 * HOUR, {1: 100, 2: 200})
    assert since == Report({1: 6.5, 2: 2.5, 3: 0, 4: 6.5, 5: 0}, 15.5, pytest.approx(1.15))


spans = st.integers(0, 200).map(lambda minutes: minutes * MINUTE)
needs = st.none() | st.integers(-30, 300).map(lambda minutes: NOON + minutes * MINUTE)


@st.composite
def rule_sets(draw: st.DrawFn) -> Rules:
    boot = draw(spans)
    return Rules(draw(spans), boot + draw(spans), draw(st.integers(0, 4)), draw(spans), draw(spans), boot, draw(spans))


@st.composite
def pools(draw: st.DrawFn) -> list[Machine]:
    often = st.sampled_from([False, False, False, True])
    moments = spans.map(lambda span: NOON - span)
    rows = st.tuples(st.booleans(), moments, st.none() | moments, needs, often, often, often.map(lambda no: not no))
    return [Machine(number, *row) for number, row in enumerate(draw(st.lists(rows, max_size=8)), start=1)]


def soon(machine: Machine, rules: Rules, now: datetime = NOON) -> bool:
    return machine.next_need is not None and machine.next_need <= now + rules.power_on_lead


@given(pools(), rule_sets())
def test_what_is_needed_soon_comes_up_and_never_goes_off(machines: list[Machine], rules: Rules) -> None:
    known = {machine.host: machine for machine in machines}
    switches = {switch.host: switch.on for switch in plan(machines, rules, NOON)}
    assert all(known[host].switchable and known[host].on is not up for host, up in switches.items())
    for machine in machines:
        if machine.switchable and soon(machine, rules):
            assert switches.get(machine.host, machine.on)


@given(pools(), rule_sets())
def test_so_many_spares_are_on_as_there_can_be(machines: list[Machine], rules: Rules) -> None:
    def spare(machine: Machine) -> bool:
        return machine.on and not machine.busy and not soon(machine, rules)

    after = applied(machines, plan(machines, rules, NOON), NOON)
    possible = [m for m in machines if spare(m) or (m.switchable and not m.on and not soon(m, rules))]
    assert sum(map(spare, after)) >= min(rules.warm, len(possible))


@given(pools(), rule_sets(), st.randoms(use_true_random=False))
def test_asked_again_it_says_nothing_new_and_the_order_of_hosts_is_all_the_same(
    machines: list[Machine], rules: Rules, dice: object
) -> None:
    switches = plan(machines, rules, NOON)
    shuffled = list(machines)
    dice.shuffle(shuffled)  # type: ignore[attr-defined]
    assert plan(shuffled, rules, NOON) == switches
    assert plan(applied(machines, switches, NOON), rules, NOON) == ()


@given(pools(), rule_sets(), st.floats(0, 0.999))
def test_nothing_is_to_be_done_before_the_next_change(machines: list[Machine], rules: Rules, part: float) -> None:
    after = applied(machines, plan(machines, rules, NOON), NOON)
    again = next_change(machines, rules, NOON)
    assert again is None or again > NOON
    assert plan(after, rules, NOON + part * ((again or NOON + 999 * HOUR) - NOON)) == ()


@st.composite
def known_days(draw: st.DrawFn) -> tuple[list[Machine], dict[int, list[Period]]]:
    """Hosts of which all that will be asked is known beforehand."""
    machines, days = [], {}
    for number in range(1, draw(st.integers(1, 6)) + 1):
        lengths = draw(st.lists(st.tuples(st.integers(0, 400), st.integers(1, 200)), max_size=3))
        days[number], at = [], NOON
        for gap, length in lengths:
            days[number].append(Period(at + gap * MINUTE, at + (gap + length) * MINUTE))
            at = days[number][-1].end
        machines.append(Machine(number, draw(st.booleans()), NOON - draw(spans)))
    return machines, days


def seen(machine: Machine, periods: Sequence[Period], boot: timedelta, now: datetime) -> Machine:
    over = [period.end for period in periods if period.end <= now]
    ahead = [period.start for period in periods if period.start > now]
    busy = any(period.start <= now < period.end for period in periods)
    changing = machine.changing and machine.on and now < machine.changed_at + boot
    known = replace(machine, idle_since=max(over, default=None), next_need=min(ahead, default=None))
    return replace(known, busy=busy, changing=changing)


@settings(deadline=None)
@given(known_days(), rule_sets())
def test_left_alone_it_is_never_late_and_never_goes_to_and_fro(
    known: tuple[list[Machine], dict[int, list[Period]]], rules: Rules
) -> None:
    machines, days = known
    rules = replace(rules, power_on_lead=rules.power_on_lead + MINUTE)
    too_late = NOON + rules.power_on_lead  # what is off at first can be up by then, not sooner
    pressed = {host for host, periods in days.items() if any(period.start < too_late for period in periods)}
    machines = [replace(machine, on=machine.on or machine.host in pressed) for machine in machines]
    moments = [moment for periods in days.values() for period in periods for moment in (period.start, period.end)]
    switched: dict[int, datetime] = {}
    now: datetime | None = NOON
    while now is not None:
        machines = [seen(machine, days[machine.host], rules.boot, now) for machine in machines]
        for machine in machines:
            if machine.busy:
                assert machine.on
                assert not machine.changing
                assert switched.get(machine.host, NOON - WEEK) <= now - rules.power_on_lead
        for switch in plan(machines, rules, now):
            before = next(machine for machine in machines if machine.host == switch.host)
            least = rules.least_off if switch.on else rules.least_on
            if switch.host in switched or not switch.on:
                assert now - before.changed_at >= least
            switched[switch.host] = now
            moments.append(now + rules.boot)
        machines = list(applied(machines, plan(machines, rules, now), now))
        again = next_change(machines, rules, now)
        now = min((moment for moment in [*moments, again] if moment and moment > now), default=None)


def test_a_small_pool_over_some_days_saves_most_of_what_can_be_saved_and_starts_no_lease_late() -> None:
    load = Load(hosts=60, days=6, at_once=0.1, sizes=(1, 1, 1, 2))
    outcome = Pool(load, Rules(warm=6), seed=1).run()
    assert outcome.leases > 200
    assert outcome.late == []
    assert 0.8 < outcome.ratio < 1
    assert Pool(load, Rules(warm=6), seed=1).run() == outcome


def test_the_simulation_sees_late_starts_where_nobody_heeds_what_is_up_or_no_spares_are_kept() -> None:
    load = Load(hosts=60, days=6, sizes=(1, 1, 1, 2))
    for late in (Pool(replace(load, heeds=False), Rules(warm=6), 1), Pool(load, Rules(warm=0), 1)):
        lateness = late.run().late
        assert lateness
        assert max(lateness) <= Rules().boot + 2 * MINUTE
