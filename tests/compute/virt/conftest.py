"""One subject after the other, with everything that it made ended afterwards."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from climate.compute.errors import VirtError
from tests.campaign import cases
from tests.compute.virt.driver_cases import SUBJECTS, Subject, cannot


@pytest.fixture
def make_subject(tmp_path: Path) -> Iterator[Callable[[str], Subject]]:
    """Makes the subject of a name; skips the test when its driver cannot work here."""
    made: list[Subject] = []

    def make(name: str) -> Subject:
        made.append(SUBJECTS[name](tmp_path))
        trouble = made[-1].driver.trouble()
        if trouble is not None:
            cannot(trouble)
        return made[-1]

    yield make
    for subject in made:
        for server_id in subject.made:
            with contextlib.suppress(VirtError):
                subject.driver.delete(server_id)


ORDINARY = {"memory", "process", "cluster_of_memory", "one_node_of_memory"}
SHARE = {"qemu", "container", "one_node_of_processes"}
"""A cluster passes the verbs on to the drivers that are tried alone: with each of them it is tried in the campaign."""


@pytest.fixture(params=cases(SUBJECTS, ORDINARY, SHARE))
def subject(request: pytest.FixtureRequest, make_subject: Callable[[str], Subject]) -> Subject:
    return make_subject(request.param)


@pytest.fixture(params=cases([name for name in SUBJECTS if "memory" not in name], ORDINARY, SHARE))
def real(request: pytest.FixtureRequest, make_subject: Callable[[str], Subject]) -> Subject:
    """A subject whose guests are something."""
    return make_subject(request.param)
