"""What every driver promises, tested on each."""

import traceback
from collections.abc import Callable

import pytest

from climate.power import OFF, ON, PowerDriver, PowerError, PowerRefused, Target
from tests.power.driver_cases import SHORT, Subject

VERBS: dict[str, Callable[[PowerDriver, Target], object]] = {
    "state": lambda driver, target: driver.state(target),
    "on": lambda driver, target: driver.on(target),
    "off": lambda driver, target: driver.off(target),
    "hard off": lambda driver, target: driver.off(target, hard=True),
}


@pytest.fixture(params=VERBS)
def verb(request: pytest.FixtureRequest) -> Callable[[PowerDriver, Target], object]:
    return VERBS[request.param]


def failing(verb: Callable[[PowerDriver, Target], object], driver: PowerDriver, target: Target) -> PowerError:
    """What the verb says, which names the host and shows no secret."""
    with pytest.raises(PowerError) as caught:
        verb(driver, target)
    assert "n1" in str(caught.value)
    shown = [*traceback.format_exception(caught.value), repr(caught.value), repr(target)]
    assert [text for text in shown if "horse" in text] == []
    return caught.value


def test_a_machine_is_switched_on(subject: Subject) -> None:
    subject.be(OFF)
    assert subject.driver.state(subject.target) == OFF
    subject.driver.on(subject.target)
    subject.settle()
    assert subject.driver.state(subject.target) == ON


@pytest.mark.parametrize("hard", [False, True])
def test_a_machine_is_switched_off(subject: Subject, hard: bool) -> None:
    subject.be(ON)
    assert subject.driver.state(subject.target) == ON
    subject.driver.off(subject.target, hard=hard)
    subject.settle()
    assert subject.driver.state(subject.target) == OFF


def test_a_state_that_follows_late_is_not_reported_early(subject: Subject) -> None:
    subject.be(OFF)
    subject.driver.on(subject.target)
    assert subject.driver.state(subject.target) == subject.late
    subject.settle()
    assert subject.driver.state(subject.target) == ON


@pytest.mark.parametrize(("verb", "before", "after"), [("on", OFF, ON), ("off", ON, OFF), ("hard off", ON, OFF)])
def test_what_is_asked_twice_ends_in_the_same_place(subject: Subject, verb: str, before: str, after: str) -> None:
    subject.be(before)
    for _ in range(2):
        VERBS[verb](subject.driver, subject.target)
    subject.settle()
    assert subject.driver.state(subject.target) == after
    asked = subject.asked()
    VERBS[verb](subject.driver, subject.target)
    assert subject.asked() == asked
    assert subject.driver.state(subject.target) == after


def test_a_shutdown_that_is_not_followed_can_be_forced(subject: Subject) -> None:
    subject.be(ON)
    subject.driver.off(subject.target)
    before = subject.asked()
    subject.driver.off(subject.target, hard=True)
    assert subject.asked() == before + 1
    subject.settle()
    assert subject.driver.state(subject.target) == OFF


def test_nobody_there_may_be_there_later(subject: Subject, verb: Callable[[PowerDriver, Target], object]) -> None:
    error = failing(verb, subject.driver, subject.closed())
    assert not isinstance(error, PowerRefused)


def test_who_does_not_answer_is_given_up(subject: Subject, verb: Callable[[PowerDriver, Target], object]) -> None:
    error = failing(verb, subject.driver, subject.silent())
    assert not isinstance(error, PowerRefused)
    assert f"within {SHORT:g} s" in str(error)


def test_a_wrong_password_is_refused(subject: Subject, verb: Callable[[PowerDriver, Target], object]) -> None:
    before = subject.asked()
    assert isinstance(failing(verb, subject.driver, subject.wrong()), PowerRefused)
    assert subject.asked() == before


def test_an_unknown_system_is_refused(
    make_subject: Callable[[str], Subject], verb: Callable[[PowerDriver, Target], object]
) -> None:
    # An IPMI controller has one system, and no name for it.
    for name in ("memory", "redfish"):
        subject = make_subject(name)
        assert subject.unknown is not None
        assert isinstance(failing(verb, subject.driver, subject.unknown()), PowerRefused)


def test_settings_that_the_schema_would_refuse_reach_nobody(
    subject: Subject, verb: Callable[[PowerDriver, Target], object]
) -> None:
    before = subject.asked()
    target = Target("n1", {**subject.target.settings, "timeout_seconds": 0}, subject.target.secrets)
    error = failing(verb, subject.driver, target)
    assert isinstance(error, PowerRefused)
    assert "timeout_seconds" in str(error)
    assert subject.asked() == before


def test_the_schema_accepts_what_it_has_accepted(subject: Subject) -> None:
    given = {**subject.target.settings, **subject.target.secrets}
    once = subject.driver.schema().load(given)
    assert subject.driver.schema().load(once) == once
    assert subject.driver.secrets <= set(subject.driver.schema().fields)
    assert not subject.driver.secrets & set(subject.driver.schema().dump(once))
