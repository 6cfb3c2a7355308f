"""Secrets that have to be used again: sealed before they are stored, opened only where they are needed."""

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
    """`fernet` gives the keys of the moment: the newest seals, all open."""

    fernet: Callable[[], MultiFernet] = field(repr=False)

    @classmethod
    def of_this_process(cls) -> Self:
        """One whose key nobody else knows, and that is forgotten with the process: for tests."""
        keys = MultiFernet([Fernet(Fernet.generate_key())])
        return cls(lambda: keys)

    def seal(self, secrets: Mapping[str, Any]) -> str:
        return self.fernet().encrypt(json.dumps(dict(secrets)).encode()).decode()

    def open(self, sealed: str) -> dict[str, Any]:
        """What was sealed; Unreadable where its key is gone."""
        try:
            opened: dict[str, Any] = json.loads(self.fernet().decrypt(sealed.encode()))
        except InvalidToken:
            raise Unreadable() from None
        return opened
