"""The page of the campaign is written from the results that pytest reports."""

from pathlib import Path

from tests.campaign import COUNTS, PAGE, ROOT, Run, Suite, cases, page, suites

REPORT = """<testsuites><testsuite>
<testcase classname="tests.system.test_chaos" name="test_a_gust" time="60.0"><properties>
<property name="kills" value="12" /><property name="leases" value="40" /></properties></testcase>
<testcase classname="tests.system.test_chaos" name="test_more" time="240.0"><failure message="no" /></testcase>
<testcase classname="tests.machine.test_engine" name="test_one" time="30.0"><skipped message="not here" /></testcase>
<testcase classname="tests.machine.test_engine" name="test_two" time="30.0"><error message="set-up" /></testcase>
</testsuite></testsuites>"""


def test_results_are_counted_by_module(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    report.write_text(REPORT, encoding="utf-8")
    assert suites(report) == {
        "tests/system/test_chaos.py": Suite(
            passed=1, failed=1, seconds=300.0, counts={"test_a_gust": "12 kills, 40 leases"}
        ),
        "tests/machine/test_engine.py": Suite(failed=1, skipped=1, seconds=60.0),
    }


def test_page_keeps_the_lines_of_modules_that_were_not_run() -> None:
    first = page(
        "", {"tests/a.py": Suite(passed=3, seconds=90.0), "tests/b.py": Suite(passed=1)}, Run("2030-01-01", "abc")
    )
    again = page(first, {"tests/b.py": Suite(passed=1, failed=1, seconds=6.0)}, Run("2030-01-02", "def"))
    assert "| `tests/a.py` | 3 | 0 | 0 | 1.5 | 2030-01-01 | abc |" in again
    assert "| `tests/b.py` | 1 | 1 | 0 | 0.1 | 2030-01-02 | def |" in again
    assert again.count("tests/b.py") == 1


def test_page_keeps_the_counts_of_tests_that_were_not_run() -> None:
    counted = Suite(passed=2, counts={"test_one": "7 kills", "test_two": "8 kills"})
    first = page("", {"tests/a.py": counted}, Run("2030-01-01", "abc"))
    again = page(first, {"tests/a.py": Suite(passed=1, counts={"test_two": "9 kills"})}, Run("2030-01-02", "def"))
    assert "| `tests/a.py::test_one` | 7 kills | 2030-01-01 | abc |" in again
    assert "| `tests/a.py::test_two` | 9 kills | 2030-01-02 | def |" in again
    assert again.count("test_two") == 1
    assert again.count("| `tests/a.py` |") == 1


def test_page_in_docs_has_results_and_no_failures() -> None:
    results, _, _ = PAGE.read_text(encoding="utf-8").partition(COUNTS)
    rows = [line.split("|") for line in results.splitlines() if line.startswith("| `tests/")]
    assert rows
    assert [cells[1] for cells in rows if cells[3].strip() != "0"] == []


def test_cases_are_divided_among_the_runs() -> None:
    given = cases("abc", {"a"}, {"b"})
    assert [[mark.name for mark in one.marks] for one in given] == [[], ["slow"], ["campaign"]]
    assert [[mark.name for mark in one.marks] for one in cases("ab", {"a"})] == [[], ["slow"]]


def test_campaign_has_the_keystone_of_make_test_keystone() -> None:
    """`make campaign` installs an OpenStack only, whose Keystone tests/real_keystone finds."""
    alone = (ROOT / "tests" / "real_keystone" / "requirements.txt").read_text(encoding="utf-8")
    pins = {line for line in alone.splitlines() if "==" in line}
    locked = (ROOT / "tests" / "real_openstack" / "requirements.lock").read_text(encoding="utf-8")
    assert {pin.partition("==")[0] for pin in pins} == {"keystone", "gunicorn"}
    assert pins <= {line.removesuffix(" \\") for line in locked.splitlines()}
