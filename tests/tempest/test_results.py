"""Outcomes of a run of Tempest, and the figures of its suites."""

import json

from tests.tempest import results
from tests.tempest.results import FAILED, Outcome
from tests.tempest.stream_reader import error
from tests.tempest.suites import SUITES, chosen

LINES = [
    {"test": "tempest.api.image.v2.a.Test.one[id-1,smoke]", "status": "success", "reason": ""},
    {"test": "tempest.api.image.v2.a.Test.two[id-2]", "status": "fail", "reason": "NotFound: gone"},
    {"test": "tempest.api.image.v2.a.Test.three", "status": "inprogress", "reason": ""},
    {"test": "tempest.api.image.v2.a.Test.four", "status": "skip", "reason": "no such feature"},
    {"test": "setUpClass (tempest.api.image.v2.b.Test)", "status": "fail", "reason": "x"},
    {"test": "setUpClass (tempest.api.image.v2.c.Test)", "status": "skip", "reason": "x"},
    {"test": "tearDownClass (tempest.api.image.v2.a.Test)", "status": "fail", "reason": "x"},
    {"test": "tempest.api.network.d.Test.one", "status": "success", "reason": ""},
]


def test_outcomes_have_no_attributes_and_interrupted_tests_failed() -> None:
    found = results.read([json.dumps(line) for line in LINES] + [""])
    assert Outcome("tempest.api.image.v2.a.Test.two", FAILED, "NotFound: gone") in found
    assert Outcome("tempest.api.image.v2.a.Test.three", FAILED, "") in found
    assert results.failed(found).keys() == {line["test"].partition("[")[0] for line in LINES[1:3] + LINES[4:7:2]}


def test_figures_of_suites_count_tests_and_fixtures_apart() -> None:
    found = results.read([json.dumps(line) for line in LINES])
    table = results.table(chosen(["network", "image"]), found).splitlines()
    assert table[2:] == ["| image | 3 | 1 | 2 | 1 | 1 | 1 |", "| network | 1 | 1 | 0 | 0 | 0 | 0 |"]


def test_the_reason_of_a_failure_is_behind_the_last_frame() -> None:
    traceback = 'Traceback:\n  File "a.py", line 1, in a\n    call()\nNotFound: gone\nDetails: 404\n'
    assert error(traceback) == "NotFound: gone Details: 404"
    assert error("cinder is not available") == "cinder is not available"


def test_suites_select_disjoint_tests() -> None:
    names = ("tempest.api.compute.x.T.t", "blazar_tempest_plugin.tests.x", "setUpClass (tempest.api.network.x.T)")
    assert [[name for name, suite in SUITES.items() if suite.has(test)] for test in names] == [
        ["compute"],
        ["blazar"],
        ["network"],
    ]
