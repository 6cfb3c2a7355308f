"""An outage costs one request its timeout, and the others nothing."""

import pytest

from climate.domain.errors import Unavailable
from climate.identity.keystone.outage import PAUSE, Outage
from tests.identity.keystone.hands import Hands


def test_one_request_at_a_time_finds_out() -> None:
    hands = Hands()
    outage = Outage(5.0, clock=lambda: hands.seconds)
    outage.enter()
    outage.enter()
    outage.begin()
    with pytest.raises(Unavailable):
        outage.enter()
    hands.go_on(PAUSE)
    outage.enter()
    with pytest.raises(Unavailable):
        outage.enter()
    outage.end()
    outage.enter()
    outage.enter()


def test_a_request_that_never_came_back_blocks_nobody() -> None:
    hands = Hands()
    outage = Outage(5.0, clock=lambda: hands.seconds)
    outage.begin()
    hands.go_on(PAUSE)
    outage.enter()
    hands.go_on(5.0 + PAUSE)
    outage.enter()
