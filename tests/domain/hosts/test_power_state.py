"""What a look at a power supply means: every state on the books against everything that can be seen."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import product

import pytest

from climate.domain.hosts.power_state import PowerObservation, PowerTimeLimits, Verdict, judge

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)
PATIENCE = PowerTimeLimits(timedelta(minutes=10), timedelta(minutes=1))
RESTING = PowerObservation(True, NOW - timedelta(hours=1), None, None, "on", True)
LONG_AGO, JUST_NOW = NOW - timedelta(minutes=10), NOW - timedelta(minutes=9, seconds=59)
BEFORE, UP, OFF, STAYED_OFF, STAYED_ON = Verdict


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ({}, BEFORE),
        ({"state": "unknown"}, BEFORE),
        ({"state": "off"}, OFF),
        ({"state": "off", "idle": False}, BEFORE),
        ({"state": "", "refused": True}, BEFORE),
        ({"wanted": "off", "wanted_at": JUST_NOW}, BEFORE),
        ({"wanted": "off", "wanted_at": JUST_NOW, "state": "off", "idle": False}, OFF),
        ({"wanted": "off", "wanted_at": JUST_NOW, "refused": True}, STAYED_ON),
        ({"wanted": "off", "wanted_at": LONG_AGO}, STAYED_ON),
        ({"wanted": "off", "wanted_at": LONG_AGO, "state": "off"}, OFF),
        ({"on": False}, UP),
        ({"on": False, "well": False}, BEFORE),
        ({"on": False, "since": NOW - timedelta(seconds=59)}, BEFORE),
        ({"on": False, "state": "off"}, BEFORE),
        ({"on": False, "wanted": "on", "wanted_at": JUST_NOW, "state": "off"}, BEFORE),
        ({"on": False, "wanted": "on", "wanted_at": JUST_NOW}, UP),
        ({"on": False, "wanted": "on", "wanted_at": LONG_AGO}, UP),
        ({"on": False, "wanted": "on", "wanted_at": LONG_AGO, "well": False}, STAYED_OFF),
        ({"on": False, "wanted": "on", "wanted_at": LONG_AGO, "well": None}, BEFORE),
        ({"on": False, "wanted": "on", "wanted_at": LONG_AGO, "well": None, "state": "off"}, STAYED_OFF),
        ({"on": False, "wanted": "on", "wanted_at": JUST_NOW, "state": "", "refused": True}, STAYED_OFF),
        ({"on": False, "wanted": "off", "wanted_at": LONG_AGO, "state": "off"}, BEFORE),
    ],
    ids=range(22),
)
def test_what_is_seen(changes: dict[str, object], verdict: Verdict) -> None:
    assert judge(replace(RESTING, **changes), NOW, PATIENCE) is verdict  # type: ignore[arg-type]


def test_nothing_comes_up_that_is_up_and_nothing_goes_that_is_off() -> None:
    for on, wanted, state, well, refused, idle, at in product(
        (True, False), (None, "on", "off"), ("on", "off", "unknown", ""), (True, False, None), (True, False),
        (True, False), (LONG_AGO, JUST_NOW),
    ):  # fmt: skip
        seen = judge(
            PowerObservation(on, LONG_AGO, wanted, at if wanted else None, state, well, refused, idle), NOW, PATIENCE
        )
        assert seen in ({BEFORE, OFF, STAYED_ON} if on else {BEFORE, UP, STAYED_OFF})
        assert seen is not UP or (state == "on" and well)
        assert seen is not OFF or state == "off"
        assert wanted or seen not in (STAYED_ON, STAYED_OFF)
