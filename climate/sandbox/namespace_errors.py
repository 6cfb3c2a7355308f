"""Reasons why the kernel refuses namespaces for a sandbox, with the fix."""

import errno
import sys
from pathlib import Path

_SWITCHES = (
    (
        "kernel/apparmor_restrict_unprivileged_userns",
        "1",
        "AppArmor denies namespaces to ordinary users (Ubuntu 23.10 and newer): use sudo, or allow them with"
        " `sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0`",
    ),
    (
        "kernel/unprivileged_userns_clone",
        "0",
        "user namespaces are disabled for ordinary users: use sudo, or allow them with"
        " `sudo sysctl kernel.unprivileged_userns_clone=1`",
    ),
    (
        "user/max_user_namespaces",
        "0",
        "user namespaces are disabled: use sudo, or allow them with `sudo sysctl user.max_user_namespaces=10000`",
    ),
)
"""Setting below /proc/sys, the value that forbids namespaces, and the fix."""
_CONTAINERS = (".dockerenv", "run/.containerenv")


class Impossible(Exception):
    """Raised if a sandbox is not possible on this machine."""


def why(error: OSError, root: Path = Path("/")) -> str:
    """Return the fix for this refusal of the kernel."""
    if sys.platform != "linux":
        return "namespaces are a feature of Linux"
    for switch, forbids, advice in _SWITCHES:
        if _value(root / "proc/sys" / switch) == forbids:
            return advice
    if any((root / sign).exists() for sign in _CONTAINERS):
        return f"this container may not create namespaces ({_error_text(error)}): start it with --privileged"
    if error.errno in (errno.EPERM, errno.EACCES):
        return f"namespaces are not allowed here ({_error_text(error)}): use sudo, or allow user namespaces"
    if error.errno == errno.ENOSPC:
        return "there are too many namespaces already: raise the limits below /proc/sys/user"
    return f"namespaces cannot be created here ({_error_text(error)})"


def _error_text(error: OSError) -> str:
    return f"{error.filename or 'the kernel'}: {error.strerror}"


def _value(switch: Path) -> str:
    try:
        return switch.read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return ""
