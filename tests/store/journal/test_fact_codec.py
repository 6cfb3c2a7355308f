"""Facts survive the journal, and those written once can be read for ever."""

import json
from collections.abc import Mapping
from dataclasses import is_dataclass
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from climate.domain import facts
from climate.domain.lease import fold
from climate.domain.period import Period
from climate.store.journal import fact_codec
from tests.domain.lease_factory import created

GOLDEN = Path(__file__).parent / "golden"

moments = st.datetimes(
    datetime(2000, 1, 2),
    datetime(2199, 12, 30),
    timezones=st.sampled_from([UTC, timezone(timedelta(hours=5, minutes=45))]),
)
leaves = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
json_values = st.recursive(leaves, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=5)
SIMPLE: Mapping[Any, st.SearchStrategy[Any]] = {
    UUID: st.uuids(),
    datetime: moments,
    Period: st.tuples(moments, st.timedeltas(timedelta(microseconds=1), timedelta(days=800))).map(
        lambda pair: Period(pair[0], pair[0] + pair[1])
    ),
    str: st.text(),
    int: st.integers(),
    bool: st.booleans(),
}


def values(hint: Any) -> st.SearchStrategy[Any]:
    """Anything that a field with this annotation may have."""
    if hint in SIMPLE:
        return SIMPLE[hint]
    if is_dataclass(hint):
        return st.builds(hint, **{name: values(inner) for name, inner in get_type_hints(hint).items()})  # type: ignore[arg-type]
    if get_origin(hint) is tuple:
        return st.lists(values(get_args(hint)[0]), max_size=3).map(tuple)
    if get_origin(hint) is Mapping:
        return st.dictionaries(st.text(), json_values, max_size=3)
    return st.none() | values(get_args(hint)[0])


@pytest.mark.parametrize("kind", sorted(fact_codec.KINDS))
@given(data=st.data())
def test_what_is_written_can_be_read(kind: str, data: st.DataObject) -> None:
    fact = data.draw(values(fact_codec.KINDS[kind]))
    body = json.loads(json.dumps(fact_codec.encode(fact)))
    assert fact_codec.decode(kind, body) == fact


def test_there_is_a_golden_body_for_every_kind() -> None:
    assert {path.stem for path in GOLDEN.glob("*.json")} == set(fact_codec.KINDS)


@pytest.mark.parametrize("kind", sorted(fact_codec.KINDS))
def test_what_was_written_once_can_be_read_for_ever(kind: str) -> None:
    """These files never change.  A kind that has grown gets a second body, beside the first."""
    for body in json.loads((GOLDEN / f"{kind}.json").read_text()):
        again = fact_codec.encode(fact_codec.decode(kind, body))
        assert _within(body, json.loads(json.dumps(again)))


def _within(old: Any, new: Any) -> bool:
    """Whether all that `old` says is said by `new`."""
    if isinstance(old, dict):
        return all(key in new and _within(value, new[key]) for key, value in old.items())
    if isinstance(old, list):
        return len(old) == len(new) and all(_within(*pair) for pair in zip(old, new, strict=True))
    return bool(old == new)


def test_a_field_that_the_body_does_not_know_takes_its_default() -> None:
    body = fact_codec.encode(created())
    for late in ("holds", "exists_before_start", "resource_id"):
        del body["reservations"][0][late]
    body["of a later release"] = 1
    fact = fact_codec.decode("LeaseCreated", body)
    assert isinstance(fact, facts.LeaseCreated)
    assert fact.reservations[0].holds == ()
    assert fold([fact]).reservations[0].exists_before_start is False
