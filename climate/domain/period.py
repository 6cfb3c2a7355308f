"""Half-open periods of time."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Self

from climate.domain.errors import InvalidPeriod


@dataclass(frozen=True, slots=True)
class Period:
    """Period from `start`, up to but not including `end`; both with a time zone."""

    start: datetime
    end: datetime

    def __post_init__(self) -> None:
        if self.start.tzinfo is None or self.end.tzinfo is None:
            raise InvalidPeriod("start and end need a time zone")
        if self.end <= self.start:
            raise InvalidPeriod("End date must be later than start date.")

    def overlaps(self, other: "Period") -> bool:
        return self.start < other.end and other.start < self.end

    def longer(self, by: timedelta) -> Self:
        """Return the same period with its end `by` later."""
        return type(self)(self.start, self.end + by)
