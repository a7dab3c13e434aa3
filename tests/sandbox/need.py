"""bubblewrap for the tests: one clear line where it is missing."""

import os
import shutil
import sys

import pytest

from quintet.errors import SandboxError
from quintet.sandbox.bubblewrap import PROGRAM, find_bubblewrap


def need_bubblewrap() -> None:
    """Skip if this machine cannot make a sandbox, as in a plain container. On CI, a missing bubblewrap is a failure."""
    if not sys.platform.startswith("linux"):
        pytest.skip("there are sandboxes on Linux only")
    try:
        find_bubblewrap()
    except SandboxError as error:
        if shutil.which(PROGRAM) is None and "CI" in os.environ:
            pytest.fail(f"these tests need bubblewrap: {error.found}; {error.fix}", pytrace=False)
        pytest.skip(f"no sandbox can be made on this machine: {error.found}")
