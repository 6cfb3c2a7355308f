"""Demo trees of `climate up --demo zones` and `--demo cells`: several complete deployments on this machine."""

import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from climate.cli.connection.client import Client
from climate.cli.connection.clouds import find
from climate.cli.connection.session import Session
from climate.cli.demo import stack
from climate.cli.demo.stack import Stack
from climate.cli.errors import USAGE, Failure

SETTINGS = {"CLIMATE_WEB_PROCESSES": "1", "CLIMATE_WORKER_PROCESSES": "2"}
"""Default settings of deployments that share one machine."""


@dataclass(frozen=True, slots=True)
class Deployment:
    """One deployment of a tree."""

    name: str
    home: Path
    host: str
    port: int | None = None
    """Port of its APIs; None: it has no web process."""

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"

    @property
    def api_url(self) -> str:
        return f"{self.url}/compute/v2.1"


@dataclass(frozen=True, slots=True)
class DemoTree:
    """A tree of deployments that this machine can run."""

    noun: str
    """Name of one deployment in messages."""
    parents: Mapping[str, str | None]
    """Deployment -> its parent; parents stand before their children."""
    surroundings: Callable[[Deployment], Mapping[str, str]]
    """Further settings of a deployment."""
    join: Callable[[Mapping[str, str], Deployment, Deployment], None]
    """Function that links a child to its parent: (environment, parent, child).  It is idempotent."""
    hint: Callable[[Deployment], str]
    """Example command for the top deployment."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """As SETTINGS."""
    child_processes: tuple[str, ...] = ()
    """Processes of the deployments below the top; empty: all."""
    settle: Callable[[Deployment], None] = lambda top: None
    """Function that waits until the top knows its tree."""

    @property
    def folder(self) -> str:
        """Return the folder of all homes in CLIMATE_HOME."""
        return f"{self.noun}s"

    def has_web(self, name: str) -> bool:
        """Return whether a deployment has a web process."""
        return self.parents[name] is None or not self.child_processes


def run(tree: DemoTree, session: Session, port: int | None) -> int:
    """Start and link the deployments, and keep them running until a signal asks for the end."""
    settings = session.settings
    if settings.database_url or settings.redis_url:
        raise Failure(
            f"each {tree.noun} has stores of its own, but CLIMATE_DATABASE_URL or CLIMATE_REDIS_URL is set",
            USAGE,
            "unset them",
        )
    result = deployments(tree, settings.home.absolute() / tree.folder, settings.host, port or settings.port)
    with ExitStack() as stacks, contextlib.suppress(SystemExit, KeyboardInterrupt):
        for one in result.values():
            session.say(f"starting {one.name}{f' at {one.url}' if one.port else ''}, in {one.home}")
            stacks.enter_context(_running(tree, session.environ, one))
        for name, parent in tree.parents.items():
            if parent is not None:
                tree.join(session.environ, result[parent], result[name])
                session.say(f"{name} is a child of {parent}")
        top = next(iter(result.values()))
        tree.settle(top)
        session.say(f"the {tree.noun}s are ready; try: {tree.hint(top)}")
        threading.Event().wait()
    session.say(f"the {tree.noun}s are stopped")
    return 0


def deployments(tree: DemoTree, home: Path, host: str, first_port: int) -> dict[str, Deployment]:
    """Return the deployments by name, with ports in a row; Failure if a port is in use."""
    with_web = [name for name in tree.parents if tree.has_web(name)]
    ports = dict(zip(with_web, range(first_port, first_port + len(with_web)), strict=True))
    for port in ports.values():
        stack.check_port(host, port, len(with_web))
    return {name: Deployment(name, home / name, host, ports.get(name)) for name in tree.parents}


def environ_of(tree: DemoTree, environ: Mapping[str, str], one: Deployment) -> dict[str, str]:
    """Return the environment of one deployment."""
    kept = {name: value for name, value in environ.items() if not name.startswith("OS_")}
    own = {
        "CLIMATE_HOME": str(one.home),
        "CLIMATE_HOST": one.host,
        "CLIMATE_PUBLIC_URL": "",
        "CLIMATE_COMPUTE_HOST": f"{one.name}-compute",
        **({"CLIMATE_PORT": str(one.port)} if one.port else {}),
    }
    return {**SETTINGS, **tree.settings, **kept, **own, **tree.surroundings(one)}


@contextlib.contextmanager
def client(one: Deployment) -> Iterator[Client]:
    """Return a client for the administrator of a deployment."""
    result = Client(find(None, {}, one.home))
    try:
        yield result
    finally:
        result.close()


def _running(tree: DemoTree, environ: Mapping[str, str], one: Deployment) -> contextlib.AbstractContextManager[Stack]:
    has_web = tree.has_web(one.name)
    words = (*stack.PLAIN_UP, *(() if has_web else tree.child_processes), "--demo")
    return stack.running(environ_of(tree, environ, one), lambda spent: None, words, has_web=has_web)
