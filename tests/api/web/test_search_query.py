"""The search box: what it understands, and that it says what it does not."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.web.search_query import MOST_DAYS, Requirement, SearchQuery, length_of, read, words

NOW = datetime(2030, 1, 2, 15, 30, tzinfo=UTC)
"""A Wednesday."""


def at(*date: int) -> datetime:
    return datetime(*date, tzinfo=UTC)  # type: ignore[arg-type, misc]


def test_the_example_of_the_page() -> None:
    assert read("4 hosts gpu_count>1 6h this week", NOW) == SearchQuery(
        4, timedelta(hours=6), NOW, at(2030, 1, 7), (Requirement("gpu_count", ">", "1"),)
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", SearchQuery()),
        ("4x", SearchQuery(hosts=4)),
        ("4 × 6h", SearchQuery(hosts=4, length=timedelta(hours=6))),
        ("2 machines for 1d 12h", SearchQuery(hosts=2, length=timedelta(hours=36))),
        ("1 host and 90 minutes", SearchQuery(hosts=1, length=timedelta(minutes=90))),
        ("1h and 30min", SearchQuery(length=timedelta(minutes=90))),
        ("tomorrow", SearchQuery(earliest=at(2030, 1, 3), latest=at(2030, 1, 4))),
        ("next week", SearchQuery(earliest=at(2030, 1, 7), latest=at(2030, 1, 14))),
        ("on friday", SearchQuery(earliest=at(2030, 1, 4), latest=at(2030, 1, 5))),
        ("wednesday", SearchQuery(earliest=NOW, latest=at(2030, 1, 3))),
        ("from 2030-02-01", SearchQuery(earliest=at(2030, 2, 1), latest=at(2030, 2, 2))),
        ("within 3 days", SearchQuery(earliest=NOW, latest=NOW + timedelta(days=3))),
        ("in the next 12h", SearchQuery(earliest=NOW, latest=NOW + timedelta(hours=12))),
        ("now", SearchQuery(earliest=NOW)),
        ('rack = "left side"', SearchQuery(requirements=(Requirement("rack", "==", "left side"),))),
        (
            "vcpus>=4 gpu!=a100",
            SearchQuery(requirements=(Requirement("vcpus", ">=", "4"), Requirement("gpu", "!=", "a100"))),
        ),
        ("4 hosts please", SearchQuery(hosts=4, unknown=("please",))),
        ("0 hosts", SearchQuery(unknown=("0 hosts",))),
        ("4 hosts 5 hosts", SearchQuery(hosts=4, unknown=("5 hosts",))),
        ("2029-01-01", SearchQuery(unknown=("2029-01-01",))),
        ("2030-02-31", SearchQuery(unknown=("2030-02-31",))),
        ("9999-12-31", SearchQuery(unknown=("9999-12-31",))),
        ("900d", SearchQuery(unknown=("900d",))),
        ("<script>", SearchQuery(unknown=("<script>",))),
    ],
)
def test_words_are_understood_or_named(text: str, expected: SearchQuery) -> None:
    assert read(text, NOW) == expected


def test_days_begin_at_midnight_of_the_readers_zone() -> None:
    berlin = ZoneInfo("Europe/Berlin")
    assert read("tomorrow", NOW, berlin).earliest == at(2030, 1, 2, 23)
    changed = datetime(2030, 3, 30, 12, tzinfo=UTC)
    wish = read("tomorrow", changed, berlin)
    assert wish.latest is not None
    assert wish.earliest is not None
    assert wish.latest - wish.earliest == timedelta(hours=23)


LENGTHS = st.integers(1, MOST_DAYS * 1440).map(lambda minutes: timedelta(minutes=minutes))
NAMES = st.from_regex(r"[a-z_][a-z0-9_]{0,20}", fullmatch=True)
REQUIREMENTS = st.builds(
    Requirement,
    NAMES,
    st.sampled_from([">", "<", ">=", "<=", "==", "!="]),
    st.text(st.characters(exclude_characters='"×', exclude_categories=("C", "Z")), min_size=1, max_size=20)
    | st.just("two words"),
)


@given(LENGTHS)
def test_lengths_are_read_as_they_are_written(length: timedelta) -> None:
    assert length_of(words(length)) == length


@given(st.integers(1, 10_000), LENGTHS, st.lists(REQUIREMENTS, max_size=4), st.permutations(range(4)))
def test_order_of_the_words_does_not_matter(
    hosts: int, length: timedelta, wanted: list[Requirement], order: list[int]
) -> None:
    parts = [f"{hosts} hosts", f"for {words(length)}", "next week", " ".join(map(str, wanted))]
    wish = read(" ".join(parts[place] for place in order), NOW)
    assert wish == SearchQuery(hosts, length, at(2030, 1, 7), at(2030, 1, 14), tuple(wanted))


STRANGE = st.text(st.characters(exclude_characters="×", exclude_categories=("C", "Z")), max_size=12).map("?{}".format)


@given(st.lists(STRANGE, max_size=5), st.lists(STRANGE, max_size=5))
def test_words_that_are_not_understood_are_named_in_their_order(before: list[str], after: list[str]) -> None:
    wish = read(" ".join(["4 hosts", *before, "6h", *after]), NOW)
    assert wish == SearchQuery(4, timedelta(hours=6), unknown=(*before, *after))


@given(st.text(max_size=100))
def test_periods_are_never_reversed(text: str) -> None:
    wish = read(f"{text} today", NOW)
    if wish.earliest is not None and wish.latest is not None:
        assert wish.earliest <= wish.latest
