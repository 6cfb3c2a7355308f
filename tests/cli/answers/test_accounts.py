"""The types of accounts beside what the server answers."""

from typing import Any

import pytest

from climate.cli.answers import accounts
from tests.cli.answers.answer_types import misfits, recorded


@pytest.mark.parametrize(
    ("path", "key", "kind"),
    [
        ("/v3/projects", "projects", list[accounts.Account]),
        ("/v3/users", "users", list[accounts.Account]),
        ("/v3/roles", "roles", list[accounts.Account]),
        ("/role_assignments", "role_assignments", list[accounts.RoleAssignment]),
        ("/application_credentials", "application_credentials", list[accounts.Credential]),
    ],
)
def test_recorded_answers_are_of_these_types(path: str, key: str, kind: Any) -> None:
    assert misfits(recorded(path, key), kind) == []
