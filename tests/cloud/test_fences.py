"""Tokens in metadata: the highest one counts, whatever order they are written in."""

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from climate.cloud import Fenced
from climate.cloud.openstack import fencing

HOST, OTHER = fencing.of_host("h1"), fencing.of_host("h1:1")


def written(metadata: dict[str, str], changes: fencing.Changes) -> dict[str, str]:
    """Metadata as the cloud has it afterwards."""
    return {key: value for key, value in {**metadata, **changes}.items() if value is not None}


def told(tokens: Iterable[int], subject: str = HOST) -> dict[str, str]:
    metadata: dict[str, str] = {}
    for token in tokens:
        metadata = written(metadata, fencing.raising(metadata, [subject], token))
    return metadata


@given(st.lists(st.integers(1, 2**60), min_size=1))
def test_whoever_comes_after_a_higher_token_is_refused(tokens: list[int]) -> None:
    metadata = told(tokens)
    fencing.check(metadata, [HOST], max(tokens))
    with pytest.raises(Fenced):
        fencing.check(metadata, [HOST], max(tokens) - 1)
    assert len(metadata) == 1


@given(st.integers(1, 2**60), st.integers(1, 2**60))
def test_a_late_write_does_not_hide_a_higher_token(early: int, late: int) -> None:
    """Two that have read the same metadata write one after the other: the second sees both."""
    both = [fencing.raising({}, [HOST], token) for token in (early, late)]
    metadata = written(written({}, both[0]), both[1])
    for token in (early, late):
        if token < max(early, late):
            with pytest.raises(Fenced):
                fencing.check(metadata, [HOST], token)
        else:
            fencing.check(metadata, [HOST], token)


def test_what_stands_already_is_not_written_again() -> None:
    assert fencing.raising(told([7]), [HOST], 7) == {}
    assert fencing.raising({}, [HOST], 0) == {}


def test_subjects_do_not_mix() -> None:
    metadata = {**told([9]), **told([5], OTHER), "climate:closed": "true"}
    fencing.check(metadata, [OTHER], 5)
    with pytest.raises(Fenced):
        fencing.check(metadata, [HOST], 8)
    assert written(metadata, fencing.dropping(metadata, HOST)) == {**told([5], OTHER), "climate:closed": "true"}
    with pytest.raises(Fenced):
        fencing.check(metadata, [fencing.of_host("h2"), HOST], 8)


def test_servers_are_distinguished_from_hosts() -> None:
    assert fencing.servers({**told([9]), **told([5], fencing.of_server("s1"))}) == ["s1"]


def test_what_somebody_else_wrote_there_is_no_token() -> None:
    fencing.check({f"{fencing.PREFIX}{HOST}:soon": "1", fencing.PREFIX: "9", HOST: "9"}, [HOST], 1)


def test_the_oldest_pools_are_those_with_the_lowest_tokens() -> None:
    metadata: dict[str, str] = {}
    for token, name in ((5, "b"), (3, "c"), (9, "a")):
        metadata |= dict.fromkeys(fencing.raising({}, [fencing.of_pool(name)], token), "1")
    metadata |= dict.fromkeys(fencing.raising({}, [fencing.of_server("s")], 1), "1")
    assert fencing.oldest_pools(metadata, 1) == ["c", "b"]
    assert fencing.oldest_pools(metadata, 3) == []
