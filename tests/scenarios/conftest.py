"""Fixtures of the engine's services, for stories over several of them."""

from tests.service.conftest import cleaned, cloud

__all__ = ["cleaned", "cloud"]
