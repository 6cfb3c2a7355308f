"""The length of long tests: a small fixed share by default, the full length in `make campaign`.

`python -m tests.campaign` runs every slow test at full length, or those that are named, and writes the results to
docs/campaign.md.
"""

import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).parents[1]
TWO = ("-n", "2", "--dist", "loadfile", "--no-loadscope-reorder")
PAGE = ROOT / "docs" / "campaign.md"
VARIABLE = "CLIMATE_TEST_CAMPAIGN"
FULL = os.environ.get(VARIABLE) == "1"

T = TypeVar("T")

HEAD = """\
# The test campaign

`make campaign` runs the long tests at full length: process kills, request storms, stateful searches, mutants, generated
requests and whole demos. CI runs a fixed small share of each: `make test-slow`.
`make campaign ARGS=tests/machine/test_engine.py` runs some of them.
Each line is the last run of a module, on a machine with two cores.

| tests | passed | failed | skipped | minutes | date | commit |
|---|--:|--:|--:|--:|---|---|
"""

COUNTS = """
## Counts

Tests record what they did with `record_property`. Each line is the last run of a test in a campaign.

| test | counts | date | commit |
|---|---|---|---|
"""


def length(share: T, full: T) -> T:
    """Return `share`, or `full` when the campaign runs."""
    return full if FULL else share


def cases(values: Iterable[T], ordinary: Collection[T], share: Collection[T] | None = None) -> list[Any]:
    """Return the parameters of a test: `make test` takes those in `ordinary`, `make test-slow` the others.

    With a `share`, `make test-slow` takes only those in it, and the campaign takes the rest.
    """

    def marks(value: T) -> list[pytest.MarkDecorator]:
        if value in ordinary:
            return []
        return [pytest.mark.slow] if share is None or value in share else [pytest.mark.campaign]

    return [pytest.param(value, marks=marks(value)) for value in values]


def number(variable: str, usual: int) -> int:
    """Return the number in an environment variable of the campaign, or `usual` if it is not set."""
    return int(os.environ.get(variable) or usual)


@dataclass
class Suite:
    """The results of one test module."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    seconds: float = 0.0
    counts: dict[str, str] = field(default_factory=dict)
    """Properties that a test recorded, in words, by the name of the test."""


def suites(report: Path) -> dict[str, Suite]:
    """Return the results in a JUnit report, by test module."""
    found: dict[str, Suite] = defaultdict(Suite)
    for case in ElementTree.parse(report).iter("testcase"):
        suite = found[case.get("classname", "").replace(".", "/") + ".py"]
        suite.seconds += float(case.get("time", 0))
        outcomes = {child.tag for child in case}
        if outcomes & {"failure", "error"}:
            suite.failed += 1
        elif "skipped" in outcomes:
            suite.skipped += 1
        else:
            suite.passed += 1
        recorded = [f"{one.get('value')} {one.get('name')}" for one in case.iter("property")]
        if recorded:
            suite.counts[case.get("name", "")] = ", ".join(recorded)
    return dict(found)


@dataclass(frozen=True)
class Run:
    """When and with which code results were made."""

    day: str
    commit: str


def row(name: str, suite: Suite, run: Run) -> str:
    """Return the line of a test module in the page."""
    counts = f"{suite.passed} | {suite.failed} | {suite.skipped} | {suite.seconds / 60:.1f}"
    return f"| `{name}` | {counts} | {run.day} | {run.commit} |"


def page(before: str, found: Mapping[str, Suite], run: Run) -> str:
    """Return docs/campaign.md with these results; what was not run keeps the line that it has `before`."""
    results, _, counts = before.partition(COUNTS)
    rows = {name: row(name, suite, run) for name, suite in found.items()}
    counted = {
        f"{name}::{test}": f"| `{name}::{test}` | {what} | {run.day} | {run.commit} |"
        for name, suite in found.items()
        for test, what in suite.counts.items()
    }
    return HEAD + _table(_lines(results) | rows) + COUNTS + _table(_lines(counts) | counted)


def _lines(table: str) -> dict[str, str]:
    """Return the lines of a table by the name in their first cell."""
    return {line.split("`")[1]: line for line in table.splitlines() if line.startswith("| `")}


def _table(lines: Mapping[str, str]) -> str:
    return "".join(f"{lines[name]}\n" for name in sorted(lines))


BY_URL = ("tests/store", "tests/service", "tests/migrations", "tests/runner/test_by_url.py")


def runs(environ: Mapping[str, str]) -> list[tuple[str, ...]]:
    """Return the arguments of pytest for each run of the campaign.

    With CLIMATE_TEST_DATABASE_URL the ordinary tests of the stores and of the
    service are run too, on that server.
    """
    ordinary = ("-m", "not slow and not campaign", *BY_URL)
    return [("-m", "slow or campaign"), *([ordinary] if "CLIMATE_TEST_DATABASE_URL" in environ else [])]


def main(arguments: list[str]) -> int:
    """Run the campaign, or the modules in `arguments`; return the exit status of pytest."""
    found: dict[str, Suite] = {}
    failed = 0
    for chosen in runs({} if arguments else os.environ):
        with TemporaryDirectory(prefix="climate-campaign-") as folder:
            report = Path(folder) / "report.xml"
            command = [sys.executable, "-m", "pytest", *TWO, f"--junitxml={report}", *chosen, *arguments]
            failed |= subprocess.run(command, cwd=ROOT, env={**os.environ, VARIABLE: "1"}, check=False).returncode
            found |= suites(report) if report.exists() else {}
    if found:
        before = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
        PAGE.write_text(page(before, found, Run(f"{datetime.now(UTC):%Y-%m-%d}", _commit())), encoding="utf-8")
    return failed


def _commit() -> str:
    words = ["git", "rev-parse", "--short", "HEAD"]
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
