"""What agents say: their replies, and their screens."""

from typing import Any, Final

from hypothesis import strategies as st

from harness.fuzz.files import FOLDER
from harness.fuzz.hostile import as_bytes, replies, texts
from harness.fuzz.properties import holds
from quintet.ansi import only_colours
from quintet.api.status import TerminalStatus
from quintet.config import Settings
from quintet.loop.decide import condense, gate
from quintet.loop.decide.flow import next_step
from quintet.loop.decide.markup import fences, normalise, unwrap
from quintet.loop.decide.prompts import Prompts
from quintet.loop.decide.state import State
from quintet.loop.decide.steps import Ask
from quintet.loop.decide.task import Task
from quintet.loop.record.responses import Responses
from quintet.loop.record.run_record import RunRecord
from quintet.providers.base import Provider
from quintet.providers.registry import find_provider, provider_names
from quintet.providers.screen import Screen
from quintet.providers.scripted.response_file import response_path
from quintet.providers.scripted.screen_marks import DIALOG, PROMPT, QUESTION, WORKING
from quintet.roles import ROLES, Phase
from quintet.server.terminal.input import without_control_characters
from tests.providers.mutations import DRAFTS, MISLEADING

SETTINGS: Final = Settings(wd=FOLDER)


@holds("replies", replies)
def the_gates_take_any_reply(text: str) -> None:
    verdict = gate.read_test_verdict(text)
    assert verdict in (None, gate.Verdict.PASS, gate.Verdict.FAIL)
    for phase in (Phase.ANALYST, Phase.PROGRAMMER):
        judged = gate.judge_review(text, phase, 2, SETTINGS)
        assert not judged.approved or judged.verdict is gate.Verdict.APPROVED
    for begin, end in fences(normalise(text)):
        assert 0 <= begin < end <= len(text) + 1
    unwrap(normalise(text))


@holds("replies", st.tuples(replies, st.integers(1, 40)))
def a_condensed_reply_keeps_to_its_cap(found: Any) -> None:
    text, cap = found
    config = Settings(wd=FOLDER, max_feedback_lines=cap, max_cross_phase_lines=cap, max_test_evidence_lines=cap)
    for shorten in (condense.condense_for_programmer, condense.condense_for_tester, condense.extract_test_evidence):
        short = shorten(text, config)
        assert short.count("\n") < cap
        assert bool(short.strip()) >= bool(text.removeprefix("\ufeff").strip())
    condense.extract_review_notes(text, config)


@holds("replies", replies)
def a_reply_travels_in_any_prompt(text: str) -> None:
    state = State(
        run_id="r", feedback=text, analyst_feedback=text, programmer_feedback=text, open_notes=text,
        programmer_context_for_retry=text, outputs={role.output: text for role in ROLES},
    )  # fmt: skip
    step = next_step(state, SETTINGS)
    if isinstance(step, Ask):
        prompt = Prompts(SETTINGS, Task(text or "x", text or "x"), state).build(step)
        assert response_path(prompt) is not None
    without_control_characters(text).encode("utf-8", "replace")


@holds("replies", as_bytes(replies))
def a_response_file_is_read_or_says_nothing(data: bytes) -> None:
    responses = Responses(RunRecord(FOLDER, "run"))
    responses.ensure_response_dir()
    path = responses.path_of(ROLES[0])
    path.write_bytes(data)
    text = responses.read(ROLES[0])
    assert text is None or text.encode("utf-8")
    if text is not None:
        assert responses.keep(ROLES[0], 1, text).read_text(encoding="utf-8") == text


ROWS: Final = (
    *MISLEADING, *DRAFTS, *(f"  {line}" for line in MISLEADING), "─" * 80, "──", "╭─", "│ model:     loading", "❯", ">",
    "› /", "  /rename", "› 1. Yes", "  2. No", "❯ 1. Yes", "  Update available 1 -> 2", "  2. Skip", "[Pasted text #1]",
    "› [Pasted Content 3000 chars]", "Do you trust the files in this folder?", "Bypass Permissions mode",
    "Yes, I accept",
    "Detected a custom API key", "Press Enter to continue…", "✻ Baked for 5s", "■ error", "• answer", "  ↳ queued",
    "  tab to queue", PROMPT, PROMPT + "draft", WORKING, QUESTION, DIALOG, DIALOG + " x (press t)", "⎿  Interrupted",
)  # fmt: skip
_titles = st.sampled_from(("", "⠋ x", "◐ x", "[ ! ] Action Required", "zsh")) | texts(size=2)
_cursors = st.none() | st.tuples(st.integers(0, 400), st.integers(0, 60))
screens = st.builds(
    Screen,
    texts(ROWS, size=25),
    _titles,
    st.sampled_from(("", "codex", "bash", "-zsh", "node")),
    st.booleans(),
    _cursors,
)
providers: Final[list[Provider]] = [found for name in provider_names() if (found := find_provider(name))]


@holds("screens", st.tuples(screens, texts(ROWS, size=4)))
def any_screen_is_read_by_all(found: Any) -> None:
    screen, pasted = found
    for provider in providers:
        assert provider.read_screen(screen) in set(TerminalStatus)
        provider.startup_dialog(screen, FOLDER)
        provider.draft(screen)
        provider.holds_draft(screen, pasted)
        provider.read_reply(screen.text)
        provider.is_command(pasted)
        assert provider.escape(pasted).strip(" \u200b") == pasted.strip(" \u200b")


@holds("screens", texts(ROWS, size=25))
def a_picture_has_colours_and_nothing_else(text: str) -> None:
    for line in text.split("\n"):
        shown = only_colours(line)
        left = shown.split("\x1b")
        assert all(part.startswith("[") and "m" in part for part in left[1:]), repr(shown)
