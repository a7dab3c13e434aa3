"""Every scenario of the five seed documents (002 has none); a test names its scenario with `pytest.mark.scenario`."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

SCENARIOS: dict[str, tuple[str, ...]] = {
    "000": (
        "Each role resolves to the correct file",
        "Stale file from previous run exists",
        "No stale file exists",
        "Directory does not exist",
        "Agent writes response file and terminal becomes idle",
        "Agent ignores file instruction but terminal finishes (default mode)",
        "Agent ignores file instruction but terminal finishes (strict mode)",
        "Terminal enters error state",
        "Timeout with terminal still processing",
        "Analyst prompt includes file instruction",
        "All five agent roles have file instructions",
        "Normal send-and-wait flow",
    ),
    "001": (
        "Default configuration matches shell script",
        "Create session returns terminal ID and session name",
        "Send input to terminal",
        "Approved with sufficient analyst evidence on cycle 2",
        "Approved rejected on cycle 1",
        "Approved rejected with insufficient evidence",
        "Approved without evidence when evidence check disabled",
        "Review notes condensation",
        "Test evidence condensation",
        "First send includes full summary",
        "Repeat send returns condensed",
        "Analyst prompt structure",
        "Programmer prompt condenses upstream on repeat",
        "State roundtrip",
        "Invalid round in state file defaults to 1",
        "Invalid phase in state file defaults to analyst",
        "PASS exits with code 0",
        "FAIL loops back to analyst",
        "MAX_ROUNDS exhausted exits with code 1",
        "Missing analyst output falls back to analyst phase",
        "SIGINT saves state",
        "Cleanup exits terminals when enabled",
        "New run creates 5 terminals",
        "Resume with unreachable terminal fails",
        "Auto-resume when state file has RUNNING status",
        "No auto-resume when state file has PASS status",
        "No auto-resume when state file has FAIL status",
        "No auto-resume when no state file exists",
    ),
    "003": (
        "Agent writes response file and terminal becomes idle",
        "Startup guard blocks premature grace timer",
        "Agent starts processing and then completes",
        "Startup timeout releases guard",
        "Response file appears during startup guard",
        "Agent ignores file instruction but terminal finishes (default mode)",
        "Agent ignores file instruction but terminal finishes (strict mode)",
        "Terminal enters error state",
        "Timeout with terminal still processing",
        "waiting_user_answer counts as agent started",
        "Idle grace resets on processing observation",
        "Narrative keyword does not block idle detection",
        "Active work UI correctly blocks idle detection",
        'Narrative "exploring" does not block idle detection',
        "USER_PREFIX_PATTERN does not match across newlines",
        "Standalone chevron prompt not misdetected as user input",
        "Standalone chevron with prior assistant produces completed",
    ),
    "004": (
        "Default configuration matches shell script",
        "Config file values apply when env vars absent",
        "Default start agent is analyst",
        "Post-processing defaults to disabled",
        "Post-processing enabled via env var",
        "Create session with explicit provider",
        "Create terminal with explicit provider",
        "Send input to terminal",
        "New run creates 5 terminals with per-agent providers",
        "Fresh run starts from programmer role",
        "Fresh run starts from peer analyst role",
        "Fresh run starts from peer programmer role",
        "Fresh run starts from tester role",
        "First-dispatch peer analyst uses placeholder when upstream is missing",
        "First-dispatch peer programmer uses placeholder when upstream is missing",
        "Terminal renamed after creation",
        "Peer analyst terminal renamed with underscore format",
        "Rename failure is non-fatal",
        "Partial creation failure cleans up",
        "Resume with unreachable terminal fails",
        "Resume with provider mismatch logs warning",
        "Resume ignores start agent override",
        "Analyst prompt structure on round 1",
        "Analyst prompt on retry round uses explore-then-ff",
        "Programmer prompt condenses upstream on repeat",
        "Programmer prompt on retry round uses test failure context",
        "State roundtrip with per-agent providers",
        "Loading old-format state file",
        "Invalid round in state file defaults to 1",
        "Invalid phase in state file defaults to analyst",
    ),
}

OVERRULED: dict[tuple[str, str], str] = {
    ("000", "Stale file from previous run exists"): "a stale file is moved to the archive, not deleted",
    ("000", "Agent writes response file and terminal becomes idle"): "the file is archived (003), not deleted",
    ("000", "Agent ignores file instruction but terminal finishes (default mode)"): "idle grace, not the timeout (003)",
    ("000", "Agent ignores file instruction but terminal finishes (strict mode)"): "idle grace, not the timeout (003)",
    ("000", "Timeout with terminal still processing"): "the same scenario of 003 stands",
    ("001", "FAIL loops back to analyst"): "FAIL goes to the programmer of the next round (004)",
    ("001", "Create session returns terminal ID and session name"): "with the provider as an argument (004)",
    ("001", "State roundtrip"): "with the terminals format of 004",
    ("001", "Test evidence condensation"): "with a cap of its own, MAX_TEST_EVIDENCE_LINES",
    (
        "003",
        "Active work UI correctly blocks idle detection",
    ): "where the CLI draws it, not in an answer that quotes it",
}
"""scenarios that the specification overrules, each with what stands instead; their tests check that"""

TESTS: Final = Path(__file__).parent


def marked() -> dict[tuple[str, str], list[str]]:
    """By scenario the tests that name it, as `file::function`, found in the source of all tests."""
    found: dict[tuple[str, str], list[str]] = {}
    for path in sorted(TESTS.rglob("test_*.py")):
        for function in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(function, ast.FunctionDef):
                continue
            for mark in function.decorator_list:
                if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.scenario":
                    document, name = (ast.literal_eval(argument) for argument in mark.args)
                    test = f"{path.relative_to(TESTS.parent)}::{function.name}"
                    found.setdefault((document, name), []).append(test)
    return found


def listing() -> Iterator[str]:
    """One line for each scenario, and below it one for each of its tests."""
    tests = marked()
    for document, names in SCENARIOS.items():
        for name in names:
            reason = OVERRULED.get((document, name))
            yield f"{document}  {name}{f'  (overruled: {reason})' if reason else ''}"
            yield from (f"       {test}" for test in tests.get((document, name), ["no test"]))
