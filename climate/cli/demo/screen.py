"""Output of the demo: a check mark per verified step, and the progress of a wait."""

import sys
import time
from dataclasses import dataclass, field

from rich.console import Console
from rich.status import Status
from rich.text import Text


@dataclass(frozen=True, slots=True)
class Wait:
    """Something that takes time; each rendering has the seconds until then."""

    line: str
    began: float

    def __rich__(self) -> Text:
        return Text(f"{self.line} ({time.monotonic() - self.began:.0f} s)")


@dataclass
class Screen:
    """Live display on a terminal, plain lines elsewhere."""

    console: Console
    began: float = field(default_factory=time.monotonic)
    _status: Status | None = None
    _last: str = ""

    def begins(self, title: str) -> None:
        """Show a step while it is verified, on a terminal."""
        if self.console.is_terminal:
            self._live(Wait(title, time.monotonic()))

    def waiting(self, what: str, state: str = "", spent: float = 0.0) -> None:
        """Show the expected state, the present state, and on a terminal the seconds."""
        line = f"waiting for {what}" + (f": {state}" if state else "")
        if self.console.is_terminal:
            if line != self._last:
                self._live(Wait(line, time.monotonic() - spent))
        elif line != self._last:
            self._print(Text(f"  {self._mark('…', '...')} {line}"))
        self._last = line

    def done(self, title: str, seen: str) -> None:
        """Show a verified step."""
        self._still()
        self._print(Text.assemble((self._mark("✓", "ok"), "bold green"), f" {title}: ", (seen, "dim")))

    def failed(self, title: str, why: str) -> None:
        """Show a step that failed."""
        self._still()
        self._print(Text.assemble((self._mark("✗", "NOT OK"), "bold red"), f" {title}: {why}"))

    def say(self, text: str) -> None:
        """Print another line."""
        self._still()
        self._print(Text(text))

    def close(self) -> None:
        """Restore the terminal."""
        self._still()

    @property
    def spent(self) -> float:
        """Return the seconds since the start of the demo."""
        return time.monotonic() - self.began

    def _print(self, text: Text) -> None:
        self.console.print(text, soft_wrap=True)
        self.console.file.flush()

    def _mark(self, wanted: str, plain: str) -> str:
        return wanted if (self.console.encoding or "").lower().startswith("utf") else plain

    def _live(self, wait: Wait) -> None:
        if self._status is None:
            self._status = self.console.status(wait)
            self._status.start()
        self._status.update(wait)

    def _still(self) -> None:
        self._last = ""
        if self._status is not None:
            self._status.stop()
            self._status = None


def screen(colourful: bool) -> Screen:
    """Return the screen of this process on stdout."""
    return Screen(Console(file=sys.stdout, no_color=not colourful, highlight=False))
