"""Settings of schedulers: their limits and words."""

import pytest

from climate.settings import SettingError, Settings


@pytest.mark.parametrize(
    ("variable", "text", "says"),
    [
        ("RESERVATION_ID_FORMAT", "long", "one of short, uuid"),
        ("SCHEDULER_MAX_ATTEMPTS", "101", "between 1 and 100"),
        ("RAM_ALLOCATION_RATIO", "0", "between 0.01 and 1000"),
        ("RAM_WEIGHT_MULTIPLIER", "inf", "between -1000000 "),
    ],
)
def test_values_out_of_their_limits_are_refused(variable: str, text: str, says: str) -> None:
    with pytest.raises(SettingError, match=f"CLIMATE_{variable}='{text}' .*{says}"):
        Settings.from_env({f"CLIMATE_{variable}": text})
