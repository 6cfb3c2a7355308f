"""Builds over zones that speak HTTP to each other through sockets: the same tests as in one process."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import pytest

from climate.compute.zones import registry
from climate.configuration import zones
from tests.campaign import cases
from tests.compute.zones import build_plan_trees
from tests.compute.zones import tree as trees
from tests.compute.zones.builds import test_key_pairs, test_placement, test_provisioning, test_selection
from tests.compute.zones.tree import C, Tree
from tests.identity.identity_factory import served

RELATED = (("parent", "left"), ("parent", "right"), ("left", "grandchild"))


@pytest.fixture(scope="module")
def listening(
    make_database: Callable[..., str], cloud_template: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Tree, dict[str, str]]]:
    """Four zones, each on a port of its own, and their URLs."""
    home = tmp_path_factory.mktemp("listening")
    with build_plan_trees.planned(make_database, cloud_template, home, trees.NAMES) as found, ExitStack() as stack:
        urls = {}
        for name, zone in found.zones.items():
            options = zones.options(
                zone.deployment.settings, zone.compute.engine, zone.deployment.climate.vault, transport=None
            )
            object.__setattr__(zone.deployment, "compute", replace(zone.compute, zones=options))
            port = stack.enter_context(served(_gate(found, name)))
            urls[name] = f"http://127.0.0.1:{port}{C}"
        yield found, urls


def _gate(tree: Tree, name: str) -> Any:
    """The application that the network of the tree has for a zone at the moment."""
    return lambda environ, start_response: tree.applications[name](environ, start_response)


@pytest.fixture
def plans(listening: tuple[Tree, dict[str, str]]) -> Tree:
    """Parent -> left and right, left -> grandchild, over sockets."""
    found, urls = listening
    build_plan_trees.cleared(found)
    for parent, child in RELATED:
        account = {"username": "admin", "password": found[child].password("admin")}
        registry.add(found[parent].compute, {"api_url": urls[child], **account})
    return found


SAME = (
    test_selection.test_select_answers_weights_and_blobs_and_nothing_else,
    test_selection.test_the_spec_may_be_a_text_that_holds_an_object,
    test_provisioning.test_b2_a_build_is_spread_by_weight_over_the_tree,
    test_provisioning.test_a_build_that_finds_less_says_how_many_and_why,
    test_provisioning.test_a_child_that_goes_between_estimate_and_order_leaves_its_share_to_others,
    test_provisioning.test_an_answer_that_is_lost_is_found_again_and_nothing_is_doubled,
    test_provisioning.test_z10_a_server_that_no_node_takes_is_placed_in_a_child,
    test_key_pairs.test_guest_of_a_child_reads_what_was_asked_of_the_parent,
    test_key_pairs.test_key_pair_goes_through_both_levels,
    test_placement.test_an_offer_of_a_grandchild_goes_through_both_levels,
    test_placement.test_each_level_opens_its_own_layer_only,
    test_placement.test_a_grandchild_without_room_is_reported_and_the_offer_is_not_spent,
    test_placement.test_a_grandchild_that_does_not_answer_is_asked_again_by_the_next_order,
)
QUICK = frozenset(
    {
        test_selection.test_select_answers_weights_and_blobs_and_nothing_else,
        test_provisioning.test_b2_a_build_is_spread_by_weight_over_the_tree,
        test_provisioning.test_an_answer_that_is_lost_is_found_again_and_nothing_is_doubled,
        test_key_pairs.test_key_pair_goes_through_both_levels,
        test_placement.test_an_offer_of_a_grandchild_goes_through_both_levels,
    }
)
"""Those of `make test`: an answer, a build, a failure, and what goes through two levels."""


@pytest.mark.parametrize("same", cases(SAME, QUICK), ids=lambda same: same.__name__.removeprefix("test_"))
def test_over_sockets(plans: Tree, same: Callable[[Tree], None]) -> None:
    same(plans)
