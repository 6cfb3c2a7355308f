"""The types of pools beside what the server declares and answers."""

from typing import Any

import pytest
from marshmallow import Schema

from api.reservation.pools import schema
from climate.cli.response_types import pools
from tests.cli.response_types.answer_types import differences, misfits, recorded


@pytest.mark.parametrize(
    ("kind", "declared"),
    [
        (pools.Pool, schema.PoolOut),
        (pools.Promise, schema.PromiseOut),
        (pools.ServerThere, schema.ServerThere),
        (pools.Resident, schema.ResidentOut),
        (pools.Stranger, schema.StrangerOut),
        (pools.Backlog, schema.PlanOut),
        (pools.PlanStep, schema.StepOut),
        (pools.PlanLevel, schema.LevelOut),
        (pools.PoolPlan, schema.FillingOut),
        (pools.MovedHost, schema.MoveOut),
    ],
)
def test_a_type_has_the_keys_of_its_schema(kind: Any, declared: type[Schema]) -> None:
    assert differences(kind, declared) == []


@pytest.mark.parametrize(
    ("path", "key", "kind"),
    [
        ("/pools", "pools", list[pools.Pool]),
        ("/pools/reservation/hosts", "hosts", list[pools.Resident]),
        ("/pools/multi-tenant/hosts", "unregistered", list[pools.Stranger]),
        ("/pools/reservation/backlog", "backlog", list[pools.Backlog]),
        ("/pools/reservation/plan", "plan", pools.PoolPlan),
    ],
)
def test_recorded_answers_are_of_these_types(path: str, key: str, kind: Any) -> None:
    assert misfits(recorded(path, key), kind) == []
