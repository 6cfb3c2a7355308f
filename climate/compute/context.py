"""`Compute`: what the verbs of the bundled cloud work with; handed in, never looked up."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from sqlalchemy import Connection, Engine

from climate.compute.store.clock import database_time
from climate.compute.virt import VirtDriver

Cast = Callable[[str, str], None]
"""Rings the doorbell of a compute service: (service host, server id).  May be lost or doubled."""


@dataclass(frozen=True)
class Compute:
    """Everything the bundled cloud needs, and nothing global."""

    engine: Engine
    home: Path
    service_host: str
    """The compute service that this process is, when it carries work out."""
    driver: VirtDriver
    cast: Cast
    now: Callable[[Connection], datetime] = database_time

    @property
    def images(self) -> Path:
        """The folder of the contents of images."""
        return self.home / "images"
