"""Options of cells from settings."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from climate.sealed_secrets import Vault

API, COMPUTE = "api", "compute"

CellType = Literal["api", "compute"]


@dataclass(frozen=True, slots=True)
class CellOptions:
    """Settings of this cell. Times are in seconds."""

    enabled: bool = False
    name: str = "nova"
    type: CellType = "compute"
    capabilities: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    call_timeout: float = 60.0
    max_hop_count: int = 10
    scheduler_retries: int = 10
    """Number of retries of a build without an available cell."""
    scheduler_retry_delay: float = 2.0
    reserve_percent: float = 10.0
    """Percentage of a node that is excluded from reported free capacity."""
    mute_seconds: float = 300.0
    """Seconds without a report after which a child is mute."""
    ram_multiplier: float = 10.0
    """Positive prefers cells with more capacity, negative fuller ones."""
    offset_multiplier: float = 1.0
    mute_multiplier: float = -10.0
    mute_value: float = 1000.0
    vault: Vault | None = field(default=None, repr=False)
    """Function that encrypts the credentials of neighbours."""

    @property
    def is_api(self) -> bool:
        """Return whether this is the top cell, which has the API and no nodes."""
        return self.enabled and self.type == API


def read_capabilities(text: str) -> dict[str, tuple[str, ...]]:
    """Return the capabilities of `key=value;value, key=value`. Raise ValueError with the invalid part."""
    result: dict[str, tuple[str, ...]] = {}
    for part in filter(None, (word.strip() for word in text.split(","))):
        key, separator, values = part.partition("=")
        if not separator or not key.strip():
            raise ValueError(f"{part!r} is not of the form key=value;value")
        if not part.isprintable():
            raise ValueError(f"{part!r} has a character that cannot be printed")
        result[key.strip()] = tuple(value.strip() for value in values.split(";"))
    return result
