"""Seccomp filter of containers: setgroups succeeds without an effect.

A container has one user and one group, and the kernel forbids setgroups there. Programs such as sshd call it before
they start a shell, and exit if it fails.
"""

import os
import platform
import struct

SETGROUPS = {"x86_64": (0xC000003E, 116), "aarch64": (0xC00000B7, 159)}
"""Machine -> its audit architecture, and the number of setgroups. Source: Linux, audit.h and unistd.h."""

_LOAD_WORD, _JUMP_IF_EQUAL, _RETURN = 0x20, 0x15, 0x06
_NUMBER_AT, _ARCHITECTURE_AT = 0, 4
"""Offsets in the kernel's seccomp_data."""
_ALLOW, _RETURN_ZERO = 0x7FFF0000, 0x00050000


def program(machine: str) -> bytes:
    """Return the filter as BPF instructions; on a machine that is not in SETGROUPS it allows everything."""
    architecture, setgroups = SETGROUPS.get(machine, (0, 0))
    instructions = (
        (_LOAD_WORD, 0, 0, _ARCHITECTURE_AT),
        (_JUMP_IF_EQUAL, 0, 2, architecture),
        (_LOAD_WORD, 0, 0, _NUMBER_AT),
        (_JUMP_IF_EQUAL, 1, 0, setgroups),
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _RETURN_ZERO),
    )
    return b"".join(struct.pack("HBBI", *instruction) for instruction in instructions)


def opened() -> int:
    """Return a file to read the filter of this machine from, which the caller closes."""
    reader, writer = os.pipe()
    with os.fdopen(writer, "wb") as pipe:
        pipe.write(program(platform.machine()))
    return reader
