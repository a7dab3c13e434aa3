"""What of a reply travels on."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quintet.loop.decide.condense import (
    LONGEST_LINE,
    LONGEST_TEXT,
    cap_lines,
    condense_for_programmer,
    condense_for_tester,
    extract_review_notes,
    extract_test_evidence,
)
from tests.loop.runs import settings
from tests.loop.texts import SHAPES, agent_texts, worst_texts

STYLES: dict[str, tuple[str, Callable[[str], str]]] = {
    "hashes": ("## {}\n{}\n", str),
    "deep hashes": ("#### {}\n{}\n", str),
    "numbered hashes": ("## 3. {}\n{}\n", str),
    "emoji": ("## ✅ {}\n{}\n", str),
    "bold": ("**{}**\n{}\n", str),
    "bold with colon": ("**{}:** {}\n", str),
    "label": ("{}:\n{}\n", str),
    "label in line": ("{}: {}\n", str),
    "capitals": ("{}:\n{}\n", str.upper),
    "underscores": ("{}: {}\n", lambda title: title.upper().replace(" ", "_")),
    "numbered": ("1. {}\n{}\n", str),
    "numbered label": ("2) {}: {}\n", str),
    "bullet": ("- {}: {}\n", str),
    "underlined": ("{}\n------\n{}\n", str),
    "lower case": ("### {}\n{}\n", str.lower),
}
ANALYST_TITLES = {
    "Artifact review per file": "A1",
    "P1-P4 traceability": "TRACE",
    "Implementation notes": "I1",
    "Phased delivery coverage": "PHASED",
    "Risks": "R1",
    "Downstream contract impact": "D1",
    "Explicit handoff": "H1",
}
PROGRAMMER_TITLES = {
    "Files changed": "F1",
    "Known limitations": "LIMITS",
    "Behaviour implemented": "B1",
    "Validation": "VALID",
}


def written(titles: dict[str, str], style: str, *, backwards: bool = False) -> str:
    form, spell = STYLES[style]
    pairs = list(titles.items())[:: -1 if backwards else 1]
    return "SUMMARY\n\n" + "".join(form.format(spell(title), body) for title, body in pairs)


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("style", STYLES)
def test_the_programmer_gets_five_sections_in_any_style_and_order(style: str, backwards: bool) -> None:
    short = condense_for_programmer(written(ANALYST_TITLES, style, backwards=backwards), settings())
    for body in ("A1", "I1", "R1", "D1", "H1"):
        assert short.count(body) == 1
    assert "TRACE" not in short
    assert "PHASED" not in short


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("style", STYLES)
def test_the_tester_gets_files_and_behaviour_without_the_limitations(style: str, backwards: bool) -> None:
    short = condense_for_tester(written(PROGRAMMER_TITLES, style, backwards=backwards), settings())
    assert short.count("F1") == short.count("B1") == 1
    assert "LIMITS" not in short
    assert "VALID" not in short


FILES = ["Changed files", "Files modified", "Changes", "FILES_CHANGED"]
BEHAVIOUR = ["Behavior implemented", "Implemented behaviour", "What was implemented"]


@pytest.mark.parametrize("title", [*FILES, *BEHAVIOUR])
def test_changed_files_and_behaviour_go_by_several_names(title: str) -> None:
    assert "B1" in condense_for_tester(f"## {title}\nB1\n## Known limitations\nLIMITS", settings())


def test_a_section_keeps_what_only_looks_like_a_heading() -> None:
    body = (
        "### A part\ntext\n**Bold:**\nAPI: unchanged\nFirst do this:\n- Validation: of input\n- Risks: none\nlast line"
    )
    short = condense_for_tester(f"## Behaviour implemented\n{body}\n## Known limitations\nLIMITS", settings())
    assert short == f"## Behaviour implemented\n{body}"


def test_a_label_keeps_what_only_looks_like_a_label() -> None:
    body = "API: unchanged\nStart with these files:\n- a.py\nlast line"
    text = f"Explicit handoff:\n{body}\nP1-P4 traceability:\nTRACE"
    assert condense_for_programmer(text, settings()) == f"Explicit handoff:\n{body}"


def test_a_section_goes_on_after_an_inner_one_that_stays_behind() -> None:
    text = "## Behaviour implemented\nB1\n### Known limitations\nLIMITS\n### Output\nB2"
    assert condense_for_tester(text, settings()) == "## Behaviour implemented\nB1\n### Output\nB2"


def test_a_heading_in_a_fence_is_none() -> None:
    text = "## Files changed\nF1\n```\n## Known limitations\n```\nF2"
    assert condense_for_tester(text, settings()) == text


def test_a_reply_that_is_one_fence_is_read() -> None:
    assert condense_for_tester("```markdown\n## Files changed\nF1\n## Validation\nV\n```", settings()) == (
        "## Files changed\nF1"
    )


@pytest.mark.parametrize(
    ("condense", "cap"), [(condense_for_programmer, 40), (extract_review_notes, 30), (extract_test_evidence, 120)]
)
def test_where_no_heading_is_found_the_head_of_the_text_goes(condense: Callable[..., str], cap: int) -> None:
    lines = [f"line {number}" for number in range(300)]
    short = condense("\n".join(lines), settings()).split("\n")
    assert short == [*lines[: cap - 1], f"[... {301 - cap} lines left out ...]"]


def test_where_only_sections_are_found_that_stay_behind_they_stay() -> None:
    text = "I did it.\n## Known limitations\nLIMITS"
    assert condense_for_tester(text, settings()) == "I did it."


def test_cross_phase_condensation_can_be_switched_off() -> None:
    text = "## Known limitations\r\n" + "x\r\n" * 100
    whole = text.replace("\r\n", "\n").strip()
    assert condense_for_tester(text, settings(condense_cross_phase=False)) == whole


def test_long_sections_share_the_cap() -> None:
    text = "## Files changed\n" + "f\n" * 100 + "## Behaviour implemented\nB1\n"
    short = condense_for_tester(text, settings())
    assert "B1" in short
    assert len(short.split("\n")) <= 40


def test_review_notes_are_taken_from_their_label_on() -> None:
    text = "REVIEW_RESULT: REVISE\nwell\nREVIEW_NOTES:\n- a\nRequired changes:\n- b"
    assert extract_review_notes(text, settings()) == "REVIEW_NOTES:\n- a\nRequired changes:\n- b"


def long_review(last: str) -> str:
    notes = "\n".join(f"- note {number}" for number in range(100))
    return f"REVIEW_RESULT: REVISE\nREVIEW_NOTES:\n{notes}\n{last}"


@pytest.mark.parametrize(
    "title",
    [
        "Required changes:",
        "## Required changes",
        "**Required changes:**",
        "REQUIRED CHANGES:",
        "- Required changes:",
        "4. Required changes:",
        "Required fixes (2):",
        "Must fix:",
        "### Blocking issues",
        "Changes requested:",
        "Blockers:",
    ],
)
def test_where_the_cap_cuts_the_required_changes_stay(title: str) -> None:
    short = extract_review_notes(long_review(f"{title}\n- change a\n- change b"), settings()).split("\n")
    assert short[0] == "REVIEW_NOTES:"
    assert short[-3:] == [title, "- change a", "- change b"]
    assert len(short) <= 30
    assert sum("left out" in line for line in short) == 1


def test_required_changes_stay_under_headings_of_their_own() -> None:
    changes = "## Required changes\n### a.py\n- change a\n### b.py\n- change b"
    short = extract_review_notes(long_review(f"{changes}\n## Praise\n" + "well done\n" * 50), settings())
    assert changes in short
    assert len(short.split("\n")) <= 30


def test_required_changes_stay_wherever_they_stand() -> None:
    padding = "\n".join(f"- note {number}" for number in range(50))
    text = f"REVIEW_NOTES:\nBlockers:\n- first\nOther:\n{padding}\nMust fix:\n- second\nOther:\n{padding}"
    short = extract_review_notes(text, settings())
    assert "- first" in short
    assert "- second" in short
    assert len(short.split("\n")) <= 30


def test_no_blockers_hide_no_required_changes() -> None:
    text = long_review("Required changes:\n- change a").replace("- note 0\n", "Blockers: none\n")
    assert "- change a" in extract_review_notes(text, settings())
    assert len(extract_review_notes(text, settings()).split("\n")) <= 30


def test_required_changes_before_the_notes_are_kept() -> None:
    text = "REVIEW_RESULT: REVISE\nRequired changes:\n- change a\nREVIEW_NOTES:\n- note"
    assert extract_review_notes(text, settings()) == "Required changes:\n- change a\nREVIEW_NOTES:\n- note"


def test_more_required_changes_than_the_cap_all_stay() -> None:
    changes = [f"- change {number}" for number in range(50)]
    short = extract_review_notes(long_review("Required changes:\n" + "\n".join(changes)), settings())
    assert all(change in short.split("\n") for change in changes)


@pytest.mark.scenario("001", "Review notes condensation")
def test_notes_without_required_changes_keep_both_ends() -> None:
    short = extract_review_notes(long_review("the last line"), settings()).split("\n")
    assert short[0] == "REVIEW_NOTES:"
    assert short[-1] == "the last line"
    assert len(short) == 30


def test_evidence_is_the_verdict_and_its_section() -> None:
    text = "I ran it.\n**RESULT: FAIL**\nmore\n## Evidence\n- a\n- b\n"
    assert extract_test_evidence(text, settings()) == "**RESULT: FAIL**\n## Evidence\n- a\n- b"


def test_evidence_shows_the_verdict_that_stands() -> None:
    text = "RESULT: PASS\nRESULT: FAIL\nEVIDENCE:\n- a"
    assert extract_test_evidence(text, settings()) == "RESULT: FAIL\nEVIDENCE:\n- a"


def test_a_verdict_below_the_evidence_is_not_copied_twice() -> None:
    text = "EVIDENCE:\n- a\nRESULT: FAIL"
    assert extract_test_evidence(text, settings()) == text


@pytest.mark.scenario("001", "Test evidence condensation")
def test_evidence_has_a_cap_of_its_own() -> None:
    output = [f"line {number}" for number in range(300)]
    text = "RESULT: FAIL\nEVIDENCE:\n" + "\n".join(output)
    short = extract_test_evidence(text, settings()).split("\n")
    assert len(short) == 120
    assert short[:2] == ["RESULT: FAIL", "EVIDENCE:"]
    assert short[-1] == output[-1]
    assert len(extract_test_evidence(text, settings(max_test_evidence_lines=5)).split("\n")) == 5


@pytest.mark.parametrize("cap", [1, 2, 3, 10])
@pytest.mark.parametrize("tail", [0, 1, 5, 20])
def test_capped_lines_never_exceed_the_cap(cap: int, tail: int) -> None:
    lines = [str(number) for number in range(50)]
    capped = cap_lines(lines, cap, tail).split("\n")
    assert len(capped) == cap
    note = next(line for line in capped if "left out" in line)
    assert f" {50 - (cap - 1)} lines" in note
    assert cap_lines(lines, 50, tail) == "\n".join(lines)


def test_a_long_line_is_cut_and_says_so() -> None:
    short = extract_test_evidence("EVIDENCE:\n" + "x" * 10_000, settings())
    assert len(short) < LONGEST_LINE + 100
    assert "8000 characters left out" in short


CONDENSERS = [extract_review_notes, extract_test_evidence, condense_for_programmer, condense_for_tester]


@given(agent_texts, st.integers(1, 50))
def test_no_text_crashes_a_condensation_or_comes_out_empty(text: str, cap: int) -> None:
    config = settings(max_feedback_lines=cap, max_cross_phase_lines=cap, max_test_evidence_lines=cap)
    for condense in CONDENSERS:
        short = condense(text, config)
        assert short.strip() or not text.removeprefix("\ufeff").strip()


@given(agent_texts, st.integers(1, 50))
def test_condensed_handoffs_and_evidence_keep_to_their_caps(text: str, cap: int) -> None:
    config = settings(max_cross_phase_lines=cap, max_test_evidence_lines=cap)
    for condense in CONDENSERS[1:]:
        assert len(condense(text, config).split("\n")) <= cap


@pytest.mark.slow
@pytest.mark.parametrize(("shape", "limit"), [*((shape, 30_000) for shape in SHAPES), ("- Risks: x\n", LONGEST_TEXT)])
def test_a_text_that_is_too_long_is_condensed(shape: str, limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quintet.loop.decide.condense.LONGEST_TEXT", limit)
    text = worst_texts(shape, limit + 50_000)[1]
    for condense in CONDENSERS:
        assert 0 < len(condense(text, settings())) <= limit + 1_000
