"""Files that only their owner may read."""

import os
from pathlib import Path
from tempfile import NamedTemporaryFile


def write(path: Path, text: str) -> None:
    """Write a file atomically, readable by its owner only from its first byte on."""
    with NamedTemporaryFile("w", dir=path.parent, prefix=f".{path.name}-", delete=False) as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    Path(file.name).replace(path)
