"""The log lines that make decisions visible, word for word."""

import logging
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from climate.compute.errors import NoValidHost
from climate.compute.models.request import Spec
from climate.compute.scheduler.filtering.scheduler import select
from climate.compute.scheduler.filters import FILTERS
from climate.compute.scheduler.hosts.table import Hosts, Mask
from climate.compute.scheduler.scheduler_parts import Filter, Options, Rules
from climate.compute.scheduler.weighers import WEIGHERS
from tests.compute.cloud_factory import node, place
from tests.compute.node_tables import hosts
from tests.compute.scheduler.filter_answers import SMALL

NAME = "climate.compute.scheduler"


def keeping(name: str, *ids: int) -> Filter:
    """A filter that lets these nodes pass."""

    def keep(table: Hosts, spec: Spec, options: Options) -> Mask:
        return np.isin(table.ids, ids)

    return Filter(name, keep)


def refused(caplog: pytest.LogCaptureFixture, level: int) -> list[str]:
    """The lines of a request that two filters leave nothing of."""
    spec = replace(SMALL, build_id="r-1", server_ids=("uuid-1",))
    with caplog.at_level(level, NAME), pytest.raises(NoValidHost):
        select(hosts({}, {}, {}), spec, 1, Rules((keeping("FilterA", 1, 2), keeping("FilterB")), WEIGHERS))
    return [record.getMessage() for record in caplog.records if record.name == NAME]


def test_a_refusal_lists_what_each_filter_left(caplog: pytest.LogCaptureFixture) -> None:
    assert refused(caplog, logging.INFO) == [
        "Filter FilterB returned 0 hosts",
        "Filtering removed all hosts for the request with reservation ID 'r-1' and instance ID 'uuid-1'. "
        "Filter results: ['FilterA: (start: 3, end: 2)', 'FilterB: (start: 2, end: 0)']",
    ]


def test_with_debugging_it_lists_the_hosts_too(caplog: pytest.LogCaptureFixture) -> None:
    assert refused(caplog, logging.DEBUG) == [
        "Starting with 3 host(s)",
        "(h, n3) ram:8192 disk:102400 io_ops:0 instances:0 was not accepted by FilterA.",
        "Filter FilterA returned 2 host(s)",
        "(h, n1) ram:8192 disk:102400 io_ops:0 instances:0 was not accepted by FilterB.",
        "(h, n2) ram:8192 disk:102400 io_ops:0 instances:0 was not accepted by FilterB.",
        "Filter FilterB returned 0 hosts",
        "Filtering removed all hosts for the request with reservation ID 'r-1' and instance ID 'uuid-1'. "
        "Filter results: ['FilterA: (start: 3, end: 2)', 'FilterB: (start: 2, end: 0)']",
        "Filtering removed all hosts for the request with reservation ID 'r-1' and instance ID 'uuid-1'. "
        "Filter results: [('FilterA', [('h', 'n1'), ('h', 'n2')]), ('FilterB', None)]",
        "There are 0 hosts available but 1 instances requested to build.",
    ]


def test_ignored_and_forced_hosts_are_reported(caplog: pytest.LogCaptureFixture) -> None:
    table = [{"service_host": "h1"}, {"service_host": "h2"}, {"service_host": "h3"}]
    rules = Rules(FILTERS, WEIGHERS)
    with caplog.at_level(logging.INFO, NAME):
        select(hosts(*table), replace(SMALL, ignore_hosts=("h1", "h2")), 1, rules)
        select(hosts(*table), replace(SMALL, force_hosts=("h2",), force_nodes=("n2",)), 1, rules)
        with pytest.raises(NoValidHost):
            select(hosts(*table), replace(SMALL, force_nodes=("n9",)), 1, rules)
    assert [record.getMessage() for record in caplog.records if record.levelno == logging.INFO] == [
        "Host filter ignoring hosts: h1, h2",
        "Host filter forcing available hosts to h2",
        "Host filter forcing available nodes to n2",
        "No hosts matched due to not matching 'force_nodes' value of 'n9'",
        "Filtering removed all hosts for the request with reservation ID '' and instance ID ''. Filter results: []",
    ]


def test_a_real_boot_shows_the_weights_of_the_fields_example(
    scratch: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    nodes = [
        node("devstack-controller", memory_mb=7978, reserved_ram_mb=512),
        node("devstack-compute1", memory_mb=3946, reserved_ram_mb=512),
    ]
    with place(scratch, tmp_path, nodes) as here, caplog.at_level(logging.DEBUG, NAME):
        assert here.boot_one().node == "devstack-controller"
    lines = [record.getMessage() for record in caplog.records if record.name == NAME]
    first = "(compute-1, devstack-controller) ram:7466 disk:102400 io_ops:0 instances:0"
    second = "(compute-1, devstack-compute1) ram:3434 disk:102400 io_ops:0 instances:0"
    assert lines == [
        "Starting with 2 host(s)",
        *[f"Filter {rule.name} returned 2 host(s)" for rule in FILTERS],
        f"Filtered [{second}, {first}]",
        f"Weighed [WeighedHost [host: {first}, weight: 1.0], WeighedHost [host: {second}, weight: 0.4599517814090544]]",
        f"Selected host: WeighedHost [host: {first}, weight: 1.0]",
    ]


def test_long_lists_are_cut_short(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, NAME):
        select(hosts(*[{}] * 103), SMALL, 1, Rules(FILTERS, WEIGHERS))
    filtered = next(record.getMessage() for record in caplog.records if record.getMessage().startswith("Filtered"))
    assert filtered.endswith("instances:0, and 3 more]")
    assert filtered.count("(h, n") == 100


def test_nothing_is_said_of_an_ordinary_placement_without_debugging(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, NAME):
        select(hosts({}, {"up": False}), SMALL, 2, Rules(FILTERS, WEIGHERS))
    assert caplog.records == []
