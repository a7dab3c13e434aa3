"""What tests see of the machine: a home without settings, the programs they name, one locale, one time zone.

Nothing else of the machine decides how a test ends: neither an agent CLI or `gh` that happens to be installed, nor the
user's git and tmux configuration, nor the umask, nor which signals are ignored.
"""

import atexit
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

_PROGRAMS: Final = """
awk basename bash bwrap cat chmod cmp cp cut date dd diff dirname echo env expr false find flock getconf git
grep gzip head id kill less ln ls mkdir mkfifo mktemp mount mv nice nohup od patch printf ps pwd readlink
realpath rm rmdir script sed seq setpriv setsid sh sha256sum sleep sort stat stty tail tar tee test timeout
tmux touch tput tr true truncate umount uname wc which xargs yes
"""
_KEPT: Final = ("CI", "TMPDIR", "USER", "LOGNAME")
_KEPT_BEGINNINGS: Final = ("COVERAGE_", "PYTEST_", "HYPOTHESIS_")
_LONG: Final = 30
"""characters of a folder for temporary files, above which the paths of sockets in it may be too long"""
_MACHINE: Final = "QUINTET_TESTS_MACHINE"


def enter() -> None:
    """Replace the environment of this process until it ends."""
    machine = machine_environment()
    if len(tempfile.gettempdir()) > _LONG:
        tempfile.tempdir = machine["TMPDIR"] = "/tmp"
    root = Path(tempfile.mkdtemp(prefix="q-"))
    root.chmod(0o755)  # some tests run a program as another user
    shelf, home = root / "bin", root / "home"
    os.umask(0o022)
    shelf.mkdir()
    home.mkdir()
    for name in _PROGRAMS.split():
        if found := shutil.which(name, path=machine.get("PATH", os.defpath)):
            (shelf / name).symlink_to(found)
    (shelf / "python3").symlink_to(Path(sys.executable).resolve())  # without the packages of the tests
    kept = {name: text for name, text in machine.items() if name in _KEPT or name.startswith(_KEPT_BEGINNINGS)}
    kept_machine = root / "machine.json"  # a file: the user's variables are nothing for the programs of tests
    kept_machine.touch(0o600)
    kept_machine.write_text(json.dumps(machine), encoding="utf-8")
    os.environ.clear()
    os.environ.update(kept)
    os.environ |= {
        "PATH": str(shelf),
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "SHELL": "/bin/sh",
        "GIT_CONFIG_NOSYSTEM": "1",
        _MACHINE: str(kept_machine),
    }
    time.tzset()
    for number in (signal.SIGINT, signal.SIGQUIT):  # a shell without job control lets what it starts ignore them
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    atexit.register(_remove, root, os.getpid())


def _remove(root: Path, of: int) -> None:
    if os.getpid() == of:  # not a process that was forked from it
        shutil.rmtree(root, ignore_errors=True)


def find_on_machine(*names: str) -> str | None:
    """Return the path of the first of these programs that the machine has."""
    path = machine_environment().get("PATH", os.defpath)
    return next((found for name in names if (found := shutil.which(name, path=path))), None)


def machine_environment() -> dict[str, str]:
    """Return the environment that the tests were started in, for those that install something real."""
    known = os.environ.get(_MACHINE)  # by the process that started this one
    return json.loads(Path(known).read_text(encoding="utf-8")) if known else dict(os.environ)
