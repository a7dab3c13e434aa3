"""bubblewrap for the tests: one clear line where it is missing."""

import sys

import pytest

from quintet.errors import SandboxError
from quintet.sandbox.bubblewrap import find_bubblewrap


def need_bubblewrap() -> None:
    """Fail where no sandbox can be made on this machine, although its system has them."""
    if not sys.platform.startswith("linux"):
        pytest.skip("there are sandboxes on Linux only")
    try:
        find_bubblewrap()
    except SandboxError as error:
        pytest.fail(f"these tests need bubblewrap: {error.found}; {error.fix}", pytrace=False)
