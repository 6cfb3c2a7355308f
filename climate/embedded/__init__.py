"""PostgreSQL and Valkey as child processes, for settings without a URL: found, initialised, run and stopped."""

from climate.embedded.errors import AlreadyRunning, StoreError
from climate.embedded.home import Stores, running, serving
from climate.embedded.stores import run

__all__ = ["AlreadyRunning", "StoreError", "Stores", "run", "running", "serving"]
