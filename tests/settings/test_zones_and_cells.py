"""Settings of zones and cells: their limits and words."""

import pytest

from climate.settings import SettingError, Settings


@pytest.mark.parametrize(
    ("variable", "text", "says"),
    [
        ("ZONE_POLL_SECONDS", "0.1", "between 0.2 and 86400"),
        ("CELL_TYPE", "child", "one of , api, compute"),
        ("CELLS_MAX_HOP_COUNT", "101", "between 1 and 100"),
        ("CELLS_RESERVE_PERCENT", "101", "between 0 and 100"),
    ],
)
def test_values_out_of_their_limits_are_refused(variable: str, text: str, says: str) -> None:
    with pytest.raises(SettingError, match=f"CLIMATE_{variable}='{text}' .*{says}"):
        Settings.from_env({f"CLIMATE_{variable}": text})
