"""One stack for the tests that leave it as they found it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from climate.compute.nodes import nodes_file
from tests.system.api_client import Api
from tests.system.stack import Stack, await_so
from tests.system.zone_tree import SECONDS, ZoneTree, zone_tree

RACE_HOSTS = tuple(f"race-{place}" for place in range(1, 9))


def furnish(home: Path, names: tuple[str, ...]) -> None:
    """Give the bundled cloud further nodes beside those of the demo."""
    home.mkdir(parents=True, exist_ok=True)
    nodes_file.write(home, nodes_file.demo_nodes())
    entries = yaml.safe_load((home / nodes_file.FILE).read_text(encoding="utf-8"))
    more = [{**entries[0], "name": name} for name in names]
    (home / nodes_file.FILE).write_text(yaml.safe_dump(entries + more), encoding="utf-8")


@pytest.fixture(scope="package")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A stack with the demo's hosts; in the end it stops by itself and leaves no process."""
    one = Stack(tmp_path_factory.mktemp("stack"))
    furnish(one.home, RACE_HOSTS)
    try:
        one.start()
        yield one
    finally:
        result = one.stop()
    assert result == 0, one.tail()
    assert one.left() == []


@pytest.fixture(scope="package")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZoneTree]:
    """Four deployments for the tests that leave them as they found them; the parent has polled its children."""
    with zone_tree(tmp_path_factory.mktemp("zones")) as made:
        await_so(lambda: len(made.active()) == 2, SECONDS, "the first polls")
        yield made


@pytest.fixture(scope="package")
def admin(stack: Stack) -> Iterator[Api]:
    api = Api(stack.home, "climate")
    yield api
    api.close()


@pytest.fixture(scope="package")
def member(stack: Stack) -> Iterator[Api]:
    api = Api(stack.home, "climate-demo")
    yield api
    api.close()
