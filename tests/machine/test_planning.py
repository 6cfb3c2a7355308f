"""Waiting list, series and preemptible leases: Hypothesis looks for an order of events that breaks a promise."""

from collections.abc import Callable, Iterator

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant
from sqlalchemy import Engine

from climate.settings import Settings
from tests.machine import planning_rules, user_rules
from tests.machine.deployment import Site
from tests.machine.environment_rules import Surroundings
from tests.machine.host_invariants import at_any_moment, when_all_is_quiet
from tests.machine.planning_rules import Planners, ordinary_leases_keep_their_hosts
from tests.machine.search import look
from tests.machine.world import empty, on_database


class Machine(Planners, Surroundings, RuleBasedStateMachine):
    """Users who ask for ordinary, preemptible, waiting and repeated leases, with all that happens around them."""

    engine: Engine
    known = user_rules.known
    series = planning_rules.series
    site: Site

    @initialize(
        cleaning=st.sampled_from([0, 120]),
        patience=st.sampled_from([-1, -1, 600]),
        notice=st.sampled_from([0, 120]),
    )
    def begin(self, cleaning: int, patience: int, notice: int) -> None:
        empty(self.engine)
        self.site = Site(
            self.engine,
            settings=Settings(
                minutes_before_end=0,
                claim_seconds=15,
                cleaning_time=cleaning,
                recycle_lead=120,
                waiting_patience=patience,
                waiting_per_project=-1,
                preemption_notice=notice,
                failed_after=60,
            ),
        )

    @invariant()
    def promises_are_kept(self) -> None:
        at_any_moment(self.site)
        ordinary_leases_keep_their_hosts(self)

    def teardown(self) -> None:
        if not hasattr(self, "site"):
            return
        self.site.heal()
        self.site.heal_hosts()
        self.site.settle(8)
        self.site.let_go()
        self.site.come_to_rest()
        when_all_is_quiet(self.site)


@pytest.fixture(scope="module")
def machine(make_database: Callable[..., str], engine_template: str) -> Iterator[type[Machine]]:
    with on_database(Machine, make_database(engine_template)) as one:
        yield one


@pytest.mark.slow
def test_no_order_of_plans_breaks_a_promise(machine: type[Machine]) -> None:
    look(machine, examples=8, steps=30)


@pytest.mark.campaign
@pytest.mark.timeout(3600)
def test_no_order_of_plans_breaks_a_promise_in_a_long_search(machine: type[Machine]) -> None:
    look(machine, examples=60, steps=50)
