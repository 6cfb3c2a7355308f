"""Thread pools of a web process beside its ordinary threads, each for requests that may take long."""

import re
from concurrent.futures import ThreadPoolExecutor

STREAMS = 8
"""Uploads of images that a process receives at once; one project has some of them at most: `api.image.upload_slots`."""
REFUSALS = 2
"""Other requests with long bodies that a process refuses at once."""
DOWNLOADS = 8
"""Contents of images that a process sends at once."""

BESIDE = STREAMS + REFUSALS + DOWNLOADS
"""Requests that a process serves at once beside its ordinary threads."""

_UPLOAD = re.compile(rb"PUT /image/v2/images/[^/ ]+/(?:file|stage)[ ?]")
_DOWNLOAD = re.compile(rb"GET /image/v2/images/[^/ ]+/file[ ?]")
_HEALTH = b"GET /healthz "


class ThreadPools:
    """Thread pools of one process. A refused body has its own: a slow one must not keep uploads waiting."""

    def __init__(self) -> None:
        self.downloads = ThreadPoolExecutor(DOWNLOADS, "download")
        self.uploads = ThreadPoolExecutor(STREAMS, "upload")
        self._refusals = ThreadPoolExecutor(REFUSALS, "refusal")
        self._health = ThreadPoolExecutor(1, "health")

    def of(self, data: bytes, *, is_long: bool) -> ThreadPoolExecutor | None:
        """Return the pool of a request by its first bytes; None for the ordinary threads.

        A request `is_long` if its body has not arrived.
        """
        if is_long:
            return self.uploads if _UPLOAD.match(data) else self._refusals
        if data.startswith(_HEALTH):
            return self._health
        return self.downloads if _DOWNLOAD.match(data) else None
