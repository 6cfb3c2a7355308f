"""Collecting responses over real brokers."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field

import pytest

from climate.compute import Compute
from tests.compute.cells.collecting_suite import HANDLERS, CollectingSuite
from tests.workers.cell_stacks import CellStack, cell_stacks, stop_all


@dataclass
class BrokerCells:
    stacks: dict[str, CellStack]
    silent: set[str] = field(default_factory=set)
    below = frozenset({"top!right", "top!right!leaf"})

    def compute(self, name: str) -> Compute:
        return self.stacks[name].compute

    def silence(self, name: str) -> None:
        self.silent.add(name)

    def working(self) -> AbstractContextManager[None]:
        return self._working()

    @contextmanager
    def _working(self) -> Iterator[None]:
        for name, stack in self.stacks.items():
            if name not in self.silent:
                stack.start(HANDLERS)
        try:
            yield
        finally:
            stop_all(self.stacks.values())


@pytest.fixture(scope="module")
def stacks(
    make_database: Callable[..., str], cloud_template: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, CellStack]]:
    with cell_stacks(make_database, cloud_template, tmp_path_factory.mktemp("cells")) as found:
        yield found


class TestBroker(CollectingSuite):
    @pytest.fixture
    def tree(self, stacks: dict[str, CellStack]) -> BrokerCells:
        return BrokerCells(stacks)
