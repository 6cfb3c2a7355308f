"""Bodies of security groups as Compute had them below 2.36."""

import pytest

from api.compute.networks.security_group_bodies import GROUP
from climate.domain.errors import InvalidInput


def test_a_name_keeps_the_spaces_at_its_ends() -> None:
    read = GROUP.read({"security_group": {"name": " web ", "description": None}})
    assert dict(read) == {"name": " web ", "description": ""}


@pytest.mark.parametrize("name", ["", "  ", None, 5, "a\nb", "x" * 256])
def test_bad_names_are_refused(name: object) -> None:
    with pytest.raises(InvalidInput, match=r"^name must be"):
        GROUP.read({"security_group": {"name": name}})
