"""Secrets that have to be read again: sealed before they are stored, opened only where they are used."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from cryptography.fernet import Fernet, InvalidToken, MultiFernet


class Unreadable(Exception):
    """The secrets were sealed with a key that is not there: they have to be given again."""

    def __init__(self) -> None:
        super().__init__(self.__doc__)


@dataclass(frozen=True)
class Vault:
    """Seals and opens secrets; `fernet` returns the present keys, of which the newest encrypts and all decrypt."""

    fernet: Callable[[], MultiFernet] = field(repr=False)

    @classmethod
    def of_this_process(cls) -> Self:
        """Return a vault with a random key that ends with the process, for tests."""
        keys = MultiFernet([Fernet(Fernet.generate_key())])
        return cls(lambda: keys)

    def seal(self, secrets: Mapping[str, object]) -> str:
        return self.fernet().encrypt(json.dumps(dict(secrets)).encode()).decode()

    def open(self, sealed: str) -> dict[str, Any]:
        """Return the secrets. Raise Unreadable if their key was deleted."""
        try:
            opened: dict[str, object] = json.loads(self.fernet().decrypt(sealed.encode()))
        except InvalidToken:
            raise Unreadable() from None
        return opened
