"""Limit of the uploads of one project at once, which leaves threads of a web process to other projects."""

from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from threading import Lock
from typing import cast

from flask import Flask, current_app

from climate.domain.errors import TooManyRequests
from climate.web.request_framing import LONGEST_BODY
from climate.web.thread_pools import STREAMS

MOST_OF_PROJECT = STREAMS - 2
"""Uploads of one project that a web process receives at once."""

_SLOTS = "climate.upload_slots"


@dataclass
class UploadSlots:
    """The uploads of a web process that go on, counted by project."""

    _of_project: Counter[str] = field(default_factory=Counter)
    _lock: Lock = field(default_factory=Lock)

    def one_of(self, project_id: str, length: int | None) -> AbstractContextManager[None]:
        """Count an upload of the project while the block lasts; TooManyRequests if it has too many already.

        A content of `length` bytes that has arrived before its request was served does not count.
        """
        has_arrived = length is not None and length <= LONGEST_BODY
        return nullcontext() if has_arrived else self._counted(project_id)

    @contextmanager
    def _counted(self, project_id: str) -> Iterator[None]:
        with self._lock:
            if self._of_project[project_id] >= MOST_OF_PROJECT:
                raise TooManyRequests(
                    f"The project has {MOST_OF_PROJECT} uploads of images in progress, as many as it may have here: "
                    "repeat when one of them has ended"
                )
            self._of_project[project_id] += 1
        try:
            yield
        finally:
            with self._lock:
                self._of_project[project_id] -= 1
                self._of_project += Counter()  # without projects that upload nothing


def install(app: Flask) -> None:
    """Begin to count the uploads of a web process."""
    app.extensions[_SLOTS] = UploadSlots()


def slots() -> UploadSlots:
    """Return the counted uploads of this process."""
    return cast(UploadSlots, current_app.extensions[_SLOTS])
