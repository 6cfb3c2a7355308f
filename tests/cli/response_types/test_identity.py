"""The types of accounts beside what the server answers."""

from typing import Any

import pytest

from climate.cli.response_types import identity
from tests.cli.response_types.answer_types import misfits, recorded


@pytest.mark.parametrize(
    ("path", "key", "kind"),
    [
        ("/v3/projects", "projects", list[identity.Account]),
        ("/v3/users", "users", list[identity.Account]),
        ("/v3/roles", "roles", list[identity.Account]),
        ("/role_assignments", "role_assignments", list[identity.RoleAssignment]),
        ("/application_credentials", "application_credentials", list[identity.Credential]),
    ],
)
def test_recorded_answers_are_of_these_types(path: str, key: str, kind: Any) -> None:
    assert misfits(recorded(path, key), kind) == []
