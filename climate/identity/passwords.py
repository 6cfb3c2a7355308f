"""Passwords and secrets, kept only as argon2id hashes."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from threading import BoundedSemaphore

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from climate.domain.errors import InvalidInput, TooManyRequests

SHORTEST, LONGEST = 8, 128
"""Characters of a password."""

BUSY = "Too many passwords are being verified; try again in a second"


PATIENCE = 1.0
"""Longest time that a sign-in waits for its turn, in seconds."""


class Passwords:
    """Hashes and verifies; a hash takes 64 MiB for some 50 ms, so that a process makes few at once.

    `at_once` of them are under way, `waiting` more wait for their turn, and the others are refused: sign-ins never
    take all threads of a process from those who have signed in.
    """

    def __init__(self, hasher: PasswordHasher | None = None, at_once: int = 2, waiting: int = 2) -> None:
        self._hasher = hasher or PasswordHasher()
        self._turns = BoundedSemaphore(at_once)
        self._seats = BoundedSemaphore(at_once + waiting)

    @contextmanager
    def turn(self) -> Iterator[None]:
        """The turn of one sign-in to have a password verified; TooManyRequests when too many others wait for theirs."""
        if not self._seats.acquire(blocking=False):
            raise TooManyRequests(BUSY)
        try:
            if not self._turns.acquire(timeout=PATIENCE):
                raise TooManyRequests(BUSY)
            try:
                yield
            finally:
                self._turns.release()
        finally:
            self._seats.release()

    def hash(self, password: str) -> str:
        """The hash to keep; TooManyRequests as `turn`."""
        with self.turn():
            return self._hasher.hash(password)

    def verify(self, kept: str | None, password: str) -> bool:
        """Whether `password` is the one whose hash is kept; takes as long when there is none.  Called in a turn."""
        fits = len(password) <= LONGEST
        against = kept if kept is not None and fits else self._nobodys
        try:
            self._hasher.verify(against, password[:LONGEST])
        except (VerificationError, InvalidHashError):
            return False
        return kept is not None and fits

    def outdated(self, kept: str) -> bool:
        """Whether the hash was made with weaker parameters than today's."""
        return self._hasher.check_needs_rehash(kept)

    @cached_property
    def _nobodys(self) -> str:
        return self._hasher.hash("nobody has this password")


def check_new(password: object) -> str:
    """A password that may be set; InvalidInput says what would be."""
    if not isinstance(password, str) or not SHORTEST <= len(password) <= LONGEST:
        raise InvalidInput(f"password must be a text of {SHORTEST} to {LONGEST} characters")
    return password
