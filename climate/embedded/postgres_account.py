"""OS account and programs for PostgreSQL, which refuses root; not every user can reach every folder.

An ordinary user runs PostgreSQL directly.  Root uses the owner of the data, or else an existing ordinary user.
If that user cannot reach the programs, it runs a copy of them; if it cannot reach the home, it gets the right to
pass closed folders.  If users cannot be changed, root uses a user namespace.  Files of others keep their owner and
permissions.
"""

import os
import pwd
import shutil
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from climate.embedded.account import Account, user_name
from climate.embedded.binaries import Installation
from climate.embedded.errors import StoreError
from climate.embedded.home import change_owner
from climate.embedded.spawn import PLAIN_ENVIRON, Program, run_to_end

PREFERRED_USERS = ("climate", "nobody")


@dataclass(frozen=True, slots=True)
class Place:
    """The account (None: this one) and the folder with the programs that it runs."""

    account: Account | None
    programs: Path


def place(installation: Installation, folder: Path, data: Path) -> Place:
    """Return the folder and the account, found by trials; `folder` is the store's own, `data` may not exist yet."""
    owner = data.stat().st_uid if data.exists() else None
    myself = os.geteuid()
    if myself and user_name(myself):
        return Place(None, installation.path)
    problems: list[str] = []
    for account in _accounts(owner):
        try:
            return Place(account, _reachable_programs(installation, folder, account))
        except StoreError as error:
            problems.append(f"as {account}: {error}")
    raise StoreError(
        f"PostgreSQL cannot be run by user {user_name(myself) or myself} here ({'; '.join(problems)}): "
        "start climate as an ordinary user, or set CLIMATE_DATABASE_URL to a running server"
    )


def _accounts(owner: int | None) -> Iterator[Account]:
    users = {user.pw_name: user for user in reversed(pwd.getpwall()) if user.pw_uid}
    chosen = next((users[name] for name in PREFERRED_USERS if name in users), None) or next(iter(users.values()), None)
    uid, gid = (chosen.pw_uid, chosen.pw_gid) if chosen else (65534, 65534)
    if os.geteuid() == 0 and owner != 0:
        user, group = (uid, gid) if owner is None else (owner, _group(owner))
        yield Account(user, group)
        yield Account(user, group, passes=True)
    if owner in (None, os.geteuid()):
        yield Account(uid, gid, namespace=True)


def _group(uid: int) -> int:
    try:
        return pwd.getpwuid(uid).pw_gid
    except KeyError:
        return uid


def _reachable_programs(installation: Installation, folder: Path, account: Account) -> Path:
    """Return a folder of programs that this account can run, with access to the store's folder; StoreError if none."""
    _as_account(account, "/bin/sh", "-c", 'cd "$1"', "sh", str(folder))
    trial = folder / "trial"
    trial.mkdir(mode=0o700, exist_ok=True)
    try:
        change_owner(trial, account)
        _as_account(account, "/bin/sh", "-c", 'test -w "$1" && test -x "$1"', "sh", str(trial))
    except OSError as error:
        raise StoreError(f"files cannot be given away: {error.strerror}") from None
    finally:
        trial.rmdir()
    try:
        _as_account(account, str(installation.path / "postgres"), "--version")
        return installation.path
    except StoreError:
        copied = _copy(installation, folder)
    _as_account(account, str(copied / "postgres"), "--version")
    return copied


def _as_account(account: Account, *argv: str) -> None:
    run_to_end(Program(argv[0], argv, PLAIN_ENVIRON, account))


def _copy(installation: Installation, folder: Path) -> Path:
    """Copy the programs once into the store's folder, readable for all users."""
    target = folder / f"programs-{installation.version}"
    if not target.exists():
        unfinished = folder / "programs.new"
        shutil.rmtree(unfinished, ignore_errors=True)
        for part in installation.tree:
            shutil.copytree(part, unfinished / part.relative_to(installation.anchor), symlinks=True, dirs_exist_ok=True)
        _open_up(unfinished)
        unfinished.rename(target)
    return target / installation.path.relative_to(installation.anchor)


def _open_up(tree: Path) -> None:
    for parent, folders, files in os.walk(tree):
        for path in (Path(parent, name) for name in [".", *folders, *files]):
            mode = path.lstat().st_mode
            if not stat.S_ISLNK(mode):
                path.chmod(0o755 if stat.S_ISDIR(mode) or mode & stat.S_IXUSR else 0o644)
