"""Key files for tokens and other secrets: the newest key encrypts, all of them decrypt."""

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import NamedTemporaryFile
from threading import Lock
from time import monotonic

import structlog
from cryptography.fernet import Fernet, MultiFernet

from climate.file_errors import reason_of
from climate.settings import SettingError

log = structlog.get_logger(__name__)

KEPT = 3
"""Number of keys that remain after a rotation. Rotate at most once per half of a token's lifetime."""

EXPECTED = "32 bytes in URL-safe base64 are expected, as climate wrote them: put back a copy, or move the file away"
WRITABLE = "CLIMATE_HOME has to be a folder that climate may write to"

_NUMBERED = re.compile(r"-[0-9]{6}\.key\Z")

LOOK_AGAIN = 1.0
"""Seconds between two checks for keys that other processes have created or deleted."""


class KeyRing:
    """Private files `<folder>/<name>-000001.key`, …; every process of a deployment reads the same folder."""

    def __init__(self, folder: Path, clock: Callable[[], float] = monotonic, name: str = "token") -> None:
        self._folder = folder
        self._name = name
        self._clock = clock
        self._lock = Lock()
        self._names: tuple[str, ...] = ()
        self._looked = float("-inf")
        self._fernet: MultiFernet | None = None
        self._keys: dict[str, Fernet] = {}
        self._refused: dict[str, str] = {}
        """Maps an unusable file to the reason; logged when it changes."""

    def fernet(self, *, look_now: bool = False) -> MultiFernet:
        """Return a Fernet that encrypts with the newest key and decrypts with all; create the first key if there is
        none.
        """
        with self._lock:
            if self._fernet is None or look_now or self._clock() - self._looked >= LOOK_AGAIN:
                self._fernet = self._refreshed(self._fernet)
                self._looked = self._clock()
            return self._fernet

    def rotate(self) -> None:
        """Create a new key for encryption, and delete the oldest beyond KEPT; what they sealed becomes unreadable."""
        names = self._listing()
        number = int(names[0].removeprefix(f"{self._name}-").removesuffix(".key")) if names else 0
        self._create_key(number + 1)
        for name in self._listing()[KEPT:]:
            (self._folder / name).unlink(missing_ok=True)
        self.fernet(look_now=True)

    def _refreshed(self, present: MultiFernet | None) -> MultiFernet:
        names = self._listing()
        if not names:
            self._create_key(1)
            names = self._listing()
        if present is not None and names == self._names and not self._refused:
            return present
        self._read(names, strict=present is None)
        self._names = names
        return MultiFernet([self._keys[name] for name in names if name in self._keys])

    def _read(self, names: Sequence[str], *, strict: bool) -> None:
        """Load the keys in these files and no others.

        Raise SettingError if none is usable, or with `strict` not all are.

        A file that is damaged after it was read keeps the key that was in it.
        """
        keys, refused = {}, {}
        for name in names:
            try:
                keys[name] = _key(self._folder / name)
            except SettingError as error:
                refused[name] = str(error)
                if name in self._keys:
                    keys[name] = self._keys[name]
        if refused and (strict or not keys):
            raise SettingError(next(iter(refused.values())))
        for name, reason in refused.items():
            if self._refused.get(name) != reason:
                log.error("a key is not used", reason=reason)
        self._keys, self._refused = keys, refused

    def _listing(self) -> tuple[str, ...]:
        names = (path.name for path in self._folder.glob(f"{self._name}-*.key"))
        return tuple(sorted((name for name in names if _NUMBERED.search(name)), reverse=True))

    def _create_key(self, number: int) -> None:
        """Write a key file atomically, and never over a key that another process has just created."""
        try:
            self._write(self._folder / f"{self._name}-{number:06}.key")
        except OSError as error:
            raise SettingError(f"cannot write a key in {self._folder}: {reason_of(error)}; {WRITABLE}") from error

    def _write(self, path: Path) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with NamedTemporaryFile(dir=self._folder, prefix=".new-") as file:
            file.write(Fernet.generate_key())
            file.flush()
            os.fsync(file.fileno())
            try:
                os.link(file.name, path)
            except FileExistsError:
                return


def check(folder: Path) -> None:
    """Raise SettingError for an unusable key in a folder; create none."""
    for path in sorted(folder.glob("*.key")):
        if _NUMBERED.search(path.name):
            _key(path)


def _key(path: Path) -> Fernet:
    try:
        return Fernet(path.read_bytes())
    except (OSError, ValueError) as error:
        why = reason_of(error) if isinstance(error, OSError) else "it is no key"
        raise SettingError(f"{path} cannot be used: {why}; {EXPECTED}") from error
