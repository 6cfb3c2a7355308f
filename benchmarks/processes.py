"""The processes of climate, as `climate up` runs them, for a benchmark to measure from outside."""

import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import fields, replace
from pathlib import Path

import yaml

from climate import bootstrap
from climate.settings import Settings

CEILING = "benchmarks.ceiling_web"
PATIENCE = 300.0
"""Longest time, in seconds, until a process is at work."""


def with_port(settings: Settings) -> Settings:
    """The settings with a port that is free."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return replace(settings, port=one.getsockname()[1])


@contextmanager
def running(settings: Settings, *names: str) -> Iterator[list[int]]:
    """Run these processes while the block lasts, and give their ids; their output goes to the home's logs.

    A name is a command of climate, or a module of the benchmarks with its arguments.
    """
    with ExitStack() as stack:
        children = [stack.enter_context(_child(settings, name)) for name in names]
        if {"web", CEILING} & set(names):
            _await_web(settings, children)
        yield [child.pid for child in children]


@contextmanager
def _child(settings: Settings, name: str) -> Iterator["subprocess.Popen[bytes]"]:
    logs = settings.home / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    with (logs / f"{name}.log").open("ab") as output:
        words = name.split() if name.startswith("benchmarks.") else ["climate", name]
        argv = [sys.executable, "-m", *words]
        child = subprocess.Popen(argv, env=environ(settings), stdout=output, stderr=output)
    try:
        yield child
        if child.poll() is not None:
            raise RuntimeError(f"climate {name} has ended by itself: {(logs / f'{name}.log').read_text()[-2000:]}")
    finally:
        child.terminate()
        child.wait(PATIENCE)


def environ(settings: Settings) -> dict[str, str]:
    """The environment in which a process has these settings."""
    own = {f"CLIMATE_{f.name.upper()}": _word(getattr(settings, f.name)) for f in fields(settings)}
    root = str(Path(__file__).parent.parent)
    given = {name: value for name, value in own.items() if value}
    # One user asks for all of what is measured, more often than any one user may.
    return {**os.environ, **given, "CLIMATE_REQUESTS_PER_SECOND": "0", "PYTHONPATH": root}


def _word(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _await_web(settings: Settings, children: "list[subprocess.Popen[bytes]]") -> None:
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            urllib.request.urlopen(f"{settings.base_url}/healthz", timeout=PATIENCE).close()
            return
        except (urllib.error.URLError, OSError):
            if time.monotonic() > deadline or any(child.poll() is not None for child in children):
                raise
            time.sleep(0.1)


def prepare(settings: Settings) -> None:
    """The first start: users, flavors, an image, a network."""
    bootstrap.prepare(settings)


def token(settings: Settings, cloud: str = "climate-demo") -> str:
    """A token of a user of the generated clouds.yaml."""
    auth = yaml.safe_load((settings.home / "clouds.yaml").read_text())["clouds"][cloud]["auth"]
    domain = {"name": auth["user_domain_name"]}
    user = {"name": auth["username"], "password": auth["password"], "domain": domain}
    scope = {"project": {"name": auth["project_name"], "domain": {"name": auth["project_domain_name"]}}}
    body = {"auth": {"identity": {"methods": ["password"], "password": {"user": user}}, "scope": scope}}
    request = urllib.request.Request(
        f"{settings.base_url}/identity/v3/auth/tokens", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=10) as answer:
        return str(answer.headers["X-Subject-Token"])
