"""Every scenario of the seeds has a test, and every test that names a scenario names one that is there."""

import os
import subprocess
import sys

from tests.docs.pages import ROOT
from tests.scenarios import OVERRULED, SCENARIOS, marked

KNOWN = {(document, name) for document, names in SCENARIOS.items() for name in names}


def test_every_scenario_has_a_test() -> None:
    assert sorted(KNOWN - marked().keys()) == []


def test_every_marker_and_every_overruled_entry_names_a_scenario() -> None:
    assert sorted(marked().keys() - KNOWN) == []
    assert OVERRULED.keys() <= KNOWN
    assert all(OVERRULED.values())


def test_no_scenario_is_listed_twice() -> None:
    assert len(KNOWN) == sum(map(len, SCENARIOS.values()))


def test_pytest_lists_the_scenarios_with_their_tests() -> None:
    command = [sys.executable, "-m", "pytest", "--scenarios", "-p", "no:cacheprovider"]
    env = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    for (document, name), tests in marked().items():
        assert f"{document}  {name}" in done.stdout
        assert all(test in done.stdout for test in tests)
    assert "overruled: FAIL goes to the programmer" in done.stdout
    assert "passed" not in done.stdout, "nothing is run"
