"""Broadcasts that collect responses: one suite for every transport."""

import threading
from collections.abc import Mapping, Set
from contextlib import AbstractContextManager
from typing import Any, Protocol

from sqlalchemy import text

from climate.compute import Compute
from climate.compute.cells.messaging import collecting
from climate.compute.cells.messaging.collecting import BroadcastCall
from climate.compute.cells.messaging.dispatch import CellContext, Handlers
from climate.compute.cells.messaging.messages import DOWN, LARGEST, UP, Message
from climate.compute.errors import Conflict
from climate.compute.store.cells import messages

LEAF = "top!right!leaf"
PATIENCE = 120.0


def name(context: CellContext, message: Message, kwargs: Mapping[str, Any]) -> Any:
    return {"in": context.name, **kwargs}


def refuse_in_leaf(context: CellContext, message: Message, kwargs: Mapping[str, Any]) -> Any:
    if context.name == "leaf":
        raise Conflict("not now")
    return context.name


def grow_in_right(context: CellContext, message: Message, kwargs: Mapping[str, Any]) -> Any:
    return "x" * LARGEST if context.name == "right" else context.name


_KNOWN = {"name": name, "refuse_in_leaf": refuse_in_leaf, "grow_in_right": grow_in_right}
HANDLERS = Handlers({}, _KNOWN, frozenset({"name"}))


class Cells(Protocol):
    """A tree in which `top!right!leaf` is a path, with HANDLERS."""

    @property
    def below(self) -> Set[str]:
        """The paths of all cells below the top."""
        ...

    def compute(self, name: str) -> Compute: ...

    def working(self) -> AbstractContextManager[None]:
        """All cells work, as far as they are not silenced."""
        ...

    def silence(self, name: str) -> None:
        """Let a cell work no more."""
        ...


def await_answers(compute: Compute, asked: BroadcastCall, count: int) -> None:
    pause = threading.Event()
    for _ in range(int(PATIENCE / 0.02)):
        with compute.engine.connect() as conn:
            if len(messages.fetch(conn, asked.uuid)) >= count:
                return
        pause.wait(0.02)
    raise AssertionError(f"fewer than {count} cells have answered")


def waiting(compute: Compute) -> int:
    with compute.engine.connect() as conn:
        return int(conn.execute(text("SELECT count(*) FROM compute_cell_responses")).scalar_one())


class CollectingSuite:
    """The tests; a subclass has the fixture `tree`."""

    def test_each_cell_below_answers_in_its_own_name(self, tree: Cells) -> None:
        top = tree.compute("top")
        with tree.working():
            found = collecting.collect(top, "name", {"word": "hello"}, seconds=PATIENCE)
        assert found.values() == {path: {"in": path.rpartition("!")[2], "word": "hello"} for path in tree.below}
        assert (found.silent, found.missing()) == ((), {})
        assert waiting(top) == 0

    def test_own_cell_answers_if_it_is_to(self, tree: Cells) -> None:
        with tree.working():
            found = collecting.collect(tree.compute("top"), "name", {}, run_locally=True, seconds=PATIENCE)
        assert set(found.values()) == {"top", *tree.below}

    def test_cells_above_answer(self, tree: Cells) -> None:
        with tree.working():
            found = collecting.collect(tree.compute("leaf"), "name", {}, UP, seconds=PATIENCE)
        assert found.values() == {"leaf!right": {"in": "right"}, "leaf!right!top": {"in": "top"}}

    def test_method_that_is_not_open_to_children_fails_above(self, tree: Cells) -> None:
        with tree.working():
            found = collecting.collect(tree.compute("leaf"), "refuse_in_leaf", {}, UP, seconds=PATIENCE)
        assert found.values() == {}
        assert set(found.missing()) == {"leaf!right", "leaf!right!top"}
        assert "cannot be called by a child" in found.missing()["leaf!right"]

    def test_cell_without_cells_below_has_nothing_to_wait_for(self, tree: Cells) -> None:
        assert collecting.collect(tree.compute("leaf"), "name", {}, DOWN, seconds=PATIENCE).responses == ()

    def test_cell_that_refuses_is_named_with_its_reason(self, tree: Cells) -> None:
        with tree.working():
            found = collecting.collect(tree.compute("top"), "refuse_in_leaf", {}, seconds=PATIENCE)
        assert set(found.values()) == tree.below - {LEAF}
        assert (found.silent, found.missing()) == ((), {LEAF: "not now"})

    def test_answer_that_is_too_large_fails_and_those_behind_it_do_not(self, tree: Cells) -> None:
        with tree.working():
            found = collecting.collect(tree.compute("top"), "grow_in_right", {}, seconds=PATIENCE)
        assert set(found.values()) == tree.below - {"top!right"}
        assert "bytes" in found.missing()["top!right"]

    def test_silent_cell_is_named_and_its_late_answer_dropped(self, tree: Cells) -> None:
        top = tree.compute("top")
        tree.silence("leaf")
        asked = collecting.broadcast_call(top, "name", {}, seconds=PATIENCE)
        with tree.working():
            await_answers(top, asked, len(tree.below) - 1)
        found = collecting.wait(top, asked, 0)
        assert set(found.values()) == tree.below - {LEAF}
        assert (found.silent, found.missing()) == ((LEAF,), {LEAF: "no answer in time"})
        assert waiting(top) == 0
        with top.engine.begin() as conn:
            assert not messages.answer(conn, asked.uuid, LEAF, {}, top.now(conn))

    def test_cells_known_to_be_behind_a_silent_one_are_silent_too(self, tree: Cells) -> None:
        top = tree.compute("top")
        with top.engine.begin() as conn:
            children = text("UPDATE compute_cells SET children = CAST(:told AS jsonb) WHERE name = 'right'")
            conn.execute(children, {"told": '[{"name": "leaf", "children": []}]'})
        tree.silence("right")
        asked = collecting.broadcast_call(top, "name", {}, seconds=PATIENCE)
        with tree.working():
            await_answers(top, asked, len(tree.below) - 2)
        found = collecting.wait(top, asked, 0)
        assert found.silent == ("top!right", LEAF)
        assert set(found.values()) == tree.below - {"top!right", LEAF}
