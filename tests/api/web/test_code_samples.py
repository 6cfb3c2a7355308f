"""The same search by other tools: each text is one that its tool reads."""

import ast
import json
import shlex
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import click
from flask import Flask
from hypothesis import given
from hypothesis import strategies as st

from api.request_context import DEPLOYMENT
from api.web.code_samples import of_search
from api.web.host_search import HostSearch
from api.web.search_query import Requirement
from climate.cli.leases.find import command

START = datetime(2030, 1, 2, tzinfo=UTC)
TEXTS = st.text(st.characters(exclude_categories=("C", "Z")), min_size=1, max_size=20) | st.just('it\'s "$HOME"')


@given(st.integers(1, 100), st.integers(1, 100_000), TEXTS)
def test_texts_are_read_by_their_tools(hosts: int, minutes: int, value: str) -> None:
    app = Flask("texts")
    app.extensions[DEPLOYMENT] = SimpleNamespace(settings=SimpleNamespace(base_url="http://here"))
    length = timedelta(minutes=minutes)
    search = HostSearch(hosts, length, START, START + 2 * length, (Requirement("gpu", "==", value),))
    with app.app_context():
        texts = of_search(search)
    ast.parse(texts["Python"])
    words = shlex.split(texts["curl"].replace("\\\n", ""))
    body = json.loads(words[-1])
    assert json.loads(body["reservations"][0]["resource_properties"]) == ["==", "$gpu", value]
    assert body["duration"] == minutes * 60
    typed = shlex.split(texts["Command"])
    assert typed[:2] == ["climate", "find"]
    with click.Context(command) as context:
        given_options, left, _ = command.make_parser(context).parse_args(args=typed[2:])
    assert left == []
    assert json.loads(given_options["host_extras"]) == ["==", "$gpu", value]
