"""`climate up`: start stores, migrations and every process of the Procfile, and supervise them."""

import contextlib
import ctypes
import http.client
import os
import shutil
import socket
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TextIO

from climate.embedded import StoreError, reaper
from climate.embedded.account import libc
from climate.embedded.home import Stores, locked, publish, publish_web, withdraw
from climate.embedded.spawn import Program
from climate.embedded.stores import START_SECONDS, Store, own_stores, urls
from climate.runner.console import Console
from climate.runner.managed_process import Child
from climate.runner.next_steps import in_a_browser, next_steps
from climate.runner.procfile import RELEASE, ProcfileError, parse
from climate.runner.reaper_pipe import Lifeline
from climate.runner.supervise import StackFailed, Stopped, Supervisor
from climate.settings import METADATA_HERE, Settings

PR_SET_CHILD_SUBREAPER = 36
WEB = "web"
CELLS, METADATA = "cells", "metadata"
"""Processes that run only if settings require them."""
STOP_SECONDS: Mapping[str, float] = {"worker": 15.0}
"""Stop timeouts other than ten seconds."""
RELEASE_SECONDS = 600.0
READY_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class ProcessSelection:
    """Selection of processes: names in the Procfile (empty: all), the number of each, and a command that runs
    between `release` and the others.
    """

    procfile: str
    only: tuple[str, ...] = ()
    formation: Mapping[str, int] = field(default_factory=dict)
    first: tuple[str, ...] = ()

    def commands(self, environ: Mapping[str, str], unused: frozenset[str] = frozenset()) -> dict[str, tuple[str, ...]]:
        """Return the words of each process, without `release`; several of one kind are named `worker.1` and so on.

        The processes in `unused` are left out unless they are named.
        """
        wanted = {*self.only, *self.formation}
        known = {name: words for name, words in parse(self.procfile, environ).items() if name not in unused - wanted}
        unknown = wanted - known.keys() | wanted & {RELEASE}
        if unknown:
            raise ProcfileError(f"the Procfile has no process named {', '.join(sorted(unknown))}")
        if self.formation.get(WEB, 1) > 1:
            raise ProcfileError(
                "only one web process can listen on the port; set CLIMATE_WEB_PROCESSES for its workers"
            )
        chosen = {name: words for name, words in known.items() if name != RELEASE and name in (self.only or known)}
        return {each: words for name, words in chosen.items() for each in self._instances(name)}

    def release(self, environ: Mapping[str, str]) -> tuple[str, ...]:
        """Return the words of the command that runs before all others, or none."""
        return parse(self.procfile, environ).get(RELEASE, ())

    def _instances(self, name: str) -> list[str]:
        count = self.formation.get(name, 1)
        return [name] if count == 1 else [f"{name}.{number + 1}" for number in range(count)]


def up(settings: Settings, environ: Mapping[str, str], order: ProcessSelection, out: TextIO) -> int:
    """Run everything until SIGINT, SIGTERM or SIGHUP; return the exit status.

    Errors are printed in one line each.  No child outlives this process, even after a crash.
    """
    console = Console(out, colours=out.isatty() and not environ.get("NO_COLOR"))
    settings = replace(settings, home=settings.home.resolve())
    try:
        commands = order.commands(environ, _unused(settings))
        with locked(settings.home) as lock:
            if _has_web(commands):
                _check_port(settings)
            return _Stack(settings, environ, order, console).run(commands, lock)
    except (StoreError, ProcfileError, StackFailed) as error:
        console.say(f"climate up: {error}")
        return 1


