"""Reads of identity."""

import pytest
from sqlalchemy import event

from climate.domain.errors import NotFound
from climate.identity import read_operations, roles
from climate.identity.audit_trail import SETUP
from tests.identity.identity_factory import Place


def test_default_roles_need_no_statement(here: Place) -> None:
    statements: list[str] = []
    event.listen(here.identity.engine, "before_cursor_execute", lambda *args: statements.append(args[2]))
    assert [role.name for role in read_operations.named_roles(here.identity, ("reader", "admin"))] == [
        "reader",
        "admin",
    ]
    assert statements == []


def test_roles_by_id_or_name_without_unknown_ones(here: Place) -> None:
    made = roles.create(here.identity, SETUP, "operator")
    for reference in (made.id, "operator"):
        assert read_operations.named_roles(here.identity, ("unknown", reference)) == [made]
    assert made in read_operations.all_roles(here.identity)
    with pytest.raises(NotFound, match="Could not find role: unknown"):
        read_operations.role(here.identity, "unknown")
