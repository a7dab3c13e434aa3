"""The user's own prompt texts: they replace the shipped ones, and a fault is told before the run."""

from dataclasses import replace
from pathlib import Path

import pytest

from quintet.errors import PromptError
from quintet.loop.decide.prompts import Prompts
from quintet.loop.decide.prompts import texts as prompt_texts
from quintet.loop.decide.prompts.own import NEEDED, VERDICTS, check_own_texts, faults_of, known_slots
from quintet.loop.decide.prompts.texts import shipped_texts, slots_of, text_of
from quintet.loop.decide.state import Again
from quintet.loop.decide.steps import Ask
from quintet.roles import ANALYST, PROGRAMMER, ROLES, TESTER
from tests.loop.runs import TASK, new_state, settings

MINE = "Mine, in round {{round}}.\n{{explore}}\n{{response_file}}\n"


def prompts(folder: Path) -> Prompts:
    config = replace(settings(), prompts_dir=str(folder))
    return Prompts(config, TASK, new_state(config))


def test_a_text_of_ones_own_replaces_the_shipped_one_of_its_name(tmp_path: Path) -> None:
    (tmp_path / "analyst.md").write_text("\ufeff" + MINE, encoding="utf-8")
    check_own_texts(str(tmp_path))
    mine = prompts(tmp_path).build(Ask(ANALYST, 1, 1))
    assert mine.startswith("Mine, in round 1.\n")
    assert TASK.explore_summary in mine
    assert "RESPONSE FILE INSTRUCTION" in mine
    shipped = Prompts(settings(), TASK, new_state(settings())).build(Ask(TESTER, 1, 1))
    assert prompts(tmp_path).build(Ask(TESTER, 1, 1)) == shipped


def test_every_text_can_be_replaced(tmp_path: Path) -> None:
    for name in shipped_texts():
        (tmp_path / f"{name}.md").write_text(text_of(name).replace("\n", "\nOwn words.\n", 1), encoding="utf-8")
    assert list(faults_of(str(tmp_path))) == []
    own = prompts(tmp_path)
    for step in [*(Ask(role, 1, 1) for role in ROLES), Ask(TESTER, 1, 1, again=Again.VERDICT)]:
        assert own.build(step).count("Own words.") == 2, "the step's text and that of the response file"
    assert own.build_reminder(Ask(TESTER, 1, 1)).count("Own words.") == 2


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("analist.md", MINE, "did you mean analyst.md?"),
        ("analyst.txt", MINE, "there is no prompt of that name"),
        ("analyst.md", MINE + "{{exlpore}}", "unknown slot {{exlpore}}; known are "),
        ("analyst.md", MINE + "{{?retry}}open", "unknown slot {{?retry}}"),
        ("analyst.md", MINE.replace("{{response_file}}", ""), "the slot {{response_file}} is missing"),
        ("tester.md", "RESULT: x {{response_file}}", "the slot {{scenario}} is missing"),
        ("tester.md", "{{scenario}} {{response_file}}", '"RESULT: ..."'),
        ("response_file.md", "{{quoted_path}}", "the slot {{marker}} is missing"),
        ("response_file.md", "{{quoted_path}} {{marker}} {{round}}", "unknown slot {{round}}"),
    ],
)
def test_a_fault_is_one_line_that_names_the_file(name: str, text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    (fault,) = faults_of(str(tmp_path))
    assert fault.startswith(f"prompt text {tmp_path / name}: ")
    assert words in fault
    with pytest.raises(PromptError):
        check_own_texts(str(tmp_path))


def test_a_file_that_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "analyst.md").write_bytes(b"\xff\xfe")
    (fault,) = faults_of(str(tmp_path))
    assert "not UTF-8" in fault


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(PromptError, match="quintet prompts export"):
        check_own_texts(str(tmp_path / "nowhere"))


def test_all_faults_are_counted(tmp_path: Path) -> None:
    (tmp_path / "analyst.md").write_text("nothing", encoding="utf-8")
    with pytest.raises(PromptError, match="and 1 more; quintet prompts check"):
        check_own_texts(str(tmp_path))


def test_what_an_agent_changes_in_the_folder_has_no_effect_on_the_run(tmp_path: Path) -> None:
    (tmp_path / "analyst.md").write_text(MINE, encoding="utf-8")
    before = prompts(tmp_path).build(Ask(ANALYST, 1, 1))
    (tmp_path / "analyst.md").write_text("{{nonsense}}", encoding="utf-8")
    assert prompts(tmp_path).build(Ask(ANALYST, 1, 1)) == before


def test_the_shipped_texts_keep_their_own_rules() -> None:
    assert set(shipped_texts()) == NEEDED.keys()
    for name in shipped_texts():
        assert set(NEEDED[name]) <= slots_of(text_of(name)), name
        assert VERDICTS.get(name, "") in text_of(name)


def test_every_slot_that_is_allowed_has_a_value(monkeypatch: pytest.MonkeyPatch) -> None:
    """A text that uses all it may use is rendered without an error."""
    texts = {name: " ".join(f"{{{{{slot}}}}}" for slot in sorted(known_slots(name))) for name in shipped_texts()}
    monkeypatch.setattr(prompt_texts, "text_of", lambda name, _folder="": texts[name])
    config = settings()
    own = Prompts(config, TASK, new_state(config))
    for step in [*(Ask(role, 1, 1) for role in ROLES), Ask(PROGRAMMER, 2, 1), Ask(TESTER, 1, 1, again=Again.VERDICT)]:
        assert own.build(step)
    assert own.build_reminder(Ask(TESTER, 1, 1))
