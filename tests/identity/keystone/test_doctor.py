"""The doctor's check of Keystone."""

from dataclasses import replace
from pathlib import Path

import pytest

from climate.domain.errors import Unavailable
from climate.identity.keystone.doctor import checked
from climate.settings import Settings
from tests.identity.keystone.fake_keystone import FakeKeystone

pytestmark = pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")  # of the SDK's own code


def test_a_catalog_without_climate_is_a_warning(settings: Settings, fake: FakeKeystone) -> None:
    validates, catalog = checked(settings)
    assert validates == (True, f"{fake.url} validates tokens for user climate with the roles service")
    assert catalog == (False, "its catalog has no reservation service: `climate openstack register` creates it")


@pytest.mark.parametrize(("port", "good"), [(8000, True), (8001, False)])
def test_the_url_in_the_catalog_is_compared(settings: Settings, fake: FakeKeystone, port: int, good: bool) -> None:
    fake.services["reservation"] = "http://127.0.0.1:8000/reservation/v1/"
    _, (is_good, says) = checked(replace(settings, port=port))
    assert (is_good, "http://127.0.0.1:8000/reservation/v1" in says) == (good, True)


def test_wrong_credentials_are_unavailable(settings: Settings, fake: FakeKeystone, tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="refused climate's own credentials"):
        list(checked(replace(settings, keystone_config=fake.cloud(tmp_path, "wrong"))))
