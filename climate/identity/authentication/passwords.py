"""Passwords and secrets, stored only as argon2id hashes."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from threading import BoundedSemaphore

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from climate.domain.errors import InvalidInput, TooManyRequests
from climate.identity.authentication.password_cache import Memory

SHORTEST, LONGEST = 8, 128
"""Limits of the length of a password, in characters."""

BUSY = "Too many passwords are being verified; try again in a second"

PATIENCE = 20.0
"""Longest time in seconds that a sign-in waits for its turn: on a loaded machine one hash takes more than a second."""


class Passwords:
    """Hashes and verifies passwords; a hash takes 64 MiB for about 50 ms, so their number at once is limited.

    `at_once` run concurrently, `waiting` more wait for their turn up to `patience` seconds, and others are refused.
    Sign-ins therefore never occupy all threads of a process. A password that was verified within the last minute needs
    no hash; a changed one does, because the stored hash is a part of the key in the cache.
    """

    def __init__(
        self, hasher: PasswordHasher | None = None, at_once: int = 2, waiting: int = 2, patience: float = PATIENCE
    ) -> None:
        self._patience = patience
        self._hasher = hasher or PasswordHasher()
        self._turns = BoundedSemaphore(at_once)
        self._seats = BoundedSemaphore(at_once + waiting)
        self._verified: Memory[bool] = Memory()

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Hold a turn in which to verify a password. Raise TooManyRequests when too many others wait."""
        if not self._seats.acquire(blocking=False):
            raise TooManyRequests(BUSY)
        try:
            if not self._turns.acquire(timeout=self._patience):
                raise TooManyRequests(BUSY)
            try:
                yield
            finally:
                self._turns.release()
        finally:
            self._seats.release()

    def hash(self, password: str) -> str:
        """Return the hash to store. Raise TooManyRequests as `turn` does."""
        with self.turn():
            return self._hasher.hash(password)

    def verify(self, kept: str | None, password: str) -> bool:
        """Return whether `password` matches the stored hash, in constant time even if there is none.

        Call it within a turn.
        """
        if self.recalls(kept, password):
            return True
        fits = len(password) <= LONGEST
        against = kept if kept is not None and fits else self._nobodys
        try:
            self._hasher.verify(against, password[:LONGEST])
        except (VerificationError, InvalidHashError):
            return False
        if kept is None or not fits:
            return False
        self._verified.keep(kept, password, True)
        return True

    def recalls(self, kept: str | None, password: str) -> bool:
        """Return whether `password` was found to match this stored hash of late, which takes no turn."""
        return kept is not None and self._verified.recall(kept, password) is True

    def outdated(self, kept: str) -> bool:
        """Return whether the hash was created with weaker parameters than the present ones."""
        return self._hasher.check_needs_rehash(kept)

    @cached_property
    def _nobodys(self) -> str:
        return self._hasher.hash("nobody has this password")


def check_new(password: object) -> str:
    """Return an acceptable new password. Raise InvalidInput that gives the rules."""
    if not isinstance(password, str) or not SHORTEST <= len(password) <= LONGEST:
        raise InvalidInput(f"password must be a text of {SHORTEST} to {LONGEST} characters")
    return password
