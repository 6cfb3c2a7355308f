"""The list of expected failures is read strictly, and compared in both directions."""

import pytest

from tests.tempest import expected
from tests.tempest.results import FAILED, PASSED, SKIPPED, Outcome
from tests.tempest.suites import SUITES

A, B = "tempest.api.compute.a.Test.one", "tempest.api.compute.a.Test.two"
CLASS = "setUpClass (tempest.api.image.v2.b.Test)"
LIST = f"""
- reason: not there
  tests: [{A}, "{CLASS}"]
- reason: depends on the time
  unsteady: true
  tests: [{B}]
"""


def outcomes(**statuses: str) -> list[Outcome]:
    names = {"a": A, "b": B, "fixture": CLASS}
    return [Outcome(names[key], status, f"why {key}") for key, status in statuses.items()]


def test_failures_of_the_list_are_expected() -> None:
    known = expected.read(LIST)
    for unsteady in (FAILED, PASSED):
        found = outcomes(a=FAILED, b=unsteady, fixture=FAILED)
        assert not expected.compare(known, found, ["compute", "image"])


def test_a_list_that_is_too_short_names_the_reason() -> None:
    difference = expected.compare({}, outcomes(a=FAILED, b=PASSED), ["compute"])
    assert dict(difference.unexpected) == {A: "why a"}
    assert str(difference) == f"not expected: {A}\n    why a"


@pytest.mark.parametrize("status", [PASSED, SKIPPED])
def test_a_list_that_is_too_long_names_the_test(status: str) -> None:
    difference = expected.compare(expected.read(LIST), outcomes(a=status), ["compute"])
    assert difference.superfluous == (A,)
    assert str(difference) == f"expected to fail, but did not: {A}"


def test_tests_of_suites_that_did_not_run_are_not_missed() -> None:
    known = expected.read(LIST)
    assert not expected.compare(known, [], ["network"])
    assert expected.compare(known, [], ["image"]).superfluous == (CLASS,)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (f"- tests: [{A}]", "no reason"),
        (f"- reason: x\n  tests: [{A}, {A}]", "named twice"),
        ("- reason: x\n  tests: [tempest.api.volume.Test.one]", "no suite"),
    ],
)
def test_a_list_with_faults_is_refused(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        expected.read(text)


def test_the_list_can_be_read_and_belongs_to_the_suites() -> None:
    known = expected.read(expected.FILE.read_text(encoding="utf-8"))
    assert all(any(suite.has(test) for suite in SUITES.values()) for test in known)
