"""Program that binds folders into running containers; a separate process, because it enters their mount namespace.

`python bind_mount_program.py PID FOLDER [SOURCE]` mounts the folder SOURCE of this machine as FOLDER in the mount
namespace of the process PID. Without SOURCE the folder is unmounted. It needs root and a single-threaded process, so
it imports only the standard library.
"""

import ctypes
import os
import sys

_OPEN_TREE, _MOVE_MOUNT, _HERE = 428, 429, -100
_CLONE, _CLOSE_ON_EXEC, _RECURSIVE = 1, 0o2000000, 0x8000
_FROM_FILE, _MOUNT_NAMESPACE, _DETACH = 4, 0x20000, 2


def _call(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def main(pid: int, folder: str, source: str | None) -> None:
    """Mount or unmount in this process, which cannot be used for anything else afterwards. Raise OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    tree = None
    if source is not None:
        flags = _CLONE | _CLOSE_ON_EXEC | _RECURSIVE
        tree = _call(libc.syscall(_OPEN_TREE, _HERE, os.fsencode(source), flags))
    namespace = os.open(f"/proc/{pid}/ns/mnt", os.O_RDONLY)
    _call(libc.setns(namespace, _MOUNT_NAMESPACE))
    place = os.fsencode(folder)
    if tree is None:
        if os.path.ismount(folder):
            _call(libc.umount2(place, _DETACH))
        return
    os.makedirs(folder, mode=0o700, exist_ok=True)
    if not os.path.ismount(folder):
        _call(libc.syscall(_MOVE_MOUNT, tree, b"", _HERE, place, _FROM_FILE))


if __name__ == "__main__":
    try:
        main(int(sys.argv[1]), sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else None)
    except OSError as error:
        sys.exit(error.strerror or str(error))
