"""Passwords and secrets, kept only as argon2id hashes."""

from functools import cached_property
from threading import BoundedSemaphore

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from climate.domain.errors import InvalidInput

SHORTEST, LONGEST = 8, 128
"""Characters of a password."""


class Passwords:
    """Hashes and verifies; a hash takes 64 MiB for some 50 ms, so only a few are worked on at once in a process."""

    def __init__(self, hasher: PasswordHasher | None = None, at_once: int = 2) -> None:
        self._hasher = hasher or PasswordHasher()
        self._slots = BoundedSemaphore(at_once)

    def hash(self, password: str) -> str:
        """The hash to keep."""
        with self._slots:
            return self._hasher.hash(password)

    def verify(self, kept: str | None, password: str) -> bool:
        """Whether `password` is the one whose hash is kept; takes as long when there is none."""
        fits = len(password) <= LONGEST
        against = kept if kept is not None and fits else self._nobodys
        with self._slots:
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
        return self.hash("nobody has this password")


def check_new(password: object) -> str:
    """A password that may be set; InvalidInput says what would be."""
    if not isinstance(password, str) or not SHORTEST <= len(password) <= LONGEST:
        raise InvalidInput(f"password must be a text of {SHORTEST} to {LONGEST} characters")
    return password
