"""The command with the home of a bundled Identity that listens."""

import io
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import structlog

from climate import log_setup
from climate.cli import run
from climate.settings import Settings
from tests.cli.conftest import Ran
from tests.cli.forked_command import run as run_forked
from tests.identity.identity_factory import Place, app_of, place, served


@dataclass
class Accounts:
    """The command, the identity behind it, and its environment."""

    place: Place
    environ: dict[str, str]
    capture: pytest.CaptureFixture[str]

    @property
    def home(self) -> Path:
        return self.place.settings.home

    def __call__(self, *arguments: str) -> Ran:
        self.capture.readouterr()
        code = run(arguments, self.environ)
        said = self.capture.readouterr()
        return Ran(code, said.out, said.err)

    def typed(self, text: str, *arguments: str) -> Ran:
        """Run the command in a process of its own, with a text on its standard input."""
        ended = run_forked(arguments, self.environ, text)
        return Ran(ended.returncode, ended.stdout, ended.stderr)

    def signs_in(self, user: str, password: str) -> bool:
        """Return whether a password is that of a user, who has a role in the project admin."""
        names = {"OS_USERNAME": user, "OS_PASSWORD": password, "OS_PROJECT_NAME": "admin"}
        url = {"OS_AUTH_URL": f"{self.place.settings.base_url}/identity/v3"}
        code = run(("project", "list"), {"CLIMATE_HOME": "/nowhere", **names, **url})
        self.capture.readouterr()
        return code == 0


@pytest.fixture(scope="session")
def scratch(make_database: Callable[..., str], cloud_template: str) -> str:
    return make_database(cloud_template)


@pytest.fixture
def accounts(scratch: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Accounts]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    home = tmp_path / "home"
    with place(scratch, home, Settings(home=home, port=port)) as found:
        log_setup.configure(level="WARNING", stream=io.StringIO())  # standard output is the command's
        with served(app_of(found), port):
            environ = {"CLIMATE_HOME": str(home), "HOME": str(tmp_path), "CLIMATE_PORT": str(port)}
            stores = {"CLIMATE_DATABASE_URL": scratch, "CLIMATE_REDIS_URL": "redis://broker.example.org"}
            yield Accounts(found, environ | stores, capsys)
    structlog.reset_defaults()
