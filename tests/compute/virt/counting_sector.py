"""A guest of 512 bytes that counts on its disk: at each tick it writes the next number, then prints it in hexadecimal.

The number N is the beginning of sector 1 + N % 2048; all sectors behind those are random, and stay as they are.
"""

import hashlib
import random
import re
import struct
import subprocess
from pathlib import Path

GREETING = b"climate: boot finished\r\n"
SECTORS = 2048

_CODE = bytes.fromhex(
    "fa 31c0 8ed8 8ed0 bc007c"  # no interrupts yet, no segments, the stack below this code
    "66c706008000000000 fb"  # the counter at 0x8000 is 0
    "be907c ac 84c0 7406 baf803 ee ebf5"  # the greeting, up to its zero, to port 0x3f8
    "f4 66ff060080"  # sleep until the timer ticks, 18 times a second; count
    "66a10080 6625ff070000 6640 66a3887c"  # the sector: 1 + the counter modulo 2048
    "be807c b80043 b280 cd13"  # have the BIOS write it, as the packet at 0x7c80 says
    "baf803 721e"  # a failure is printed as an exclamation mark;
    "66a10080 b90800"  # else the counter, in eight digits
    "66c1c004 6650 240f 0430 3c39 7602 0427 ee 6658 e2eb eb03"
    "b021 ee b00d ee b00a ee ebb2"  # a new line, and again
)
_PACKET_AT, _GREETING_AT = 0x80, 0x90
_PACKET = struct.pack("<BBHHHQ", 16, 0, 1, 0x8000, 0, 0)


def image(random_mb: int) -> bytes:
    """The disk: the sector of the guest, those that it writes, and so many MB that it does not."""
    code = _CODE.ljust(_PACKET_AT, b"\x90") + _PACKET
    sector = (code + GREETING + b"\0").ljust(510, b"\0") + b"\x55\xaa"
    assert code[_PACKET_AT:] == _PACKET
    assert len(code) == _GREETING_AT
    return sector + bytes(512 * SECTORS) + random.Random(random_mb).randbytes(random_mb << 20)


def printed(console: str) -> list[int]:
    """The numbers that the guest has printed; its last line may not be whole."""
    return [int(line, 16) for line in re.findall(r"^([0-9a-f]{8})\r?$", console, re.MULTILINE)]


def check(disk: Path, console: str, random_mb: int) -> None:
    """Raise AssertionError unless the disk has all that was printed, and is whole behind it."""
    numbers = printed(console)
    assert numbers == list(range(1, len(numbers) + 1)), "the guest has lost count"
    assert "!" not in console
    raw = disk.with_suffix(".raw")
    subprocess.run(["qemu-img", "convert", "-O", "raw", str(disk), str(raw)], check=True, timeout=60)
    with raw.open("rb") as file:
        written = file.read(512 * (SECTORS + 1))
        rest = file.read(random_mb << 20)
    raw.unlink()
    last = numbers[-1]
    for number in range(max(1, last - SECTORS + 2), last + 1):
        at = 512 * (1 + number % SECTORS)
        assert struct.unpack_from("<I", written, at) == (number,), f"number {number} is not on the disk"
    expected = image(random_mb)[512 * (SECTORS + 1) :]
    assert hashlib.sha256(rest).digest() == hashlib.sha256(expected).digest(), "the disk is not whole"
