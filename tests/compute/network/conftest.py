"""Clouds with networks, one for each manager."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.compute.network.recorded_network import Books, books
from tests.conftest import Clock

Cloud = Callable[..., Books]


@pytest.fixture
def cloud(scratch: str, tmp_path: Path, clock: Clock) -> Iterator[Cloud]:
    """Makes the cloud of a test, with these options."""
    with ExitStack() as stack:

        def made(**options: Any) -> Books:
            return stack.enter_context(books(scratch, tmp_path, clock, **options))

        yield made
