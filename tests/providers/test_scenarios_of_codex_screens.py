"""Scenarios of the seeds about the screen of Codex."""

import pytest

from quintet.api.status import AT_REST, TerminalStatus
from quintet.providers.codex.screen import ACTIVE_WORK_UI_PATTERN, USER_PREFIX_PATTERN, read_screen
from quintet.providers.screen import Screen

IDLE_PROMPT = "› Write tests for @filename\n\n  ? for shortcuts                   100% context left\n"


@pytest.mark.scenario("003", "Narrative keyword does not block idle detection")
def test_narrative_keyword_does_not_block_idle_detection() -> None:
    answer = "• You asked me to stop running commands, so I am working and executing no more.\n\n"
    assert read_screen(Screen(f"› stop\n\n{answer}{IDLE_PROMPT}")) in AT_REST


@pytest.mark.parametrize("sign", ["• Working (7s • esc to interrupt)", "• Exploring\n  └ Read parser.py"])
@pytest.mark.scenario("003", "Active work UI correctly blocks idle detection")
def test_active_work_ui_correctly_blocks_idle_detection(sign: str) -> None:
    earlier_turn = "› first\n\n• Done.\n\n"
    assert ACTIVE_WORK_UI_PATTERN.search(sign)
    assert read_screen(Screen(f"{earlier_turn}› second\n\n{sign}\n\n\n{IDLE_PROMPT}")) is TerminalStatus.PROCESSING


@pytest.mark.parametrize("sign", ["• Working (7s • esc to interrupt)", "• Exploring", "press esc to interrupt"])
def test_active_work_ui_counts_only_where_codex_draws_it(sign: str) -> None:
    """SPEC.md: in the live row above the composer, not inside an answer that quotes it."""
    answer = f"• The manual shows:\n\n  {sign}\n\n"
    assert read_screen(Screen(f"› what does it show?\n\n{answer}{IDLE_PROMPT}")) is TerminalStatus.COMPLETED


@pytest.mark.scenario("003", 'Narrative "exploring" does not block idle detection')
def test_narrative_exploring_does_not_block_idle_detection() -> None:
    narrative = "I was exploring the codebase"
    assert not ACTIVE_WORK_UI_PATTERN.search(narrative)
    assert read_screen(Screen(f"› look\n\n• {narrative}.\n\n{IDLE_PROMPT}")) in AT_REST


@pytest.mark.scenario("003", "USER_PREFIX_PATTERN does not match across newlines")
def test_user_prefix_pattern_does_not_match_across_newlines() -> None:
    assert not USER_PREFIX_PATTERN.search("›\n100% context left")
    assert not USER_PREFIX_PATTERN.search("› \t\n  100% context left")
    assert USER_PREFIX_PATTERN.search("› Reply with READY")
    assert USER_PREFIX_PATTERN.search("›\tReply with READY")


@pytest.mark.scenario("003", "Standalone chevron prompt not misdetected as user input")
def test_standalone_chevron_prompt_not_misdetected_as_user_input() -> None:
    lone = "›\n100% context left\n"
    assert not USER_PREFIX_PATTERN.search(lone)
    assert read_screen(Screen(lone)) is TerminalStatus.IDLE
    assert read_screen(Screen(f"• READY\n\n{lone}")) is TerminalStatus.COMPLETED


@pytest.mark.scenario("003", "Standalone chevron with prior assistant produces completed")
def test_standalone_chevron_with_prior_assistant_produces_completed() -> None:
    screen = Screen("› Reply with READY\n\n• READY\n\n›\n\n  ? for shortcuts          100% context left\n")
    assert read_screen(screen) is TerminalStatus.COMPLETED
