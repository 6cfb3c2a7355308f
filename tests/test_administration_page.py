"""Commands of docs/administration.md exist with these options."""

import re

import pytest

from climate.identity.models import ROLES
from tests.doc_pages import blocks, check_command, tables, text_of

PAGE = text_of("administration")
IN_BLOCKS = [line for block in blocks(PAGE) for line in block.splitlines() if line.startswith("climate ")]
IN_TABLE = [
    line for row in tables("administration", "task", "command") for line in re.findall(r"`(climate [^`]+)`", row)
]
IN_TEXT = [" ".join(line.split()) for line in re.findall(r"`(climate user set [^`]+)`", PAGE)]


@pytest.mark.parametrize("line", sorted({*IN_BLOCKS, *IN_TABLE, *IN_TEXT}))
def test_each_command_is_one(line: str) -> None:
    check_command(line)


def test_the_page_has_its_commands_and_all_roles() -> None:
    assert (len(IN_BLOCKS), len(IN_TABLE)) == (6, 7)
    named = {row.split("`")[1] for row in tables("administration", "role", "permission in the project")}
    assert named == set(ROLES)
