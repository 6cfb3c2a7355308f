"""A served cloud whose compute service works, and the clients' programs, each a process that is told many commands."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.compute.served_cloud import Served, served
from tests.databases import unsafe
from tests.system.openstack_shells import Said, Shells
from tests.system.stack import await_so

NODES = ("n1", "n2")


@dataclass(frozen=True)
class Person:
    """Somebody who types `openstack …`."""

    shells: Shells

    def __call__(self, words: str, *more: str) -> str:
        """What a command says; AssertionError when it fails.  `words` are split at blanks, `more` are not."""
        said = self._run(words, more)
        assert said.code == 0, said
        return said.out

    def read(self, words: str, *more: str) -> Any:
        """The answer of a command, from JSON."""
        return self._run(words, (*more, "-f", "json")).json()

    def refused(self, words: str, *more: str) -> str:
        """What a command that fails says of it."""
        said = self._run(words, more)
        assert said.code != 0, said
        return said.err

    def names(self, words: str, column: str = "Name") -> list[str]:
        """One column of a list."""
        return [row[column] for row in self.read(words)]

    def sees(self, server: str, status: str) -> None:
        """Wait until a server has a status, and is at rest."""

        def look() -> bool:
            seen = self.read(f"server show {server}")
            return bool(seen["status"] == status and seen["OS-EXT-STS:task_state"] in (None, "None"))

        await_so(look, 60, f"{server} to be {status}")

    def _run(self, words: str, more: tuple[str, ...]) -> Said:
        return self.shells.run("openstack", *words.split(), *more)


@pytest.fixture(scope="session")
def cloud(
    make_database: Callable[..., str], cloud_template: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Served]:
    """A served deployment."""
    database = unsafe(make_database(cloud_template))
    with served(database, tmp_path_factory.mktemp("home"), NODES) as found:
        yield found


@pytest.fixture(scope="session")
def home(cloud: Served) -> Path:
    """The folder with its clouds.yaml."""
    return cloud.home


def _person(home: Path, entry: str) -> Iterator[Person]:
    environ = {"HOME": str(home), "OS_CLIENT_CONFIG_FILE": str(home / "clouds.yaml"), "OS_CLOUD": entry}
    shells = Shells(environ)
    yield Person(shells)
    shells.close()


@pytest.fixture(scope="session")
def boss(home: Path) -> Iterator[Person]:
    """The administrator."""
    yield from _person(home, "climate")


@pytest.fixture(scope="session")
def demo(home: Path) -> Iterator[Person]:
    """A member of the project demo."""
    yield from _person(home, "climate-demo")
