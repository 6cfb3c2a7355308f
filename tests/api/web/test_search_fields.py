"""Fields of a search: written and read again, they are the same search."""

from datetime import UTC, datetime, timedelta

import pytest
from flask import Flask
from hypothesis import given
from hypothesis import strategies as st
from werkzeug.datastructures import MultiDict

from api.web import search_fields
from api.web.host_search import HostSearch
from api.web.search_query import Requirement, SearchQuery
from climate.domain.errors import InvalidInput

NOW = datetime(2030, 1, 1, tzinfo=UTC)

requirements = st.builds(
    Requirement,
    st.sampled_from(("gpu_count", "vcpus", "rack")),
    st.sampled_from((">", ">=", "==", "!=")),
    st.text("abc 12", max_size=8),
)
searches = st.builds(
    lambda hosts, minutes, begin, more, wanted, gives_way: HostSearch(
        hosts,
        timedelta(minutes=minutes),
        NOW + timedelta(minutes=begin),
        NOW + timedelta(minutes=begin + minutes + more),
        tuple(wanted),
        gives_way,
    ),
    st.integers(1, 10_000),
    st.integers(1, 700_000),
    st.integers(0, 500_000),
    st.integers(0, 500_000),
    st.lists(requirements, max_size=4),
    st.booleans(),
)


@given(searches)
def test_search_is_read_as_it_was_written(search: HostSearch) -> None:
    with Flask(__name__).test_request_context():
        assert search_fields.read(MultiDict(search_fields.written(search)), NOW) == search


def test_words_of_the_box_go_before_fields() -> None:
    with Flask(__name__).test_request_context():
        found = search_fields.read(MultiDict({"hosts": "3", "length": "2h"}), NOW, SearchQuery(hosts=4))
    assert (found.hosts, found.length, found.earliest) == (4, timedelta(hours=2), NOW)


@pytest.mark.parametrize("wrong", [{"hosts": "0"}, {"requirements": "4 hosts"}, {"length": "x"}, {"latest": "never"}])
def test_wrong_fields_are_named(wrong: dict[str, str]) -> None:
    with Flask(__name__).test_request_context(), pytest.raises(InvalidInput, match=next(iter(wrong))):
        search_fields.read(MultiDict(wrong), NOW)
