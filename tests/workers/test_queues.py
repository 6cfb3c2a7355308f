"""Which queues a worker serves."""

import pytest

from climate.settings import SettingError
from workers.celery_app import Hosts, queues

TYPES = ["physical:host", "virtual:instance"]


def names(wanted: str) -> set[str]:
    return {queue.name for queue in queues(TYPES, Hosts("here", "there"), wanted)}


def test_everything_unless_something_is_asked_for() -> None:
    assert names("") == {"events", "events.physical:host", "events.virtual:instance", "compute.here", "network.there"}


def test_a_slow_plugin_may_have_workers_of_its_own() -> None:
    assert names("virtual:instance") == {"events.virtual:instance"}
    assert names("events, compute, physical:host") == {"events", "compute.here", "events.physical:host"}


def test_a_queue_that_does_not_exist_is_named() -> None:
    there = "compute, events, network, physical:host, virtual:instance"
    with pytest.raises(SettingError, match=f"no queue gpu; there are {there}"):
        names("gpu")


def test_an_api_cell_has_no_compute_service() -> None:
    here = Hosts("here", "there")
    assert "compute.here" not in {queue.name for queue in queues(TYPES, here, has_nodes=False)}
    with pytest.raises(SettingError, match="no queue compute"):
        queues(TYPES, here, "compute", has_nodes=False)
