"""No scenario of the seeds is forgotten, and no test or entry is about something that is none."""

import ast
import re
from pathlib import Path

from tests.spec.scenarios import BESIDE, NOT_YET, OVERRULED, SCENARIOS

KNOWN = {(document, name) for document, names in SCENARIOS.items() for name in names}
NAMED = re.compile(r"test_\d\d\d_")


def function_name(document: str, scenario: str) -> str:
    return f"test_{document}_{re.sub(r'[^a-z0-9]+', '_', scenario.lower()).strip('_')}"


def written() -> set[str]:
    """The tests of this folder that are named after a document."""
    trees = (ast.parse(path.read_text(encoding="utf-8")) for path in Path(__file__).parent.glob("test_*.py"))
    functions = (node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
    return {function.name for function in functions if NAMED.match(function.name)}


def test_every_scenario_has_a_test_or_an_entry() -> None:
    named = written()
    entries = OVERRULED.keys() | NOT_YET.keys()
    assert sorted(key for key in KNOWN - entries if function_name(*key) not in named) == []


def test_what_is_not_yet_there_has_no_test() -> None:
    named = written()
    assert sorted(key for key in NOT_YET if function_name(*key) in named) == []
    assert not OVERRULED.keys() & NOT_YET.keys()


def test_every_entry_and_every_test_names_a_scenario() -> None:
    assert (OVERRULED.keys() | NOT_YET.keys()) <= KNOWN
    names = {function_name(*key) for key in KNOWN | BESIDE.keys()}
    assert sorted(written() - names) == []
    assert all([*OVERRULED.values(), *NOT_YET.values(), *BESIDE.values()])


def test_no_two_scenarios_share_a_name() -> None:
    assert len({function_name(*key) for key in KNOWN}) == sum(map(len, SCENARIOS.values()))
