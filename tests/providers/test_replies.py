"""The last answer, taken from a screen: what `mode=last` gives where there is no record."""

from collections.abc import Callable

import pytest

from quintet.providers.claude_code.provider import PROVIDER as CLAUDE_CODE
from quintet.providers.codex.provider import PROVIDER as CODEX
from tools.screens import Recording, load

PLAIN = "The parser is fine. I found one unused import and left it alone. RESULT: PASS"
ANSWERS = {"plain": PLAIN, "after_rename_turn": PLAIN, "after_approval": PLAIN, "after_error": PLAIN, "short": "Done."}
READERS: dict[str, Callable[[str], str]] = {"codex": CODEX.read_reply, "claude": CLAUDE_CODE.read_reply}


def completed(cli: str) -> list[Recording]:
    return [recording for recording in load(cli) if recording.state_label == "completed"]


@pytest.mark.parametrize("cli", READERS)
def test_the_answer_of_every_recording_whose_answer_is_known(cli: str) -> None:
    known = [recording for recording in completed(cli) if recording.scenario in ANSWERS]
    assert len(known) >= 150
    # The rows of a paragraph are where the pane has broken them.
    wrong = [
        recording.name
        for recording in known
        if " ".join(READERS[cli](recording.screen).split()) != ANSWERS[recording.scenario]
    ]
    assert wrong == []


@pytest.mark.parametrize("cli", READERS)
def test_what_an_answer_quotes_belongs_to_it(cli: str) -> None:
    ends = {
        "adv_dialog_quoted_last": "Press enter to confirm or esc to cancel",
        "adv_esc_to_interrupt": "So press esc to interrupt a turn.",
        "adv_prompt_glyphs": "They are quoted, nothing was executed.",
    }
    known = [recording for recording in completed(cli) if recording.scenario in ends and not recording.alternate_on]
    assert len(known) >= 60
    for recording in known:
        reply = READERS[cli](recording.screen)
        assert " ".join(reply.split()).endswith(ends[recording.scenario]), recording.name
        assert "  \n" not in reply


def test_a_turn_without_an_answer_has_none() -> None:
    earlier = "› go\n\n• Done.\n\n› again\n  and more\n\n"
    assert CODEX.read_reply(f"{earlier}■ The stream was closed\n\n› Ask Codex\n\n  gpt-5\n") == ""
    assert CODEX.read_reply(f"{earlier}• Ran make\n  └ ok\n\n› Ask Codex\n\n  gpt-5\n") == ""
    rule = "─" * 20
    assert CLAUDE_CODE.read_reply(f"❯ go\n\n● Done.\n\n❯ again\n  ⎿  API error\n\n{rule}\n❯ \n{rule}\n  footer") == ""


def test_the_rows_keep_their_shape() -> None:
    answer = "• Look:\n\n  def f():\n      return 1\n\n  - one\n\n  Worked for 5s • 06:13"
    assert (
        CODEX.read_reply(f"› go\n\n{answer}\n\n› Ask Codex\n\n  gpt-5\n") == "Look:\n\ndef f():\n    return 1\n\n- one"
    )


@pytest.mark.parametrize("cli", READERS)
@pytest.mark.parametrize("text", ["", "\n", "›", "•", "●", "──\n❯\n──", "• \n›", "■", "a\nb\nc"])
def test_any_text_is_read(cli: str, text: str) -> None:
    READERS[cli](text)
