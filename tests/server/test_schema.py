"""schemathesis, with all its checks, over everything that OpenAPI says of the server."""

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import settings

from tests.server.rig import Rig

CONFIG = """
headers = {{ Authorization = "Bearer {token}" }}
[parameters]
"query.provider" = "scripted"
"query.agent_profile" = "programmer"
"query.working_directory" = "{wd}"
"query.args" = []
"query.defer_init" = true
[checks]
positive_data_acceptance.expected-statuses = ["2xx", 400, 404, 409]
[[operations]]
include-path = "/terminals/{{terminal_id}}/input"
checks.positive_data_acceptance.expected-statuses = ["2xx", 400, 404, 409, 422]
"""
MANY_EXAMPLES = 50
"""with fewer, random requests find less than the systematic ones, and start as many agents"""


@pytest.mark.hypothesis  # so that `make fuzz` runs it too, with more examples
def test_the_server_keeps_its_word(own_rig: Rig) -> None:
    rig = own_rig
    examples = settings().max_examples // 5
    config = rig.root / "schemathesis.toml"
    config.write_text(CONFIG.format(token=rig.server.token, wd=rig.wd), encoding="utf-8")
    command = [str(Path(sys.executable).parent / "st"), "--config-file", str(config), "run", "--checks", "all"]
    options = ["--max-examples", str(examples), "--seed", "1", "--exclude-path", "/events", "--request-timeout", "20"]
    if examples < MANY_EXAMPLES:
        options += ["--phases", "coverage,stateful"]
    done = subprocess.run(
        [*command, *options, f"{rig.server.url}/openapi.json"],
        capture_output=True, text=True, check=False, cwd=rig.root, timeout=60 * examples,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-6000:]
