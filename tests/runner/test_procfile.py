"""A Procfile is read as every other runner reads it, without a shell."""

from pathlib import Path

import pytest

from climate.runner.procfile import ProcfileError, parse
from climate.runner.stack import ProcessSelection


def test_lines_become_words_in_their_order() -> None:
    text = "# the stack\nrelease: climate migrate\n\nweb:   gunicorn --bind ':8000' \"a b\"\n"

    assert list(parse(text, {}).items()) == [
        ("release", ("climate", "migrate")),
        ("web", ("gunicorn", "--bind", ":8000", "a b")),
    ]


def test_variables_are_filled_in_from_the_environment() -> None:
    assert parse("web: serve --port $PORT ${HOST}x $unknown", {"PORT": "80", "HOST": "h"}) == {
        "web": ("serve", "--port", "80", "hx", "$unknown")
    }


@pytest.mark.parametrize("text", ["web", "web:", ": serve", "w b: serve", "web: a\nweb: b", 'web: "open'])
def test_a_line_that_cannot_be_used_is_named(text: str) -> None:
    with pytest.raises(ProcfileError, match=r"line \d of the Procfile"):
        parse(text, {})


def test_ours_is_a_standard_one() -> None:
    text = (Path(__file__).parents[2] / "Procfile").read_text(encoding="utf-8")

    commands = parse(text, {})

    assert list(commands) == ["release", "web", "poller", "worker", "cells", "metadata"]
    assert {words[0] for words in commands.values()} == {"climate"}


def test_cells_process_runs_only_where_cells_are_enabled() -> None:
    procfile, unused = "web: serve\ncells: talk\n", frozenset({"cells"})
    assert list(ProcessSelection(procfile).commands({}, unused)) == ["web"]
    assert list(ProcessSelection(procfile).commands({})) == ["web", "cells"]
    assert list(ProcessSelection(procfile, ("cells",)).commands({}, unused)) == ["cells"]
