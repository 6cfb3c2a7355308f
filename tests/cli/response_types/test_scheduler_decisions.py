"""The types of scheduler decisions beside the decisions that `climate server explain` is tested with."""

from climate.cli.response_types.scheduler_decisions import SchedulerDecision
from tests.cli.response_types.answer_types import misfits
from tests.cli.servers.test_explain import PLACED, RETRY


def test_decisions_are_of_this_type() -> None:
    assert misfits([PLACED, RETRY], list[SchedulerDecision]) == []
