"""Settings of reserved hosts: their limits and words."""

import pytest

from climate.settings import SettingError, Settings


@pytest.mark.parametrize(
    ("variable", "text", "says"),
    [
        ("CLEANING_TIME", "-1", "between 0"),
        ("HOST_ON_END", "keep", "one of terminate, recycle, release"),
        ("POOL_MARGIN", "1001", "between 0 and 1000"),
        ("POWER_TIMEOUT", "0", "between 1"),
    ],
)
def test_values_out_of_their_limits_are_refused(variable: str, text: str, says: str) -> None:
    with pytest.raises(SettingError, match=f"CLIMATE_{variable}='{text}' .*{says}"):
        Settings.from_env({f"CLIMATE_{variable}": text})
