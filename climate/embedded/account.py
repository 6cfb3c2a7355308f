"""OS account of a store, and how a new process changes to it."""

import ctypes
import os
import pwd
import struct
import sys
from dataclasses import dataclass

CLONE_NEWUSER = 0x10000000
PR_SET_PDEATHSIG = 1
PR_SET_KEEPCAPS = 8
PR_CAP_AMBIENT = 47
PR_CAP_AMBIENT_RAISE = 2
CAP_DAC_OVERRIDE = 1
CAPABILITY_VERSION_3 = 0x20080522


@dataclass(frozen=True, slots=True)
class Account:
    """An ordinary user: by a change of uid, or by a user namespace in which this process has that uid.

    `passes` keeps the right to pass folders that are closed to that user, for a home below one.
    """

    uid: int
    gid: int
    passes: bool = False
    namespace: bool = False

    @property
    def owner(self) -> tuple[int, int]:
        """Return the uid that must own the files of this account, as seen from outside of a namespace."""
        return (os.geteuid(), os.getegid()) if self.namespace else (self.uid, self.gid)

    def enter(self, library: ctypes.CDLL) -> None:
        """Change to this account; call it in the new process only, between fork and exec."""
        if self.namespace:
            _enter_namespace(library, self.uid, self.gid)
        else:
            _change_user(library, self)

    def __str__(self) -> str:
        way = " in a user namespace" if self.namespace else " passing closed folders" if self.passes else ""
        return f"user {user_name(self.uid) or self.uid}{way}"


def libc() -> ctypes.CDLL:
    """Return the C library, for calls that Python lacks; load it before a fork, never after it."""
    return ctypes.CDLL(None, use_errno=True)


def die_with_parent(library: ctypes.CDLL, signal_number: int, parent: int) -> None:
    """Have the kernel send the signal to this process when its parent ends; Linux only, elsewhere the reaper does it.

    Call it after every change of user, which clears it.  If the parent has ended already, the process ends.
    """
    if sys.platform != "linux":
        return
    _check(library.prctl(PR_SET_PDEATHSIG, signal_number, 0, 0, 0))
    if os.getppid() != parent:
        os._exit(1)


def user_name(uid: int) -> str | None:
    """Return the name of the uid in the user database, if any, which initdb requires."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return None


def _check(result: int) -> None:
    if result:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _change_user(library: ctypes.CDLL, account: Account) -> None:
    if account.passes:
        _check(library.prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0))
    os.setgroups([])
    os.setresgid(account.gid, account.gid, account.gid)
    os.setresuid(account.uid, account.uid, account.uid)
    if account.passes:
        header = struct.pack("=Ii", CAPABILITY_VERSION_3, 0)
        right = 1 << CAP_DAC_OVERRIDE
        _check(library.capset(header, struct.pack("=6I", right, right, right, 0, 0, 0)))
        _check(library.prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_DAC_OVERRIDE, 0, 0))


def _enter_namespace(library: ctypes.CDLL, uid: int, gid: int) -> None:
    outside = os.geteuid(), os.getegid()
    _check(library.unshare(CLONE_NEWUSER))
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{uid} {outside[0]} 1"),
        ("gid_map", f"{gid} {outside[1]} 1"),
    ):
        with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
            file.write(text)
