"""Machines that have read an OpenAPI document, and what they must never see."""

from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, given, settings
from schemathesis import Case, GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from climate.compute.store.tables import metadata
from climate.store.engine import connect
from tests.databases import unsafe

CHECKS = [status_code_conformance, content_type_conformance, response_schema_conformance]
NOT_IMPLEMENTED = 501

MODES = {"as told": GenerationMode.POSITIVE, "otherwise": GenerationMode.NEGATIVE}


def cloud_database(make_database: Callable[..., str], engine_template: str) -> str:
    """The URL of a database with the tables of engine and cloud."""
    url = unsafe(make_database(engine_template))
    engine = connect(url, pool_size=1)
    metadata.create_all(engine)
    engine.dispose()
    return url


Aim = Callable[[Case[Any], int], None]
"""Makes a request one about something that there is; the number says which of many."""


def statuses(operation: Any, mode: str, who: str, aim: Aim, examples: int) -> set[int]:
    """Ask one operation many times, every second time about something that there is: the statuses that came back."""
    seen: set[int] = set()

    @settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
        database=None,
    )
    @given(case=operation.as_strategy(generation_mode=MODES[mode]))
    def asked(case: Case[Any]) -> None:
        chosen = sum(repr((case.body, case.query, case.path_parameters)).encode())
        if chosen % 2:
            aim(case, chosen // 2)
        answer = case.call_and_validate(headers={"X-Auth-Token": who}, checks=CHECKS)
        assert answer.status_code < 500 or answer.status_code == NOT_IMPLEMENTED, case.as_curl_command()
        seen.add(answer.status_code)

    asked()
    return seen
