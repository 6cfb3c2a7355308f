"""Results of a run: one outcome per test, and the counts of a suite."""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tests.tempest.suites import ATTRIBUTES, Suite

PASSED, FAILED, SKIPPED = "success", "fail", "skip"


@dataclass(frozen=True)
class Outcome:
    """Result of one test, or of a fixture of a class."""

    test: str
    """Path without attributes; `setUpClass (…)` and `tearDownClass (…)` for fixtures."""
    status: str
    reason: str = ""
    """Last line of the traceback of a failure."""

    @property
    def is_fixture(self) -> bool:
        return self.test.startswith(("setUpClass ", "tearDownClass "))


def read(lines: Iterable[str]) -> list[Outcome]:
    """Return the outcomes of the lines that stream_reader prints, ordered by test."""
    found = (json.loads(line) for line in lines if line.strip())
    outcomes = [Outcome(ATTRIBUTES.sub("", one["test"]), _status(one), one["reason"]) for one in found]
    return sorted(outcomes, key=lambda one: one.test)


def _status(one: dict[str, str]) -> str:
    return FAILED if one["status"] in ("inprogress", "uxsuccess") else one["status"]


def failed(outcomes: Sequence[Outcome]) -> dict[str, str]:
    """Return the reasons of all failed tests and fixtures by their name."""
    return {one.test: one.reason for one in outcomes if one.status == FAILED}


HEAD = "| suite | tests | passed | failed | skipped | classes not begun | classes not cleaned up |"


def row(name: str, suite: Suite, outcomes: Sequence[Outcome]) -> str:
    """Return the figures of a suite as a line of a table."""
    own = [one for one in outcomes if suite.has(one.test)]
    tests = Counter(one.status for one in own if not one.is_fixture)
    fixtures = Counter(one.test.partition(" ")[0] for one in own if one.is_fixture and one.status == FAILED)
    counts = (tests.total() - tests[SKIPPED], tests[PASSED], tests[FAILED], tests[SKIPPED])
    cells = (name, *counts, fixtures["setUpClass"], fixtures["tearDownClass"])
    return f"| {' | '.join(map(str, cells))} |"


def table(suites: dict[str, Suite], outcomes: Sequence[Outcome]) -> str:
    """Return the figures of all suites as a table."""
    rule = "|---" + "|--:" * (HEAD.count("|") - 2) + "|"
    return "\n".join((HEAD, rule, *(row(name, suite, outcomes) for name, suite in suites.items())))
