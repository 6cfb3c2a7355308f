"""A recorded Blazar database."""

import pytest

from tests.databases import Databases
from tests.service.blazar_import.recordings import restore_postgresql


@pytest.fixture(scope="session")
def blazar_url(make_database: Databases) -> str:
    """A database that Blazar 18 filled."""
    return restore_postgresql(make_database(), "18.0.0")
