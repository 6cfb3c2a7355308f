"""Both stores: which of them climate runs itself, and running them while a block of code lasts."""

import contextlib
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from climate.embedded import postgres, valkey
from climate.embedded.errors import StoreError
from climate.embedded.home import Stores, locked
from climate.embedded.spawn import Program, start, stop
from climate.settings import Settings

START_SECONDS = 120.0
"""Start timeout of a store, which first recovers after a crash."""


class Store(Protocol):
    """A store that climate runs itself, as `climate up` uses it."""

    @property
    def program(self) -> Program: ...
    @property
    def url(self) -> str: ...

    def before(self) -> None:
        """Prepare a start; called before each one."""

    def answers(self, pid: int) -> bool:
        """Return whether the server with this pid can be used now."""

    def settle(self) -> None:
        """Finish the setup; called once after the first start."""


def own_stores(settings: Settings, home: Path, lock: int) -> dict[str, Store]:
    """Return the stores without a URL by the name of their setting; missing data is initialised."""
    own: dict[str, Store] = {}
    if not settings.database_url:
        own["database_url"] = postgres.prepare(home, settings.pg_bin, lock)
    if not settings.redis_url:
        own["redis_url"] = valkey.prepare(home, lock)
    return own


def urls(settings: Settings, own: dict[str, Store]) -> Stores:
    """Return the URLs of the stores: the given ones, or else those that climate runs itself."""
    given = {"database_url": settings.database_url, "redis_url": settings.redis_url}
    return Stores(**given | {name: store.url for name, store in own.items()})


@contextlib.contextmanager
def run(home: Path, settings: Settings | None = None) -> Iterator[Stores]:
    """Run the stores without a URL in the settings while the block lasts; their logs are in `home`/logs."""
    settings = settings or Settings()
    home = home.resolve()
    with contextlib.ExitStack() as stack:
        lock = stack.enter_context(locked(home))
        own = own_stores(settings, home, lock)
        (home / "logs").mkdir(exist_ok=True)
        children = [(store, stack.enter_context(_started(home, store))) for store in own.values()]
        for store, child in children:
            _await(home, store, child)
            store.settle()
        yield urls(settings, own)


@contextlib.contextmanager
def _started(home: Path, store: Store) -> Iterator[subprocess.Popen[bytes]]:
    store.before()
    with _log(home, store).open("wb") as output:
        child = start(store.program, output)
    try:
        yield child
    finally:
        stop(child, store.program)


def _await(home: Path, store: Store, child: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not store.answers(child.pid):
        if child.poll() is not None or time.monotonic() > deadline:
            said = _log(home, store).read_text(encoding="utf-8", errors="replace").strip().splitlines()
            raise StoreError(f"{store.program.name} did not start: {' / '.join(said[-3:]) or child.returncode}")
        time.sleep(0.02)


def _log(home: Path, store: Store) -> Path:
    return home / "logs" / f"{store.program.name}.log"
