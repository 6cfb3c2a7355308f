"""Number in memory that a process shares with its children."""

from mmap import mmap


class SharedNumber:
    """A number of 64 bits that this process shares with the processes that it forks later."""

    def __init__(self) -> None:
        self._cell = memoryview(mmap(-1, 8)).cast("Q")

    @property
    def value(self) -> int:
        return self._cell[0]

    @value.setter
    def value(self, value: int) -> None:
        self._cell[0] = value
