"""The command, run in this process against a fake server."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from climate.cli import run
from tests.cli.fake_server import PASSWORD, Wire, serving


@dataclass(frozen=True)
class Ran:
    """What a command answered."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        return json.loads(self.out)


Cli = Callable[..., Ran]


@pytest.fixture
def wire() -> Iterator[Wire]:
    with serving() as server:
        yield server


def write_clouds(folder: Path, url: str, password: str = PASSWORD, name: str = "climate") -> None:
    """A clouds.yaml with one cloud."""
    folder.mkdir(parents=True, exist_ok=True)
    auth = {"auth_url": f"{url}/identity", "username": "admin", "password": password, "project_name": "admin"}
    (folder / "clouds.yaml").write_text(yaml.safe_dump({"clouds": {name: {"auth": auth}}}))


@pytest.fixture
def environ(wire: Wire, tmp_path: Path) -> dict[str, str]:
    write_clouds(tmp_path, wire.url)
    return {"CLIMATE_HOME": str(tmp_path), "HOME": str(tmp_path / "nobody")}


@pytest.fixture
def cli(environ: dict[str, str], capsys: pytest.CaptureFixture[str]) -> Cli:
    def call(*arguments: str) -> Ran:
        code = run(arguments, environ)
        said = capsys.readouterr()
        return Ran(code, said.out, said.err)

    return call
