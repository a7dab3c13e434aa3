"""Every scenario of the seeds has a test, and every test that names a scenario names one that is there."""

from functools import cache

import pytest

from tests.conftest import pytest_cmdline_main
from tests.scenarios import OVERRULED, SCENARIOS, marked

pytestmark = pytest.mark.slow
found = cache(marked)
"""reads all tests once"""

KNOWN = {(document, name) for document, names in SCENARIOS.items() for name in names}


def test_every_scenario_has_a_test() -> None:
    assert sorted(KNOWN - found().keys()) == []


def test_every_marker_and_every_overruled_entry_names_a_scenario() -> None:
    assert sorted(found().keys() - KNOWN) == []
    assert OVERRULED.keys() <= KNOWN
    assert all(OVERRULED.values())


def test_no_scenario_is_listed_twice() -> None:
    assert len(KNOWN) == sum(map(len, SCENARIOS.values()))


def test_pytest_lists_the_scenarios_and_runs_nothing(
    capsys: pytest.CaptureFixture[str], pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert pytest_cmdline_main(pytestconfig) is None
    monkeypatch.setattr(pytestconfig.option, "scenarios", True)
    monkeypatch.setattr("tests.scenarios.marked", found)
    assert pytest_cmdline_main(pytestconfig) == 0
    said = capsys.readouterr().out
    for (document, name), tests in found().items():
        assert f"{document}  {name}" in said
        assert all(test in said for test in tests)
    assert "overruled: FAIL goes to the programmer" in said