class _Stack:
    """One run of `climate up`."""

    def __init__(
        self, settings: Settings, environ: Mapping[str, str], order: ProcessSelection, console: Console
    ) -> None:
        self._settings = settings
        self._environ = environ
        self._order = order
        self._console = console

    def run(self, commands: Mapping[str, tuple[str, ...]], lock: int) -> int:
        _adopt_orphans()
        lifeline = Lifeline(self._settings.home, lock)
        supervisor = Supervisor(self._console, lifeline)
        stores: list[Child] = []
        try:
            with supervisor.signals():
                try:
                    where = self._begin_stores(supervisor, lock, stores)
                    self._begin_processes(supervisor, commands, child_environ(self._settings, self._environ, where))
                    supervisor.serve()
                except Stopped:
                    self._console.say("climate is stopping")
                    return 0
                finally:
                    self._end(supervisor, stores)
        finally:
            lifeline.cut()

    def _end(self, supervisor: Supervisor, stores: list[Child]) -> None:
        """Stop the processes, then their children, and last the stores."""
        supervisor.stop(keeping=stores)
        reaper.end_servers(self._settings.home)
        withdraw(self._settings.home)
        supervisor.stop()

    def _begin_stores(self, supervisor: Supervisor, lock: int, begun: list[Child]) -> Stores:
        home = self._settings.home
        own = own_stores(self._settings, home, lock)
        begun += [supervisor.add(store.program, before=store.before) for store in own.values()]
        for store, child in zip(own.values(), begun, strict=True):
            supervisor.wait_for(partial(_answers, store, child), START_SECONDS, f"the start of {child.name}")
            store.settle()
        stores = urls(self._settings, own)
        publish(home, stores)
        return stores

    def _begin_processes(
        self, supervisor: Supervisor, commands: Mapping[str, tuple[str, ...]], environ: Mapping[str, str]
    ) -> None:
        for name, words in (RELEASE, self._order.release(environ)), ("first", self._order.first):
            if words:
                supervisor.run(_program(name, words, environ), RELEASE_SECONDS)
        for name, words in commands.items():
            supervisor.add(_program(name, words, environ))
        if _has_web(commands):
            supervisor.wait_for(lambda: _is_healthy(self._settings), READY_SECONDS, "the web process")
            publish_web(self._settings.home, _local_url(self._settings))
            self._console.say(f"climate is ready at {self._settings.base_url}")
            home, demo = self._settings.home, "--demo" in self._order.first
            for line in next_steps(home, self._environ, demo=demo):
                self._console.say(line)
            self._console.say(in_a_browser(home, self._settings.base_url, demo=demo))
        else:
            self._console.say(f"climate runs {', '.join(commands)}")
        supervisor.ready = True


def child_environ(settings: Settings, environ: Mapping[str, str], stores: Stores) -> dict[str, str]:
    """Return the environment of a process of the Procfile: the URLs of the stores, and this Python's programs first."""
    beside_us = str(Path(sys.executable).parent)
    return {
        **environ,
        "PATH": os.pathsep.join(filter(None, (beside_us, environ.get("PATH", os.defpath)))),
        "PYTHONUNBUFFERED": "1",
        "PORT": str(settings.port),
        "CLIMATE_HOME": str(settings.home),
        "CLIMATE_HOST": settings.host,
        "CLIMATE_PORT": str(settings.port),
        "CLIMATE_DATABASE_URL": stores.database_url,
        "CLIMATE_REDIS_URL": stores.redis_url,
    }


def _unused(settings: Settings) -> frozenset[str]:
    """Return the processes that have no work with these settings."""
    serves_metadata = settings.network_driver == "linux" and settings.metadata_address == METADATA_HERE
    return frozenset({*(() if settings.cells_enable else (CELLS,)), *(() if serves_metadata else (METADATA,))})


def _program(name: str, words: tuple[str, ...], environ: Mapping[str, str]) -> Program:
    result = shutil.which(words[0], path=environ["PATH"])
    if not result:
        raise StackFailed(f"{name} cannot be started: program not found: {words[0]}")
    return Program(name, (result, *words[1:]), environ, stop_seconds=STOP_SECONDS.get(_process(name), 10.0))


def _answers(store: Store, child: Child) -> bool:
    return child.process is not None and store.answers(child.process.pid)


def _has_web(instances: Iterable[str]) -> bool:
    return any(_process(name) == WEB for name in instances)


def _process(instance: str) -> str:
    return instance.partition(".")[0]


def _check_port(settings: Settings) -> None:
    """Refuse a port in use, so that a readiness check does not get another program's answer."""
    try:
        places = socket.getaddrinfo(settings.host, settings.port, type=socket.SOCK_STREAM)
        for family, kind, protocol, _, address in places:
            with socket.socket(family, kind, protocol) as one:
                one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                one.bind(address)
    except OSError as error:
        where = f"{settings.host} port {settings.port}"
        raise StackFailed(
            f"{where} cannot be used ({error.strerror}); choose another with --port or CLIMATE_PORT"
        ) from None


def _here(host: str) -> str:
    """Return the local address of a server that listens on `host`."""
    return {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}.get(host, host)  # noqa: S104


def _local_url(settings: Settings) -> str:
    host = _here(settings.host)
    return f"http://{f'[{host}]' if ':' in host else host}:{settings.port}"


def _is_healthy(settings: Settings) -> bool:
    one = http.client.HTTPConnection(_here(settings.host), settings.port, timeout=2)
    try:
        one.request("GET", "/healthz")
        return one.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        one.close()


def _adopt_orphans() -> None:
    """Make this process the reaper of its orphaned descendants, which could otherwise stay as zombies."""
    if sys.platform == "linux":
        with contextlib.suppress(AttributeError):
            libc().prctl(PR_SET_CHILD_SUBREAPER, ctypes.c_ulong(1), 0, 0, 0)
