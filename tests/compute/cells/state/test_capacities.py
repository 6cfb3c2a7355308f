"""Capacities: free room, units of each size, sums."""

from hypothesis import given
from hypothesis import strategies as st

from climate.compute.cells.state import capacities
from climate.compute.store.cells.resources import Free

NODE = Free(ram_mb=10240, free_ram_mb=4096, disk_mb=102400, free_disk_mb=51200)


def test_units_leave_the_reserve_out_and_totals_do_not() -> None:
    found = capacities.own([NODE, NODE], [(512, 10240), (3072, 0)], 10.0)
    assert found["ram_free"] == {"total_mb": 8192, "units_by_mb": {"512": 12, "3072": 2}}
    assert found["disk_free"] == {"total_mb": 102400, "units_by_mb": {"0": 0, "10240": 8}}


def test_no_units_below_zero() -> None:
    full = NODE._replace(free_ram_mb=-512, free_disk_mb=100)
    found = capacities.own([full], [(512, 1024)], 10.0)
    assert found["ram_free"] == {"total_mb": -512, "units_by_mb": {"512": 0}}
    assert found["disk_free"]["units_by_mb"] == {"1024": 0}


def test_flavors_of_one_size_count_once() -> None:
    assert capacities.own([NODE], [(512, 1024), (512, 2048)], 0)["ram_free"]["units_by_mb"] == {"512": 8}


def test_cell_without_nodes_has_no_capacities() -> None:
    assert capacities.own([], [(512, 1024)], 10.0) == {}


def test_ce_19_capacities_of_three_cells_are_added() -> None:
    assert capacities.total([{"ram_free": 1234}] * 3) == {"ram_free": 3702}


def test_sum_goes_through_all_levels() -> None:
    one = {"ram_free": {"total_mb": 1, "units_by_mb": {"512": 2}}}
    other = {"ram_free": {"total_mb": 3, "units_by_mb": {"512": 4, "1024": 5}}, "odd": "text"}
    assert capacities.added(one, other) == {"ram_free": {"total_mb": 4, "units_by_mb": {"512": 6, "1024": 5}}}


def test_units_of_nonsense_are_none() -> None:
    for given_by_a_child in ({}, {"ram_free": 1}, {"ram_free": {"units_by_mb": []}}):
        assert capacities.units(given_by_a_child, 512) == 0


TREES = st.recursive(
    st.integers(-100, 100), lambda inner: st.dictionaries(st.sampled_from("abc"), inner, max_size=3), max_leaves=8
)


@given(*[st.dictionaries(st.just("x"), st.dictionaries(st.sampled_from("abc"), st.integers(-9, 9)))] * 3)
def test_order_of_the_sum_does_not_matter(one: dict, two: dict, three: dict) -> None:  # type: ignore[type-arg]
    assert capacities.total([one, two, three]) == capacities.total([three, two, one])


@given(TREES.filter(lambda tree: isinstance(tree, dict)), TREES.filter(lambda tree: isinstance(tree, dict)))
def test_sum_of_anything_is_an_object(one: dict, two: dict) -> None:  # type: ignore[type-arg]
    assert isinstance(capacities.added(one, two), dict)
