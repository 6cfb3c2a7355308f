"""What a machine asks that has read the OpenAPI document: never a 5xx, a status or a shape that is not in it."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import Case, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from climate.store.engine import connect
from tests.api.reservation.face import Person, app_over, hosts_of, reservation, run_due
from tests.api.reservation.test_leaks import MATRIX
from tests.conftest import Clock

pytestmark = pytest.mark.slow

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
EXAMPLES = 100
"""Requests per operation, person and mode."""

NEVER_SERVED = {
    ("POST", "/reservation/v1/os-hosts"),
    ("POST", "/reservation/v1/events/<event_id>/requeue"),
    ("DELETE", "/reservation/v1/os-hosts/<host_id>"),
}
"""A machine does not guess the name of a host, no event has failed, and the hosts are held by leases."""

quietly = settings(
    max_examples=EXAMPLES, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck), database=None
)


@pytest.fixture(scope="module")
def known(
    make_database: Callable[..., str], engine_template: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Any]]:
    """An app, and things in it that requests can be about."""
    engine = connect(make_database(engine_template))
    climate = hosts_of(engine, Clock(), 20)
    app = app_over(climate, tmp_path_factory.mktemp("home"))
    member = Person(app, "member")
    everything = [reservation(min=20, max=20)]
    running = member.lease(start_date="now", end_date="2030-06-01 10:00", reservations=everything)
    run_due(climate)
    pending = member.lease(start_date="2031-01-01 10:00", end_date="2031-01-02 10:00")
    yield {
        "app": app,
        "lease_id": [running["id"], pending["id"]],
        "host_id": ["1", "20"],
        "name": ["gpu"],
        "event_id": [running["events"][0]["id"], pending["events"][0]["id"]],
    }
    engine.dispose()


@pytest.fixture(scope="module")
def described(known: dict[str, Any]) -> Any:
    return schemathesis.openapi.from_wsgi("/openapi.json", known["app"])


@pytest.mark.timeout(600)
@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=["as told", "otherwise"])
@pytest.mark.parametrize("name", ["admin", "member"])
@pytest.mark.parametrize(("method", "path"), MATRIX, ids=[" ".join(route) for route in MATRIX])
def test_a_route(
    known: dict[str, Any], described: Any, method: str, path: str, name: str, mode: GenerationMode
) -> None:
    operation = described[path.replace("<", "{").replace(">", "}")][method]

    seen: set[int] = set()

    @quietly
    @given(case=operation.as_strategy(generation_mode=mode))
    def asked(case: Case[Any]) -> None:
        seen.add(ask(case, known, name))

    asked()
    if mode is GenerationMode.POSITIVE and name == "admin":
        assert min(seen) < 400 or (method, path) in NEVER_SERVED


def ask(case: Case[Any], known: dict[str, Any], name: str) -> int:
    """Every second request is about something that there is, at a time that makes sense."""
    chosen = sum(repr((case.body, case.query, case.path_parameters)).encode())
    if chosen % 2:
        for parameter in case.path_parameters or {}:
            case.path_parameters[parameter] = known[parameter][chosen // 2 % len(known[parameter])]
        if isinstance(case.body, dict):
            dates = {"start_date": "2030-08-01 10:00", "end_date": "2030-08-01 11:00", "before_end_date": None}
            case.body.update({key: value for key, value in dates.items() if isinstance(case.body.get(key), str)})
    answer = case.call_and_validate(headers={"X-Auth-Token": name}, checks=CHECKS)
    return answer.status_code
