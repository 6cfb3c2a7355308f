"""The filter of containers is valid on each machine; what it does is tested with a container."""

import os
import struct

import pytest

from climate.compute.virt.containers import seccomp_filter

ALLOW, ZERO = 0x7FFF0000, 0x00050000


def answer(program: bytes, architecture: int, number: int) -> int:
    """What the kernel would do with a system call."""
    data, at, word = {4: architecture, 0: number}, 0, 0
    instructions = list(struct.iter_unpack("HBBI", program))
    while True:
        code, jump, other, value = instructions[at]
        at += 1
        if code == 0x20:
            word = data[value]
        elif code == 0x15:
            at += jump if word == value else other
        else:
            return int(value)


@pytest.mark.parametrize("machine", seccomp_filter.SETGROUPS)
def test_setgroups_alone_is_answered_without_the_kernel(machine: str) -> None:
    architecture, setgroups = seccomp_filter.SETGROUPS[machine]
    program = seccomp_filter.program(machine)
    assert answer(program, architecture, setgroups) == ZERO
    assert answer(program, architecture, setgroups + 1) == ALLOW
    assert answer(program, architecture ^ 1, setgroups) == ALLOW


def test_a_machine_that_is_not_listed_may_do_everything() -> None:
    assert answer(seccomp_filter.program("mips"), 0xC0000008, 116) == ALLOW


def test_the_filter_is_read_to_its_end() -> None:
    with os.fdopen(seccomp_filter.opened(), "rb") as file:
        content = file.read()
    assert len(content) == 6 * struct.calcsize("HBBI")
