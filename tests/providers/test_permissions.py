"""What a yes may be said to: every recorded approval, and nothing else that an agent asks."""

import pytest

from quintet.providers.base import Provider
from quintet.providers.claude_code.provider import PROVIDER as CLAUDE
from quintet.providers.codex.provider import PROVIDER as CODEX
from quintet.providers.screen import Screen
from tools.screens import load

RULE = "─" * 60


@pytest.mark.parametrize(("cli", "provider"), [("codex", CODEX), ("claude", CLAUDE)])
def test_the_recorded_approvals_are_permissions_and_nothing_else_is(cli: str, provider: Provider) -> None:
    recordings = load(cli)
    asking = [recording for recording in recordings if recording.state_label == "waiting_user_answer"]
    wanted = {recording.name for recording in asking if recording.scenario.startswith("approval_")}
    assert {recording.name for recording in recordings if provider.is_permission(recording.frame)} == wanted
    assert len(wanted) > 100


def screen(*rows: str) -> Screen:
    return Screen("\n".join(rows), command="agent")


CLAUDE_EDIT = (
    "● Update(a.py)",
    RULE,
    " Edit file",
    " Do you want to make this edit to",
    " a_very_long_name_that_takes_a_row_of_its_own.py?",
    "   1. Yes",
    " ❯ 2. No",
    "",
    " Esc to cancel · Tab to amend",
)
CLAUDE_FETCH = (
    RULE,
    " Fetch",
    "   https://example.org",
    "",
    " Do you want to allow Claude to fetch this content?",
    " ❯ 1. Yes",
    "   2. No, and tell Claude what to do differently (esc)",
)
CODEX_NETWORK = (
    '  Do you want to approve network access to "example.org"?',
    "",
    "› 1. Yes, just this once (y)",
    "  2. No, and tell Codex what to do differently (esc)",
    "",
    "  Press enter to confirm or esc to cancel",
)


@pytest.mark.parametrize(("provider", "rows"), [(CLAUDE, CLAUDE_EDIT), (CLAUDE, CLAUDE_FETCH), (CODEX, CODEX_NETWORK)])
def test_other_leave_to_do_one_thing(provider: Provider, rows: tuple[str, ...]) -> None:
    assert provider.is_permission(screen(*rows))


PLAN = (
    RULE,
    " Ready to code?",
    " Here is Claude's plan:",
    " Do you want to proceed? is what it asks",
    " Would you like to proceed?",
    " ❯ 1. Yes, and auto-accept edits",
    "   2. Yes, and manually approve edits",
    "   3. No, keep planning",
)
QUESTION = (
    RULE,
    " ☐ Go on",
    "Do you want to proceed?",
    "❯ 1. Yes",
    "     With all of it",
    "  2. No",
    "  3. Type something.",
    "Enter to select · ↑/↓ to navigate · Esc to cancel",
)
API_KEY = (
    RULE,
    " Detected a custom API key in your environment",
    " Do you want to use this API key?",
    "   1. Yes",
    " ❯ 2. No (recommended)",
    " Enter to confirm · Esc to cancel",
)
CODEX_QUESTION = (
    "  Question 1/1 (1 unanswered)",
    "  Shall it be so?",
    "",
    "  › 1. Yes, proceed (y)  With all of it.",
    "    2. No",
    "",
    "  tab to add notes | enter to submit answer | esc to interrupt",
)
CODEX_MODELS = (
    "  Select Model",
    "",
    "› 1. one (current)",
    "  2. two",
    "",
    "  Press enter to confirm or esc to go back",
)
ANSWER = ("• It asked:", "  1. Yes, proceed (y)", "", "› Ask Codex to do anything", "", "  100% context left")


@pytest.mark.parametrize(
    ("provider", "rows"),
    [(CLAUDE, PLAN), (CLAUDE, QUESTION), (CLAUDE, API_KEY), (CODEX, CODEX_QUESTION), (CODEX, CODEX_MODELS),
     (CODEX, ANSWER)],
)  # fmt: skip
def test_what_only_the_user_can_answer(provider: Provider, rows: tuple[str, ...]) -> None:
    assert not provider.is_permission(screen(*rows))
