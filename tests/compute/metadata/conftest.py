"""Clouds with networks, as tests of networks have them."""

from tests.compute.network.conftest import Cloud, cloud

__all__ = ["Cloud", "cloud"]
