"""The host stays small: what it loads."""

import subprocess
import sys

HEAVY = ("pydantic", "fastapi", "psutil", "httpx", "rich", "asyncio", "click")


def test_the_host_loads_no_large_library() -> None:
    code = "import sys, quintet.providers.acp.host; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert "quintet.providers.acp.view" in loaded
    assert [name for name in HEAVY if name in loaded] == []
