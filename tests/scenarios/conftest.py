"""An engine with cleaning time, and its fake cloud."""

from dataclasses import replace
from datetime import timedelta

import pytest

from climate.cloud.fake import FakeCloud
from climate.context import Climate

CLEANING = timedelta(minutes=10)


@pytest.fixture
def cleaned(climate: Climate) -> Climate:
    """The engine, with ten minutes of cleaning time after a lease."""
    return replace(climate, settings=replace(climate.settings, cleaning_time=int(CLEANING.total_seconds())))


@pytest.fixture
def cloud(climate: Climate) -> FakeCloud:
    """The fake cloud of the engine."""
    assert isinstance(climate.cloud, FakeCloud)
    return climate.cloud
