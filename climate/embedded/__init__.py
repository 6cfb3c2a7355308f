"""PostgreSQL and Valkey of our own, when no URL is given: found, made, run as children, and never left behind."""

from climate.embedded.errors import AlreadyRunning, StoreError
from climate.embedded.folder import Stores, running, serving
from climate.embedded.stores import run

__all__ = ["AlreadyRunning", "StoreError", "Stores", "run", "running", "serving"]
