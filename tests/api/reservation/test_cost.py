"""Statements of a request: the same number however many hosts and leases there are."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, event

from climate.store.engine import connect
from tests.api.reservation.api_clients import Person, app_over, hosts_of, order, reservation
from tests.conftest import Clock

MOST = 12
"""Statements of one create, everything counted."""


@contextmanager
def counted(engine: Engine) -> Iterator[list[str]]:
    """The statements that are sent meanwhile."""
    said: list[str] = []

    def note(conn: Any, cursor: Any, statement: str, *_: Any) -> None:
        said.append(statement)

    event.listen(engine, "before_cursor_execute", note)
    try:
        yield said
    finally:
        event.remove(engine, "before_cursor_execute", note)


def statements(engine: Engine, hosts: int, leases: int, home: Path) -> dict[str, int]:
    """How many each request takes with that many hosts and leases."""
    member = Person(app_over(hosts_of(engine, Clock(), hosts), home), "member")
    admin = Person(member.app, "admin")
    for _ in range(leases):
        member.lease(start_date="2030-01-05 10:00", end_date="2030-01-05 11:00", reservations=[reservation()])
    asked = [reservation(min=2, max=3, resource_properties='["==", "$gpu", "a100"]')]
    path = f"/leases/{member.lease(reservations=asked)['id']}"
    requests: dict[str, Callable[[], Any]] = {
        "create": lambda: member("POST", "/leases", order(reservations=asked)),
        "create with a key": lambda: member("POST", "/leases", order(), headers={"Idempotency-Key": "k"}),
        "show": lambda: member("GET", path),
        "list": lambda: member("GET", "/leases"),
        "rename": lambda: member("PUT", path, {"name": "x"}),
        "prolong": lambda: member("PUT", path, {"end_date": "2030-01-02 13:00"}),
        "delete": lambda: member("DELETE", path),
        "hosts": lambda: admin("GET", "/os-hosts"),
        "calendar": lambda: admin("GET", "/os-hosts/allocations"),
        "properties": lambda: admin("GET", "/os-hosts/properties?detail=True"),
    }
    found = {}
    for name, request in requests.items():
        with counted(engine) as said:
            answer = request()
        assert answer.status_code < 300, answer.get_data(as_text=True)
        found[name] = len(said)
    return found


def test_the_number_of_statements_is_constant(
    make_database: Callable[..., str], engine_template: str, tmp_path: Path
) -> None:
    found = []
    for hosts, leases in ((10, 2), (200, 40)):
        engine = connect(make_database(engine_template))
        found.append(statements(engine, hosts, leases, tmp_path))
        engine.dispose()
    few, many = found
    assert few == many
    assert few["create"] <= MOST, few
    assert few["create with a key"] <= MOST, few
    assert few["show"] == few["list"] == 1, few
