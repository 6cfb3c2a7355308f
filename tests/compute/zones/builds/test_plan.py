"""Build plans: weights of children on the scale of the parent, and one order over all of them."""

import math
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from climate.compute.zones.builds import plan as build_plan
from climate.compute.zones.builds.blobs import InvalidBlob
from climate.compute.zones.builds.plan import BadOffers, ChildItem, LocalItem, Offer, merged, offers, scaled
from climate.compute.zones.models import ChildZone


def child(number: int, offset: float = 0.0, scale: float = 1.0) -> ChildZone:
    return ChildZone(number, f"http://zone{number}", "u", "p", weight_offset=offset, weight_scale=scale)


def offered(*weights: float) -> list[Offer]:
    return [Offer(weight, f"blob of {weight}") for weight in weights]


def local(*weights: float) -> list[LocalItem]:
    return [LocalItem(weight, "h", f"n{place}") for place, weight in enumerate(weights)]


@pytest.mark.parametrize(
    ("zone", "raw", "wanted"),
    [
        (child(1), [1, 111, 112, 113], [1, 111, 112, 113]),
        (child(2, offset=1000), [120, 2, 122, 123], [1120, 1002, 1122, 1123]),
        (child(3, scale=1000), [130, 131, 132, 3], [130000, 131000, 132000, 3000]),
    ],
)
def test_ds_2_offset_and_scale(zone: ChildZone, raw: list[float], wanted: list[float]) -> None:
    items = scaled(zone, offered(*raw))
    assert [item.weight for item in items] == wanted
    assert [item.raw_weight for item in items] == raw
    assert {item.child_zone for item in items} == {zone.id}


def test_of_equals_local_items_come_first_and_children_in_their_order() -> None:
    plan = merged(local(1, 2), [scaled(child(7), offered(1, 1)), scaled(child(3), offered(1, 0))])
    assert [item.child_zone if isinstance(item, ChildItem) else item.nodename for item in plan] == [
        *(3, "n0", 7, 7, 3),
        "n1",
    ]


weights = st.lists(st.floats(-1e6, 1e6), max_size=8)


@given(weights, st.lists(st.tuples(weights, st.floats(-1e3, 1e3), st.floats(-10, 10)), max_size=4))
def test_a_merged_plan_is_a_stable_sort_of_all_items(
    own: list[float], children: list[tuple[list[float], float, float]]
) -> None:
    lists = [
        scaled(child(number, offset, scale), offered(*raw)) for number, (raw, offset, scale) in enumerate(children)
    ]
    mine = local(*own)
    plan = merged(mine, lists)
    everything = [*mine, *(item for one in lists for item in one)]
    assert sorted(map(id, plan)) == sorted(map(id, everything))
    assert all(before.weight <= after.weight for before, after in pairwise(plan))
    places = {id(item): place for place, item in enumerate(everything)}
    for before, after in pairwise(plan):
        assert before.weight < after.weight or places[id(before)] < places[id(after)]


@given(weights, st.floats(-1e3, 1e3), st.floats(0.001, 10))
def test_a_positive_scale_keeps_the_order_of_a_child(raw: list[float], offset: float, scale: float) -> None:
    ordered = sorted(raw)
    assert [item.raw_weight for item in merged([], [scaled(child(1, offset, scale), offered(*ordered))])] == ordered


def test_offers_beyond_those_asked_for_are_left_out() -> None:
    body = {"weights": [{"weight": number, "blob": "b"} for number in range(9)]}
    assert [offer.weight for offer in offers(body, 4)] == [0, 1, 2, 3]


@pytest.mark.parametrize(
    "body",
    [
        None,
        [],
        {},
        {"weights": {}},
        {"weights": [7]},
        {"weights": [{"weight": "1", "blob": "b"}]},
        {"weights": [{"weight": True, "blob": "b"}]},
        {"weights": [{"weight": math.nan, "blob": "b"}]},
        {"weights": [{"weight": math.inf, "blob": "b"}]},
        {"weights": [{"weight": 10**400, "blob": "b"}]},
        {"weights": [{"weight": 1}]},
        {"weights": [{"weight": 1, "blob": ""}]},
        {"weights": [{"weight": 1, "blob": 7}]},
        {"weights": [{"weight": 1, "blob": "A" * 2**20}]},
    ],
)
def test_an_answer_that_is_no_list_of_offers_is_refused(body: Any) -> None:
    with pytest.raises(BadOffers):
        offers(body, 10)


def test_weight_beyond_all_numbers_on_the_scale_of_this_zone_is_refused() -> None:
    with pytest.raises(BadOffers, match="too large for weight_scale"):
        scaled(child(1, scale=1e9), offered(1.0, 1e300))


def test_items_are_read_as_they_were_written() -> None:
    item = LocalItem(2.5, "host", "node")
    assert build_plan.read(build_plan.written(item)) == item
    (other,) = scaled(child(4, 1, 2), offered(3))
    read = build_plan.read(build_plan.written(other))
    assert isinstance(read, ChildItem)
    assert (read.child_zone, read.child_blob, read.weight) == (4, "blob of 3", 7)
    assert "blob of 3" not in repr(read)


@pytest.mark.parametrize(
    "content", [{}, {"weight": 1}, {"hostname": "h"}, {"child_zone": 3}, {"child_zone": "3", "child_blob": "b"}]
)
def test_a_blob_that_names_nothing_is_refused(content: dict[str, Any]) -> None:
    with pytest.raises(InvalidBlob):
        build_plan.read(content)
