"""What docs/pools.md tells is so."""

import re
from pathlib import Path

import pytest
from flask import Flask

from api.reservation import NOUNS
from api.reservation.view_decorator import PREFIX
from climate.domain.hosts.pools import MOVES, OnEnd, Pool
from climate.plugin import CLOUD_POOLS
from climate.processes import process_supervisor
from climate.service.host_operations import cleaning_hook
from tests.doc_pages import broken_links, check_command, text_of, unknown_settings

HERE = Path(__file__).parent.parent
PAGE = text_of("pools")
BLOCKS = "".join(re.findall(r"^```\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)).replace("\\\n", " ")
COMMANDS = [line.strip() for line in re.findall(r"^climate (?:[^'\n#]|'[^']*')+", BLOCKS, re.MULTILINE)]
CALLS = re.findall(r"^curl -s (?:-X (\w+) )?\$URL/v1(/[^ ?]*)", BLOCKS, re.MULTILINE)


def rows(beginning: str) -> list[list[str]]:
    """The cells of the table whose head begins so."""
    found = re.search(rf"^\| {re.escape(beginning)} \|.*\n\|[-|]+\n((?:\|.*\n)+)", PAGE, re.MULTILINE)
    assert found is not None
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in found[1].splitlines()]


def names(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def test_the_pools_their_aggregates_and_moves_are_those_of_the_table() -> None:
    told = {names(pool)[0]: (names(aggregate), set(names(to))) for pool, _, aggregate, to in rows("pool")}
    aggregates = {pool: [name] if (name := CLOUD_POOLS.get(pool)) else [] for pool in Pool}
    assert told == {pool: (aggregates[pool], set(MOVES[pool])) for pool in Pool}


def test_every_policy_is_reported() -> None:
    assert [names(row[0])[0] for row in rows("`on_end`")] == list(OnEnd)


def test_the_settings_it_names_exist() -> None:
    of_the_hook = {process_supervisor.RUN_ID, cleaning_hook.TOKEN}
    assert unknown_settings(PAGE) == of_the_hook


def test_every_kind_of_notice_that_people_get_is_reported() -> None:
    sources = [*(HERE / "climate" / "service").rglob("*.py"), *(HERE / "workers").glob("*.py")]
    code = "".join(path.read_text(encoding="utf-8") for path in sources)
    given = set(re.findall(r'Notice\(\s*"([a-z]+\.[a-z_]+)"', code))
    told = {kind for row in rows("kind") for kind in names(row[0])}
    assert given <= told
    assert {kind for kind in told if f'"{kind}"' not in code} == set()


@pytest.mark.parametrize("line", COMMANDS)
def test_the_command_line_is_understood(line: str) -> None:
    check_command(line)


@pytest.mark.parametrize(("method", "path"), CALLS)
def test_the_route_exists(method: str, path: str) -> None:
    app = Flask(__name__)
    for noun in NOUNS:
        app.register_blueprint(noun.blueprint)
    app.url_map.bind("").match(PREFIX + path, method=method or "GET")


def test_links_lead_somewhere() -> None:
    assert broken_links(PAGE) == set()
