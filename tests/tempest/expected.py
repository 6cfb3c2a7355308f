"""Expected failures: tests that climate does not pass, each with its reason."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from tests.tempest.results import Outcome, failed
from tests.tempest.suites import SUITES

FILE = Path(__file__).with_name("expected_failures.yaml")


@dataclass(frozen=True)
class Expected:
    """A test of which a failure is expected."""

    reason: str
    is_unsteady: bool = False
    """True if the test passes in some runs; the reason says what decides."""


def read(text: str) -> dict[str, Expected]:
    """Return the expected failures by test.

    Raise ValueError for an entry without reason, a test that is named twice, or one of no suite.
    """
    found: dict[str, Expected] = {}
    for entry in yaml.safe_load(text) or ():
        one = Expected(str(entry.get("reason") or "").strip(), bool(entry.get("unsteady")))
        if not one.reason:
            raise ValueError(f"no reason for {entry.get('tests')}")
        for test in entry["tests"]:
            if test in found:
                raise ValueError(f"{test} is named twice")
            if not any(suite.has(test) for suite in SUITES.values()):
                raise ValueError(f"{test} belongs to no suite")
            found[test] = one
    return found


@dataclass(frozen=True)
class Difference:
    """Difference between the list and a run."""

    unexpected: Mapping[str, str]
    """Failures that the list lacks, with the last line of their traceback."""
    superfluous: tuple[str, ...]
    """Tests of the list that passed, were skipped or do not exist."""

    def __bool__(self) -> bool:
        return bool(self.unexpected or self.superfluous)

    def __str__(self) -> str:
        more = [f"not expected: {test}\n    {reason}" for test, reason in self.unexpected.items()]
        less = [f"expected to fail, but did not: {test}" for test in self.superfluous]
        return "\n".join(more + less)


def compare(expected: Mapping[str, Expected], outcomes: Sequence[Outcome], suites: Sequence[str]) -> Difference:
    """Return the differences between the list and the outcomes of these suites."""
    seen = failed(outcomes)
    unexpected = {test: reason for test, reason in seen.items() if test not in expected}
    required = [
        test for test, one in expected.items() if not one.is_unsteady and any(SUITES[name].has(test) for name in suites)
    ]
    return Difference(unexpected, tuple(test for test in required if test not in seen))
