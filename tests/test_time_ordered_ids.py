"""Ids in the order in which they were made."""

import time
from uuid import RFC_4122

from climate.time_ordered_ids import time_ordered_id


def test_they_are_valid_and_none_comes_twice() -> None:
    made = [time_ordered_id() for _ in range(1000)]
    assert {(one.version, one.variant) for one in made} == {(7, RFC_4122)}
    assert len(set(made)) == len(made)


def test_they_begin_with_the_time_in_milliseconds() -> None:
    before = time.time_ns() // 1_000_000
    told = time_ordered_id().int >> 80
    assert before <= told <= time.time_ns() // 1_000_000


def test_all_other_bits_are_chance() -> None:
    seen_set, seen_clear = 0, 0
    for _ in range(200):
        number = time_ordered_id().int
        seen_set, seen_clear = seen_set | number, seen_clear | ~number
    free = ((1 << 12) - 1) << 64 | ((1 << 62) - 1)
    assert seen_set & seen_clear & free == free
