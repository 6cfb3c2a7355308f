"""Projects as rows."""

import pytest

from climate.identity.models import NameOrId, Project
from climate.identity.store import projects
from tests.identity.identity_factory import Place

ABOVE = Project("above", "above", "", enabled=True, tags=("x", "y"), extra={"cost_centre": 7})


@pytest.mark.parametrize("enabled", [True, False])
def test_a_project_is_read_as_it_was_written_with_those_below(here: Place, enabled: bool) -> None:
    below = Project("below", "below", "of robots", enabled=enabled, parent_id="above")
    with here.identity.engine.begin() as conn:
        projects.add(conn, ABOVE)
        assert not projects.has_children(conn, "above")
        projects.add(conn, below)
        assert [projects.find(conn, NameOrId(id=name)) for name in ("above", "below")] == [ABOVE, below]
        assert projects.has_children(conn, "above")
        assert projects.has_children(conn, "above", enabled=True) == enabled
        assert not projects.has_children(conn, "below")
