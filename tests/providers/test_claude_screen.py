"""The Claude Code reader against every recorded screen, and against changed ones."""

from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quintet.api.status import AT_REST, TerminalStatus
from quintet.providers.claude_code.screen import read_screen
from quintet.providers.screen import Screen
from tests.providers import mutations
from tests.providers.judging import tally
from tests.providers.mutations import Mutation, mutated
from tools.screens import Recording, load

UNDECIDABLE = frozenset({"claude-2.1.63 error_turn/http_400 80x24"})
"""The live row was still painted when the frame was taken; a finished turn called running is the lesser mistake."""


@cache
def recordings() -> tuple[Recording, ...]:
    return tuple(load("claude"))


def test_every_recording_is_read_right_but_for_the_listed_ones() -> None:
    result = tally(read_screen, ((recording, recording.frame) for recording in recordings()))
    assert result.wrong == UNDECIDABLE
    assert not result.called_done


def test_rates_of_the_releases() -> None:
    result = tally(read_screen, ((recording, recording.frame) for recording in recordings()))
    assert len(result.rates) >= 12
    assert min(result.rates.values()) >= 0.99


@pytest.mark.parametrize("mutation", [*mutations.LAYOUT, *mutations.CONTENT])
@pytest.mark.slow
def test_changes_do_not_mislead(mutation: Mutation) -> None:
    result = tally(read_screen, mutated(recordings(), mutation))
    assert result.wrong <= UNDECIDABLE


@pytest.mark.parametrize("mutation", [mutations.title_missing, mutations.command_missing, mutations.both_missing])
@pytest.mark.slow
def test_each_witness_may_be_missing(mutation: Mutation) -> None:
    result = tally(read_screen, mutated(recordings(), mutation))
    assert not result.called_done
    assert min(result.rates.values()) >= 0.99


RULE = "─" * 80
FOOTER = "  ⏵⏵ bypass permissions on (shift+tab to cycle)"


def frame(*above: str, draft: str = "", footer: str = FOOTER, title: str = "", command: str = "claude") -> Screen:
    return Screen("\n".join([*above, RULE, f"❯ {draft}", RULE, footer]), title, command)


def test_the_footer_alone_tells_that_an_answer_streams() -> None:
    busy = frame("❯ go", "", "● First", footer=f"{FOOTER} · esc to…")
    assert read_screen(busy) is TerminalStatus.PROCESSING


def test_a_status_line_of_the_users_own_is_no_footer() -> None:
    ended = frame("❯ go", "", "● Done.", footer=f"  main | press esc to interrupt me\n{FOOTER}", title="✳ Claude Code")
    assert read_screen(ended) is TerminalStatus.COMPLETED
    busy = frame("❯ go", "", "● First", footer="  main | 12 %\n  esc to interrupt", title="✳ Claude Code")
    assert read_screen(busy) is TerminalStatus.PROCESSING


def test_the_title_alone_tells_that_an_answer_streams() -> None:
    for spinner in "⠂⠐◐◑":
        busy = frame("❯ go", "", "● First", draft="and then", title=f"{spinner} Claude Code")
        assert read_screen(busy) is TerminalStatus.PROCESSING


def test_the_end_of_a_turn_looks_like_a_live_row_but_is_none() -> None:
    ended = frame("❯ go", "", "● Done.", "", "✻ Baked for 5s · done 6:16 AM", title="✳ Claude Code")
    assert read_screen(ended) is TerminalStatus.COMPLETED


@pytest.mark.parametrize("live", ["✻ Retrying in 5s", "✻ Pondering...", "✢ Pondering... (3s · esc to interrupt)"])
def test_other_live_rows(live: str) -> None:
    assert read_screen(frame("❯ go", "", live, "", title="✳ Claude Code")) is TerminalStatus.PROCESSING


def test_a_narrow_pane_with_a_still_title_while_an_answer_streams() -> None:
    rule = "─" * 40
    rows = ("● 1. Module pkg/part_01.py keeps the", "     running totals.", "  2.", rule, "❯", rule)
    text = "\n".join([*rows, "  ⏵⏵ bypass permissions on (shift+tab"])
    ended = text.replace("  2.", "✻ Baked for 4s · done 6:16 AM")
    assert read_screen(Screen(text, "✳ Claude Code", "claude", alternate=True)) is TerminalStatus.PROCESSING
    assert read_screen(Screen(ended, "✳ Claude Code", "claude", alternate=True)) is TerminalStatus.COMPLETED


