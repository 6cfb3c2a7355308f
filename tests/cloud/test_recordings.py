"""The fakes of Nova, Placement, Neutron and Glance answer what real ones answered."""

from pathlib import Path

import pytest

from tests.cloud.exchanges import differences, exchanges, recorded
from tests.cloud.nova import nova

pytestmark = pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")  # of the SDK's own code


def test_the_fake_answers_with_the_status_and_keys_of_the_real_one(tmp_path: Path) -> None:
    real = recorded()
    with nova(tmp_path) as (_, cloud):
        fake = exchanges(cloud.remote.connection, "n1")  # type: ignore[attr-defined]
    assert {name: each["status"] for name, each in fake.items()} == {
        name: each["status"] for name, each in real.items()
    }
    wrong = {name: differences(real[name]["body"], each["body"]) for name, each in fake.items()}
    assert {name: found for name, found in wrong.items() if found} == {}


@pytest.mark.parametrize("fake", [{"a": 1, "b": 2}, {"a": "1"}])
def test_another_key_or_type_is_a_difference(fake: dict[str, object]) -> None:
    assert differences({"a": 1}, fake) != []
    assert differences([{"a": 1}], [fake]) != []
