"""The option --netlab: the whole run goes on in a sandbox, where tests with the marker `netlab` find real networks.

Without it those tests are left out.  Where there is no sandbox they are skipped with the reason, and fail when
CLIMATE_TEST_DRIVERS says that everything is required.
"""

import os
import sys

import pytest

from climate.sandbox.enter import with_system_programs
from climate.sandbox.entry_command import within, words
from climate.sandbox.features import KERNEL, ProbeResult, features, probe

FOUND = pytest.StashKey[ProbeResult]()
LEFT_OUT = pytest.StashKey[int]()
ELSEWHERE = ("CLIMATE_TEST_DATABASE_URL", "CLIMATE_TEST_REDIS_URL")
"""Servers that cannot be reached from inside."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--netlab", action="store_true", help="run in a sandbox, with the tests of real networks")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "netlab(*features): needs a sandbox with these; run by `make test-netlab`")
    config.stash[LEFT_OUT] = 0
    if not config.getoption("netlab"):
        return
    if not within():
        found = probe(os.environ)
        if found.reason is None:
            _go_on_inside(config)
        config.stash[FOUND] = found
        return
    config.stash[FOUND] = ProbeResult(features(os.environ))


def _go_on_inside(config: pytest.Config) -> None:
    """Begin this run again in a sandbox, as this very process."""
    capture = config.pluginmanager.getplugin("capturemanager")
    if capture is not None:
        capture.stop_global_capturing()
    sys.stdout.flush()
    sys.stderr.flush()
    argv = words([sys.executable, "-m", "pytest", *config.invocation_params.args])
    environ = {name: value for name, value in os.environ.items() if name not in ELSEWHERE}
    os.chdir(config.invocation_params.dir)
    os.execve(argv[0], argv, with_system_programs(environ))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("netlab"):
        return
    left_out = [item for item in items if item.get_closest_marker("netlab")]
    config.stash[LEFT_OUT] = len(left_out)
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if not item.get_closest_marker("netlab")]


def pytest_report_collectionfinish(config: pytest.Config) -> str | list[str]:
    left_out = config.stash[LEFT_OUT]
    return f"left out: {left_out} tests of real networks, which need --netlab (make test-netlab)" if left_out else []


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    marks = list(item.iter_markers("netlab"))
    if not marks:
        return
    wanted = [feature for mark in marks for feature in mark.args]
    lacks = item.config.stash[FOUND].lacks(wanted)
    if lacks is None:
        return
    only_kernel = item.config.stash[FOUND].reason is None and KERNEL.issuperset(_missing(item, wanted))
    if os.environ.get("CLIMATE_TEST_DRIVERS") == "required" and not only_kernel:
        pytest.fail(lacks)
    pytest.skip(lacks)


def _missing(item: pytest.Item, wanted: list[str]) -> set[str]:
    return set(wanted) - item.config.stash[FOUND].features
