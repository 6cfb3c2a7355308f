"""Repetitions of a lease that a form offers, and their rules (RRULE of RFC 5545)."""

from collections.abc import Mapping
from dataclasses import dataclass

from api.reservation.leases.repeat_schema import LONGEST_RULE
from api.web import form_fields
from api.web.form_fields import Form
from climate.domain.errors import InvalidInput

CHOICES: Mapping[str, tuple[str, str]] = {
    "day": ("every day", "FREQ=DAILY"),
    "weekday": ("Monday to Friday", "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR"),
    "week": ("every week", "FREQ=WEEKLY"),
    "fortnight": ("every two weeks", "FREQ=WEEKLY;INTERVAL=2"),
    "month": ("every month", "FREQ=MONTHLY"),
}
"""Words and rule of each choice, without the number of times."""

USUAL_TIMES, MOST_TIMES = 4, 1000


@dataclass(frozen=True, slots=True)
class Repetition:
    """A choice of the form with a number of times, or a rule that was typed."""

    every: str
    times: int
    own: str = ""

    @property
    def rule(self) -> str:
        """Return the RRULE."""
        return self.own or f"{CHOICES[self.every][1]};COUNT={self.times}"

    @property
    def fields(self) -> Mapping[str, str]:
        """Return the fields from which it is read."""
        return {"every": self.every, "times": str(self.times), "rule": self.own}


def read(form: Form) -> Repetition | None:
    """Return the repetition of a form; None if the lease is not repeated. Raise InvalidInput for an unknown one."""
    every, own = form.get("every", ""), form_fields.text(form, "rule", LONGEST_RULE)
    if every and every not in CHOICES:
        raise InvalidInput(f"every is {every[:20]!r}: expected is one of {', '.join(CHOICES)}")
    times = form_fields.number(form, "times", USUAL_TIMES, 1, MOST_TIMES)
    return Repetition(every, times, own) if every or own else None
