"""A revocation holds at once in all processes of one web server."""

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.client import HTTPConnection
from pathlib import Path
from threading import Event

import psutil
from sqlalchemy import event

from climate.cli.operations.processes import web_command
from climate.domain.errors import NotAuthenticated
from climate.identity.authentication.revocation_cache import OwnNumber, Watch
from climate.identity.authentication.tokens import Grant
from climate.identity.store.revocations import TOKEN
from climate.settings import Settings
from tests.identity.identity_factory import Place, place
from tests.system.stack import await_so, free_port

GRANT = Grant("u", "marie", ("password",), 1_900_000_000.0, 1_900_003_600.0, "p", "physics", ("member",))
ROUNDS = 10


def still(here: Place, number: OwnNumber | None = None) -> Watch:
    """A cache whose clock stands still, so that it is never too old."""
    return Watch(here.identity.engine, clock=lambda: 0.0, last_revocation=number)


def refuses(watch: Watch, audit: str) -> bool:
    try:
        watch.check(replace(GRANT, audit_ids=(audit,)))
    except NotAuthenticated:
        return True
    return False


def revoke(here: Place, watch: Watch, audit: str) -> None:
    with here.identity.engine.begin() as conn:
        here.identity.revoke(conn, TOKEN, audit)
    watch.announce()


def test_caches_with_one_number_see_a_revocation_at_once(here: Place) -> None:
    number = OwnNumber()
    first, second, other = still(here, number), still(here, number), still(here)
    assert not any(refuses(watch, "x") for watch in (first, second, other))
    revoke(here, first, "x")
    assert [refuses(watch, "x") for watch in (first, second, other)] == [True, True, False]


def test_a_number_that_did_not_change_costs_no_statement(here: Place) -> None:
    watch = still(here, OwnNumber())
    revoke(here, watch, "x")
    assert refuses(watch, "x")
    here.identity.engine.dispose()
    seen = watch._view
    assert refuses(watch, "x")
    assert watch._view is seen


def test_a_read_does_not_cover_a_revocation_that_was_announced_meanwhile(here: Place) -> None:
    number = OwnNumber()
    first, second = still(here, number), still(here, number)
    armed = Event()
    armed.set()

    @event.listens_for(here.identity.engine, "after_cursor_execute")
    def revoke_once(*_: object) -> None:
        if armed.is_set():
            armed.clear()
            revoke(here, first, "x")

    assert not refuses(second, "x")
    assert refuses(second, "x")


@contextmanager
def web_server(settings: Settings) -> Iterator[int]:
    """Run the web server with two processes; yield its process id."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("CLIMATE_")}
    assert settings.database_url
    assert settings.redis_url
    own = {"CLIMATE_HOME": str(settings.home), "CLIMATE_DATABASE_URL": settings.database_url}
    own["CLIMATE_REDIS_URL"] = settings.redis_url
    log = settings.home / "web.log"
    with log.open("wb") as out:
        child = subprocess.Popen(
            web_command(settings, "api.wsgi:application()"), env={**environ, **own}, stdout=out, stderr=out
        )
    try:
        await_so(lambda: answers(settings.port), 240, "start of the web server")
        yield child.pid
    finally:
        child.terminate()
        child.wait(120)


def answers(port: int) -> bool:
    try:
        return ask(HTTPConnection("127.0.0.1", port, timeout=60), "GET", "/healthz")[0] > 0
    except OSError:
        return False


def ask(
    client: HTTPConnection, method: str, path: str, token: str = "", body: object = None
) -> tuple[int, dict[str, str]]:
    headers = {"X-Auth-Token": token, "X-Subject-Token": token} if token else {}
    client.request(method, path, json.dumps(body) if body else None, {**headers, "Content-Type": "application/json"})
    answer = client.getresponse()
    answer.read()
    return answer.status, dict(answer.headers)


def process_of(client: HTTPConnection, server: int) -> int:
    """Return the process of the web server that has this connection."""
    port = client.sock.getsockname()[1]
    for child in psutil.Process(server).children():
        if any(one.raddr and one.raddr.port == port for one in child.net_connections("tcp")):
            return int(child.pid)
    raise AssertionError(f"no process has the connection of port {port}")


def clients_of_both(port: int, server: int) -> list[HTTPConnection]:
    """Return a connection to each of the two processes."""
    found: dict[int, HTTPConnection] = {}
    spare = []

    def both() -> bool:
        client = HTTPConnection("127.0.0.1", port, timeout=120)
        ask(client, "GET", "/healthz")
        spare.append(client)
        found.setdefault(process_of(client, server), client)
        return len(found) == 2

    await_so(both, 240, "a connection to each process")
    return list(found.values())


def test_processes_of_one_web_server_refuse_a_revoked_token_at_once(
    scratch: str, valkey_url: str, tmp_path: Path
) -> None:
    settings = Settings(
        home=tmp_path, database_url=scratch, redis_url=valkey_url, web_processes=2, port=free_port(), web_threads=4
    )
    with place(scratch, tmp_path, settings) as here, web_server(settings) as server:
        clients = clients_of_both(settings.port, server)
        user = {"name": "demo", "domain": {"id": "default"}, "password": here.password("demo")}
        wanted = {"auth": {"identity": {"methods": ["password"], "password": {"user": user}}}}
        seen = set()
        for number in range(ROUNDS):
            mine, other = clients if number % 2 else reversed(clients)
            status, headers = ask(mine, "POST", "/identity/v3/auth/tokens", body=wanted)
            token = headers.get("X-Subject-Token", "")
            valid = ask(other, "GET", "/identity/v3/auth/tokens", token)[0]
            gone = ask(mine, "DELETE", "/identity/v3/auth/tokens", token)[0]
            seen.add((status, valid, gone, ask(other, "GET", "/identity/v3/auth/projects", token)[0]))
    assert seen == {(201, 200, 204, 401)}
