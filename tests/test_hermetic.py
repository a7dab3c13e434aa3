"""No test asks the machine's own folders for a program: what is installed there must not decide how it ends."""

import re
from pathlib import Path

TESTS = Path(__file__).parent
REAL = {TESTS / "e2e", TESTS / "browser"}
"""they drive programs of the machine"""


def test_no_test_has_a_path_with_the_machines_programs() -> None:
    files = (path for path in TESTS.rglob("*.py") if REAL.isdisjoint(path.parents))
    named = [path for path in files if re.search(r"/usr/bin(:|\", \"/bin)", path.read_text(encoding="utf-8"))]
    assert [path for path in named if path.name not in ("test_hermetic.py", "test_commands.py")] == []
