"""A guest of 512 bytes: it greets on the serial line, prints a line at each tick, and obeys the power button."""

GREETING = b"climate: a guest of one sector\r\nclimate: boot finished\r\n"

_CODE = bytes.fromhex(
    "fa 31c0 8ed8 8ed0 bc007c"  # no interrupts yet, no segments, the stack below this code
    "ba0206 b80001 ef fb"  # port 0x602: the power button is to be told of
    "be4a7c"  # the greeting, up to its zero, to port 0x3f8:
    "ac 84c0 7406 baf803 ee ebf5"
    "f4"  # then sleep until the timer ticks, 18 times a second;
    "ba0006 ed f6c401 750e"  # port 0x600: was the button pressed?
    "baf803 b02e ee b00d ee b00a ee ebe8"  # no: print a dot and a new line, sleep again
    "ba0406 b80020 ef f4 ebfd"  # yes: power off by port 0x604
)
_GREETING_AT = 0x4A


def image() -> bytes:
    """The disk."""
    code = _CODE.ljust(_GREETING_AT, b"\x90")
    assert len(code) == _GREETING_AT
    return (code + GREETING + b"\0").ljust(510, b"\0") + b"\x55\xaa"
