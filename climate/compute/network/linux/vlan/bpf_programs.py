"""Two eBPF programs that add and remove VLAN tags, loaded by bpf(2).

They replace 802.1Q interfaces on kernels without them. Attached to traffic control, each redirects frames to the
target interface.
"""

import ctypes
import errno
import os
import platform
import socket
import struct

_CALLS = {"x86_64": 321, "aarch64": 280, "riscv64": 280}
_PROG_LOAD, _SCHED_CLS = 5, 3
_TAG = 0x8100
_SHOT, _GO_ON = 2, -1
_VLAN_PUSH, _VLAN_POP, _REDIRECT = 18, 19, 23
_PRESENT, _TCI, _PROTOCOL = 20, 24, 28
"""Offset of the outermost VLAN tag in struct __sk_buff."""

_ATTRIBUTES = struct.Struct("=IIQQIIQII16s")


def pushing(vlan: int, to: int) -> int:
    """Load a program that tags frames and redirects them to interface `to`; return its file descriptor.

    Tagged frames are dropped, so that a guest cannot enter another VLAN by tagging frames itself.
    """
    drop = [_move(0, _SHOT), _exit()]
    push = [_copy(1, 6), _move(2, socket.htons(_TAG)), _move(3, vlan), _call(_VLAN_PUSH)]
    hand = _handing_on(to)
    return _load(
        [
            _copy(6, 1),
            _field(2, _PRESENT),
            _unless_equal(2, 0, len(push) + 1 + len(hand)),
            *push,
            _unless_equal(0, 0, len(hand)),
            *hand,
            *drop,
        ]
    )


def popping(vlan: int, to: int) -> int:
    """Load a program that removes the tag of one VLAN and redirects to interface `to`; return its file descriptor.

    Other frames continue to the next filter.
    """
    hand = _handing_on(to)
    drop, go_on = [_move(0, _SHOT), _exit()], [_move(0, _GO_ON), _exit()]
    pop = [_copy(1, 6), _call(_VLAN_POP), _unless_equal(0, 0, len(hand)), *hand, *drop]
    # Each failed test jumps past all later instructions.
    mine = [_field(2, _TCI), _and(2, 0xFFF), _unless_equal(2, vlan, len(pop))]
    tagged = [_field(2, _PROTOCOL), _unless_equal(2, socket.htons(_TAG), len(mine) + len(pop))]
    present = [_field(2, _PRESENT), _unless_equal(2, 1, len(tagged) + len(mine) + len(pop))]
    return _load([_copy(6, 1), *present, *tagged, *mine, *pop, *go_on])


def _handing_on(to: int) -> list[bytes]:
    return [_move(1, to), _move(2, 0), _call(_REDIRECT), _exit()]


def _move(register: int, value: int) -> bytes:
    return struct.pack("=BBhi", 0xB7, register, 0, value)


def _copy(register: int, source: int) -> bytes:
    return struct.pack("=BBhi", 0xBF, source << 4 | register, 0, 0)


def _field(register: int, offset: int) -> bytes:
    """Return the instruction that loads 32 bits at an offset from register 6."""
    return struct.pack("=BBhi", 0x61, 6 << 4 | register, offset, 0)


def _and(register: int, value: int) -> bytes:
    return struct.pack("=BBhi", 0x57, register, 0, value)


def _unless_equal(register: int, value: int, over: int) -> bytes:
    return struct.pack("=BBhi", 0x55, register, over, value)


def _call(function: int) -> bytes:
    return struct.pack("=BBhi", 0x85, 0, 0, function)


def _exit() -> bytes:
    return struct.pack("=BBhi", 0x95, 0, 0, 0)


def _load(instructions: list[bytes]) -> int:
    """Load a program and return its file descriptor, which the caller closes. Raise OSError with the
    verifier's reason.
    """
    number = _CALLS.get(platform.machine())
    if number is None:
        raise OSError(errno.ENOSYS, f"bpf(2) is not supported on {platform.machine()}")
    code = ctypes.create_string_buffer(b"".join(instructions))
    licence = ctypes.create_string_buffer(b"Apache-2.0")
    here, under = ctypes.addressof(code), ctypes.addressof(licence)
    words = _ATTRIBUTES.pack(_SCHED_CLS, len(instructions), here, under, 0, 0, 0, 0, 0, b"climate")
    attributes = ctypes.create_string_buffer(words)
    handle = ctypes.CDLL(None, use_errno=True).syscall(number, _PROG_LOAD, attributes, len(words))
    if handle < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return int(handle)
