"""What the demo shows: a check mark per verified step, and what is going on while it waits."""

import sys
import time
from dataclasses import dataclass, field

from rich.console import Console
from rich.status import Status
from rich.text import Text


@dataclass
class Screen:
    """Live on a terminal, plain lines everywhere else."""

    console: Console
    began: float = field(default_factory=time.monotonic)
    _status: Status | None = None
    _last: str = ""

    def waiting(self, what: str, state: str = "", spent: float = 0.0) -> None:
        """What is waited for, how it stands, and (on a terminal only) for how many seconds."""
        line = f"waiting for {what}" + (f": {state}" if state else "")
        if self.console.is_terminal:
            self._live(f"{line} ({spent:.0f} s)")
        elif line != self._last:
            self._print(Text(f"  {self._mark('…', '...')} {line}"))
        self._last = line

    def done(self, title: str, seen: str) -> None:
        """A step was verified."""
        self._still()
        self._print(Text.assemble((self._mark("✓", "ok"), "bold green"), f" {title}: ", (seen, "dim")))

    def failed(self, title: str, why: str) -> None:
        """A step was not verified."""
        self._still()
        self._print(Text.assemble((self._mark("✗", "NOT OK"), "bold red"), f" {title}: {why}"))

    def say(self, text: str) -> None:
        """Anything else."""
        self._still()
        self._print(Text(text))

    def close(self) -> None:
        """Leave the terminal as it was."""
        self._still()

    @property
    def spent(self) -> float:
        """Seconds since the beginning."""
        return time.monotonic() - self.began

    def _print(self, text: Text) -> None:
        self.console.print(text, soft_wrap=True)
        self.console.file.flush()

    def _mark(self, wanted: str, plain: str) -> str:
        return wanted if (self.console.encoding or "").lower().startswith("utf") else plain

    def _live(self, line: str) -> None:
        if self._status is None:
            self._status = self.console.status(Text(line))
            self._status.start()
        self._status.update(Text(line))

    def _still(self) -> None:
        self._last = ""
        if self._status is not None:
            self._status.stop()
            self._status = None


def screen(colourful: bool) -> Screen:
    """The screen of this process: stdout."""
    return Screen(Console(file=sys.stdout, no_color=not colourful, highlight=False))