def test_a_draft_takes_the_footer_away_while_an_answer_streams() -> None:
    earlier = ("❯ go", "", "● Done.", "", "✻ Baked for 5s", "", "❯ again", "", "● Some of it", "")
    assert read_screen(frame(*earlier, draft="and then")) is TerminalStatus.PROCESSING
    assert read_screen(frame(*earlier, "✻ Baked for 7s", draft="and then")) is TerminalStatus.COMPLETED
    assert read_screen(frame(*earlier)) is TerminalStatus.COMPLETED


def test_tasks_and_queued_prompts_below_the_live_row() -> None:
    rows = (
        "❯ go",
        "",
        "✶ Fixing the parser… (2m 3s · ↓ 1.2k tokens)",
        "  ⎿  ☐ Write the test",
        "",
        "  ❯ and then this",
        "",
    )
    assert read_screen(frame(*rows)) is TerminalStatus.PROCESSING


def test_a_recap_looks_like_a_live_row_but_is_none() -> None:
    rested = frame("❯ go", "", "● Done.", "", "※ recap: you were fixing the parser… (disable recaps in /config)", "")
    assert read_screen(rested) is TerminalStatus.COMPLETED


def test_a_slash_command_at_the_start_is_no_turn() -> None:
    rows = (" ▐▛███▛█   Claude Code v2.1.325", "", "❯ /rename analyst-1", "  ⎿  Session renamed to: analyst-1", "")
    assert read_screen(frame(*rows)) is TerminalStatus.IDLE


def test_dialogs_without_numbers_and_without_keys() -> None:
    trust = Screen(
        "\n".join([RULE, " Trust it?", "", " ❯ No, exit", "   Yes", "", " Enter to confirm · Esc to cancel"])
    )
    theme = Screen(
        "\n".join([" Choose the text style", "", " ❯ 1. Dark mode ✔", "   2. Light mode", "", " Syntax theme: x"])
    )
    for screen in (trust, theme):
        assert read_screen(screen) is TerminalStatus.WAITING_USER_ANSWER


def test_a_dialog_counts_whatever_the_title_says() -> None:
    screen = Screen(
        f"{RULE}\n Do you want to proceed?\n ❯ 1. Yes\n   2. No\n\n Esc to cancel", "◐ Claude Code", "claude"
    )
    assert read_screen(screen) is TerminalStatus.WAITING_USER_ANSWER


@pytest.mark.parametrize("shell", ["bash", "-zsh", "fish", "sh"])
def test_a_shell_in_front_means_that_claude_code_is_gone(shell: str) -> None:
    assert read_screen(frame("✻ Baking…", title="◐ x", command=shell)) is TerminalStatus.ERROR


def test_an_empty_screen_and_a_starting_program_are_unknown() -> None:
    assert read_screen(Screen("")) is TerminalStatus.UNKNOWN
    assert read_screen(Screen("dev@box:~/proj$ claude", command="")) is TerminalStatus.UNKNOWN


SCRAPS = st.sampled_from(
    [*mutations.MISLEADING, *mutations.DRAFTS, "❯", RULE, "  ⎿  x", "✻ Baking…", "\n", "● Done.", "\r", "\t", "\x1b["]
)


@given(st.lists(st.one_of(SCRAPS, st.text(max_size=30)), max_size=60), st.text(max_size=20), st.booleans())
def test_any_text_is_read(scraps: list[str], title: str, joined: bool) -> None:
    text = ("" if joined else "\n").join(scraps)
    assert read_screen(Screen(text, title, "")) in TerminalStatus


@given(st.lists(st.sampled_from(mutations.MISLEADING), max_size=20))
def test_whatever_an_agent_quotes_the_turn_has_ended(lines: list[str]) -> None:
    answer = [f"  {line}" for line in lines]
    assert read_screen(frame("❯ go", "", "● Well:", *answer, "", title="✳ Claude Code")) in AT_REST


@given(st.lists(st.sampled_from(mutations.MISLEADING), max_size=20), st.sampled_from(mutations.DRAFTS))
def test_whatever_an_agent_quotes_the_turn_is_running(lines: list[str], draft: str) -> None:
    answer = [f"  {line}" for line in lines]
    busy = frame("❯ go", "", "● Well:", *answer, "", "✻ Baking…", "  ⎿  Tip: wait", "", draft=draft)
    assert read_screen(busy) is TerminalStatus.PROCESSING


@pytest.mark.parametrize("piece", ["✻ x ", "… ", "❯ 1. ", "enter to ", "a@b:", "──\n", "❯\n", "● x\n", "esc to ", "9"])
def test_huge_screens_are_read_too(piece: str) -> None:
    for text in (
        piece * 200_000,
        f"✻ {piece * 200_000}\n{RULE}\n❯\n{RULE}\n",
        f"{piece * 100_000}\n{RULE}\n❯ x\n{RULE}\n f",
    ):
        read_screen(Screen(text))
