"""The cloud of the compute tests."""

from tests.api.compute.conftest import admin, member, reader, stranger, there

__all__ = ["admin", "member", "reader", "stranger", "there"]
