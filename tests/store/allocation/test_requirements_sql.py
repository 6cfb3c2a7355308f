"""The database finds exactly the hosts that the domain says will do."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine, insert, select

from climate.domain.errors import InvalidRequirements
from climate.domain.hosts.requirements import (
    COMPARISONS,
    UNSTORABLE,
    AllOf,
    Among,
    AnyOf,
    Compare,
    Requirement,
    matches,
)
from climate.store.allocation import requirements_sql
from climate.store.tables.hosts import hosts
from tests.campaign import length

KEYS = ("gpu", "5", "it's", 'quo"te', "per%cent", "a:b", "ключ")
NUMERIC = ("vcpus", "hypervisor_version")
TEXTUAL = ("hypervisor_hostname", "availability_zone", "cpu_info", "reservable")

numbers = st.one_of(
    st.integers(-3, 12), st.integers(-(10**18) + 1, 10**18 - 1), st.floats(-1e17, 1e17), st.sampled_from([0.1, 2.5])
)
number_like = st.sampled_from(
    ["1", "10", "9", " 2 ", "+3", "-.5", "1.50", "007", "1e3", "0x1", "½", "\u0663", "٣", "4\n"]
)
odd = st.sampled_from(
    ["'", '"', "%", "%s", "%(x)s", ":x", "\\", "ä", "Z", "a", "é", "𝔘", "\u00a05", "\u20035", " ", "None"]
)
texts = st.one_of(number_like, odd, st.text(min_size=1, max_size=4).filter(lambda text: not UNSTORABLE.search(text)))
wanted = st.one_of(numbers.map(float), texts.filter(str.strip))


def compares(keys: tuple[str, ...], values: st.SearchStrategy[Any]) -> st.SearchStrategy[Requirement]:
    comparison = st.builds(Compare, st.sampled_from(sorted(COMPARISONS)), st.sampled_from(keys), values)
    known = st.builds(Compare, st.sampled_from(["==", "!="]), st.sampled_from(keys), st.none())
    listed = st.builds(Among, st.sampled_from(keys), st.lists(values | st.none(), min_size=1, max_size=3).map(tuple))
    return st.one_of(comparison, known, listed)


terms = st.one_of(
    compares((*KEYS, *TEXTUAL), wanted), compares(NUMERIC, st.one_of(numbers.map(float), st.just("4"), st.just(" 8 ")))
)
trees = st.recursive(
    terms,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map(lambda some: AllOf(tuple(some))),
        st.lists(inner, min_size=1, max_size=3).map(lambda some: AnyOf(tuple(some))),
    ),
    max_leaves=5,
)
described = st.fixed_dictionaries(
    {
        "vcpus": st.integers(0, 12),
        "hypervisor_version": st.integers(0, 2**60),
        "availability_zone": st.none() | texts,
        "cpu_info": texts,
        "hypervisor_hostname": texts,
        "reservable": st.booleans(),
        "extra": st.dictionaries(st.sampled_from(KEYS), st.none() | texts, max_size=4),
    }
)


def _row(known: Mapping[str, Any]) -> dict[str, Any]:
    fixed = {"service_name": "s", "memory_mb": 1, "local_gb": 1, "hypervisor_type": "t"}
    return {**fixed, **known, "created_at": datetime(2030, 1, 1, tzinfo=UTC)}


@settings(max_examples=length(150, 300), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(described, min_size=1, max_size=5, unique_by=lambda host: str(host["hypervisor_hostname"])), trees)
def test_sql_finds_what_the_domain_says(engine: Engine, known: list[dict[str, Any]], tree: Requirement) -> None:
    with engine.connect() as conn:
        conn.execute(insert(hosts), [_row(host) for host in known])
        found = set(conn.scalars(select(hosts.c.hypervisor_hostname).where(requirements_sql.condition(tree))))
        conn.rollback()
    flat = [{**host, **host["extra"]} for host in known]
    assert found == {host["hypervisor_hostname"] for host in flat if matches(tree, host)}


def test_a_text_for_a_number_is_refused() -> None:
    with pytest.raises(InvalidRequirements, match="vcpus is a number"):
        requirements_sql.condition(Compare(">", "vcpus", "many"))


def test_unknown_names_are_reported() -> None:
    with pytest.raises(InvalidRequirements, match="called a, b"):
        requirements_sql.refuse_unknown(AllOf((Compare("==", "b", "1"), Compare("==", "a", "1"))), frozenset({"c"}))
