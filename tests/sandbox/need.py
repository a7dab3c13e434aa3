"""bubblewrap for the tests: skip where the machine cannot have a sandbox, fail where only Quintet cannot make one."""

import os
import shutil
import subprocess
import sys

import pytest

from quintet.errors import SandboxError
from quintet.sandbox.bubblewrap import PROGRAM, find_bubblewrap


def need_bubblewrap() -> None:
    """Skip if this machine cannot make namespaces, as in a plain container. On CI, bubblewrap has to be there."""
    if not sys.platform.startswith("linux"):
        pytest.skip("there are sandboxes on Linux only")
    if shutil.which(PROGRAM) is None and "CI" not in os.environ:
        pytest.skip("no sandbox can be made on this machine: bubblewrap is not installed")
    try:
        find_bubblewrap()
    except SandboxError as error:
        if _can_make_namespaces():
            pytest.fail(f"these tests need bubblewrap: {error.found}; {error.fix}", pytrace=False)
        pytest.skip(f"no sandbox can be made on this machine: {error.found}")


def _can_make_namespaces() -> bool:
    """Ask bubblewrap itself, without Quintet's code; a bubblewrap that is missing does not tell."""
    simplest = (PROGRAM, "--unshare-user", "--unshare-pid", "--ro-bind", "/", "/", "--proc", "/proc", "true")
    try:
        return subprocess.run(simplest, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return True
