"""The page about lending from an OpenStack cloud says what the code says."""

import re
from dataclasses import fields
from pathlib import Path

import pytest

from climate.cloud import FREEPOOL
from climate.cloud.openstack.connection import TIMEOUT_SECONDS
from climate.cloud.openstack.http import MICROVERSIONS
from climate.cloud.openstack.placement import OWN
from climate.cloud.openstack.pools.aggregates import BOOK, CLOSED, OWNER, TENANT
from climate.cloud.openstack.server_actions import MADE_OF, OCCASION
from climate.cloud.openstack.servers import SLEEPS
from climate.cloud.openstack.slots import PREFIX
from climate.settings import Settings

PAGE = (Path(__file__).parents[2] / "docs" / "openstack.md").read_text(encoding="utf-8")


WORDS = (FREEPOOL, BOOK, CLOSED, OWNER, TENANT, MADE_OF, OCCASION, f"{SLEEPS}=true")
WORDS += (f"{OWN}<ID>", f"{PREFIX}<hypervisor>")


@pytest.mark.parametrize("word", WORDS)
def test_every_name_that_others_see_there_is_reported(word: str) -> None:
    assert f"`{word}`" in PAGE


def test_settings_and_limits_are_the_codes() -> None:
    known = {f"CLIMATE_{setting.name.upper()}" for setting in fields(Settings)}
    assert set(re.findall(r"CLIMATE_\w+", PAGE)) <= known
    assert f"Compute API {MICROVERSIONS['compute']}" in PAGE
    assert f"API {MICROVERSIONS['placement']} or later" in PAGE
    assert f"{TIMEOUT_SECONDS} seconds" in PAGE
