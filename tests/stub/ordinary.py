"""Permissions that bind, also where the tests run as root."""

import sys


def without_root_powers() -> list[str]:
    """A prefix of a command under which root is an ordinary user before the file system, and so is all it starts."""
    code = (
        "import ctypes, os, sys\n"
        "drop = lambda cap: ctypes.CDLL(None, use_errno=True).prctl(24, cap, 0, 0, 0)\n"
        "assert os.geteuid() or not any(map(drop, (1, 2))), 'capabilities cannot be dropped'\n"
        "os.execv(sys.argv[1], sys.argv[1:])\n"
    )
    return [sys.executable, "-c", code]
