"""The same trees as for the verbs."""

from tests.compute.zones.conftest import family, lone, standing, standing_family

__all__ = ["family", "lone", "standing", "standing_family"]
