"""The cloud of the compute tests."""

from tests.api.compute.conftest import admin, cloud_database, member, reader, stranger, there

__all__ = ["admin", "cloud_database", "member", "reader", "stranger", "there"]
