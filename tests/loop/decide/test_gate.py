"""Verdicts, evidence and the review gate."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quintet.loop.decide.gate import (
    EVIDENCE,
    EVIDENCE_GROUPS,
    REVIEW_NOTES,
    Verdict,
    evidence,
    is_review_approved,
    judge_review,
    read_review_verdict,
    read_test_verdict,
    section,
)
from quintet.roles import Phase
from tests.loop.runs import ANALYST_NOTES, PROGRAMMER_NOTES, approval, settings
from tests.loop.texts import SHAPES, agent_texts, worst_texts

DECORATED = [
    "{}",
    "**{}**",
    "## {}",
    "- {}",
    "* {}",
    "`{}`",
    "### **{}**",
    "1. {}",
    "  {}  ",
    "{}.",
    "_{}_",
    "• {}",
    "+ {}",
    "{}\t",
]


@pytest.mark.parametrize("decoration", DECORATED)
@pytest.mark.parametrize("word", ["PASS", "FAIL"])
def test_decoration_around_a_test_verdict_is_ignored(decoration: str, word: str) -> None:
    assert read_test_verdict(f"intro\n{decoration.format(f'RESULT: {word}')}\nmore") == word


@pytest.mark.parametrize("decoration", DECORATED)
@pytest.mark.parametrize("word", ["APPROVED", "REVISE"])
def test_decoration_around_a_review_verdict_is_ignored(decoration: str, word: str) -> None:
    assert read_review_verdict(f"intro\n{decoration.format(f'REVIEW_RESULT: {word}')}\nmore") == word


@pytest.mark.parametrize(
    "line",
    [
        "result: pass",
        "Result: Pass",
        "RESULT: **PASS**",
        "**RESULT:** PASS",
        "**RESULT**: PASS",
        "RESULT:PASS",
        "RESULT : `PASS`",
    ],
)
def test_case_and_inner_decoration_are_ignored(line: str) -> None:
    assert read_test_verdict(line) is Verdict.PASS


def test_the_underscore_may_be_escaped() -> None:
    assert read_review_verdict(r"REVIEW\_RESULT: APPROVED") is Verdict.APPROVED


@pytest.mark.parametrize(
    "text",
    [
        "RESULT: PASS|FAIL",
        "RESULT: PASS or RESULT: FAIL",
        "RESULT: PASS / FAIL",
        "RESULT: <PASS or FAIL>",
        "RESULT: [PASS|FAIL]",
        "RESULT: PASS, mostly",
        "RESULT: PASSED",
        "RESULT: PASS FAIL",
        "RESULT:\nPASS criteria not met",
        "RESULT:\n\nPASS",
        "The RESULT: PASS",
        "TEST_RESULT: PASS",
        "RESULT PASS",
        "> RESULT: PASS",
        "- > RESULT: PASS",
        ">> RESULT: PASS",
        "```\nRESULT: PASS\n```\nthat was the log",
        "log:\n~~~\nRESULT: PASS\n~~~",
        "- log:\n- ```\n  RESULT: PASS\n  ```",
        "log:\n```\nRESULT: PASS",
        "RESULT: FAİL",
        "RESULT: PAſſ",
        "RESULT: PASS\u2028RESULT: PASS",
        "",
        "\ufeff",
        "\ud800",
    ],
)
def test_what_is_no_test_verdict(text: str) -> None:
    assert read_test_verdict(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "REVIEW_RESULT: APPROVED|REVISE",
        "REVIEW_RESULT: APPROVED or REVISE",
        "REVIEW_RESULT: <APPROVED or REVISE>",
        "REVIEW_RESULT: NOT APPROVED",
        "REVIEW_RESULT: APPROVED with changes",
        "> REVIEW_RESULT: APPROVED",
        "RESULT: APPROVED",
        "REVIEW_RESULT: PASS",
        "REVIEW_RESULT: REVİSE",
    ],
)
def test_what_is_no_review_verdict(text: str) -> None:
    assert read_review_verdict(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "RESULT: FAIL\n\n> RESULT: PASS",
        "RESULT: FAIL\nlog:\n```\nRESULT: PASS\n```",
        "RESULT: PASS\nno, wait\nRESULT: FAIL",
        "RESULT: FAIL\nearlier:\nRESULT: PASS",
        "- ```\n  RESULT: PASS\n  ```\nRESULT: FAIL",
        "RESULT: PASS\n```\n```python\n```\nRESULT: FAIL",
        "```\n```python\n```\nRESULT: FAIL\n```\nRESULT: PASS\n```\n```\n```python\n```",
    ],
)
def test_of_two_test_verdicts_the_negative_one_stands(text: str) -> None:
    assert read_test_verdict(text) is Verdict.FAIL


def test_a_revise_that_quotes_an_earlier_approval_stays_a_revise() -> None:
    text = "Last time I wrote\n> REVIEW_RESULT: APPROVED\nREVIEW_RESULT: REVISE"
    assert read_review_verdict(text) is Verdict.REVISE
    assert read_review_verdict("REVIEW_RESULT: APPROVED\nREVIEW_RESULT: REVISE") is Verdict.REVISE


@pytest.mark.parametrize("fence", ["```", "~~~", "````markdown"])
def test_a_reply_that_is_one_fence_counts(fence: str) -> None:
    marks = fence.rstrip("markdown")
    assert read_test_verdict(f"{fence}\nRESULT: PASS\nEVIDENCE:\n- x\n{marks}\n") is Verdict.PASS


quiet_lines = st.sampled_from(
    ["", "text", "RESULT: PASS|FAIL", "REVIEW_RESULT: APPROVED or REVISE", "## Heading", "- item", "| RESULT: PASS |"]
)
positive_lines = st.sampled_from(["RESULT: PASS", "REVIEW_RESULT: APPROVED", "**RESULT: PASS**", "## RESULT: PASS"])
fenced = st.builds(
    lambda marks, info, item, lines: "\n".join([f"{item}{marks}{info}", *lines, marks]),
    st.sampled_from(["```", "~~~", "`````"]),
    st.sampled_from(["", "text", " python "]),
    st.sampled_from(["", "  ", "- ", "2. "]),
    st.lists(positive_lines | quiet_lines | st.sampled_from(["``", "> ```", "- ```", "```python"]), max_size=4),
)
quoted = st.lists(positive_lines, min_size=1, max_size=3).map(lambda lines: "\n".join(f"> {line}" for line in lines))
surroundings = st.lists(quiet_lines | fenced | quoted, max_size=6)
negative_lines = st.sampled_from(DECORATED).flatmap(
    lambda decoration: st.sampled_from(["RESULT: FAIL", "result: Fail"]).map(decoration.format)
)


@given(surroundings, negative_lines, surroundings)
def test_whatever_surrounds_it_a_lone_negative_verdict_is_never_positive(
    before: list[str], verdict: str, after: list[str]
) -> None:
    text = "\n".join([*before, verdict, *after])
    assert read_test_verdict(text) is Verdict.FAIL
    review = text.replace("RESULT: FAIL", "REVIEW_RESULT: REVISE").replace("result: Fail", "review_result: Revise")
    assert read_review_verdict(review) is Verdict.REVISE


@given(st.lists(quiet_lines | fenced | quoted, max_size=8), quiet_lines)
def test_without_a_verdict_of_its_own_a_text_has_none(blocks: list[str], last: str) -> None:
    text = "\n".join([*blocks, "no fence around all of it", last])
    assert read_test_verdict(text) is None
    assert read_review_verdict(text) is None


@given(agent_texts, st.sampled_from(list(EVIDENCE_GROUPS)), st.integers(1, 4))
def test_no_text_crashes_the_gate(text: str, phase: Phase, cycle: int) -> None:
    judged = judge_review(text, phase, cycle, settings())
    assert judged.approved == (judged.reason == "approved")
    assert not judged.approved or judged.verdict is Verdict.APPROVED
    assert read_test_verdict(text) in {None, Verdict.PASS, Verdict.FAIL}
    assert (section(text, EVIDENCE) or "x").strip()


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_a_long_text_is_judged(shape: str) -> None:
    text = worst_texts(shape, 60_000)[1]
    assert read_test_verdict(text) is Verdict.FAIL
    assert judge_review(text, Phase.PROGRAMMER, 2, settings()).verdict is Verdict.APPROVED


@pytest.mark.parametrize(
    ("notes", "count"),
    [
        ("profile prune asterisk", 0),
        ("filename, testament, riskier, fixture", 0),
        ("file; run; risk; gap", 4),
        ("files, tests, risks, gaps", 4),
        ("Filed. Running. Regressions. Fixes", 4),
        ("code test risk issue", 1),
        ("code test, risk issue", 2),
        ("code test\nrisk issue\nissue\nrisk", 3),
        ("code. code. code. code", 1),
        ("validation", 1),
        ("NOT_RUN", 1),
        ("we ran pytest", 1),
        ("quality: fine, the implementation's diff", 2),
        ("", 0),
    ],
)
def test_programmer_evidence_is_whole_words_in_clauses_of_their_own(notes: str, count: int) -> None:
    assert len(evidence(notes, Phase.PROGRAMMER)) == count


@pytest.mark.parametrize(
    ("notes", "count"),
    [
        ("artifact traceability contract handoff", 1),
        ("artifact, traceability, contract, handoff", 4),
        ("proposal; P1; API; next steps", 4),
        ("designs. phases. planners. action items", 4),
        ("tasks\nP4\nrevised_documents\nconcrete", 4),
        ("specs, P5, apiary, hand", 1),
        ("P1-P4 are there, as the next-step says", 2),
    ],
)
def test_analyst_evidence_is_whole_words_in_clauses_of_their_own(notes: str, count: int) -> None:
    assert len(evidence(notes, Phase.ANALYST)) == count


def test_groups_are_matched_so_that_as_many_as_possible_count() -> None:
    """Taking the first clause for the first group would leave the second group without one."""
    assert len(evidence("code and test, code", Phase.PROGRAMMER)) == 2
    assert len(evidence("code test risk issue, code test risk, code test, code", Phase.PROGRAMMER)) == 4


@pytest.mark.parametrize("phase", list(EVIDENCE_GROUPS))
def test_a_generic_type_is_no_blank_of_the_form(phase: Phase) -> None:
    notes = ANALYST_NOTES if phase is Phase.ANALYST else PROGRAMMER_NOTES
    assert len(evidence(notes.replace(": ", ": List<String> "), phase)) == 4


@pytest.mark.scenario("001", "Approved with sufficient analyst evidence on cycle 2")
@pytest.mark.scenario("001", "Approved rejected on cycle 1")
@pytest.mark.scenario("001", "Approved rejected with insufficient evidence")
@pytest.mark.parametrize("phase", list(EVIDENCE_GROUPS))
def test_approved_needs_verdict_cycle_and_evidence(phase: Phase) -> None:
    config = settings()
    assert is_review_approved(approval(phase), phase, 2, config)
    assert not is_review_approved(approval(phase), phase, 1, config)
    assert not is_review_approved(approval(phase).replace("APPROVED", "REVISE"), phase, 2, config)
    assert not is_review_approved(approval(phase).replace("REVIEW_NOTES:", "NOTES:"), phase, 2, config)
    assert not is_review_approved("REVIEW_RESULT: APPROVED\nREVIEW_NOTES:\nfine", phase, 2, config)
    assert not is_review_approved("", phase, 2, config)


def test_evidence_counts_only_in_the_notes() -> None:
    text = f"{PROGRAMMER_NOTES}\nREVIEW_RESULT: APPROVED\nREVIEW_NOTES:\nall is well"
    assert not is_review_approved(text, Phase.PROGRAMMER, 2, settings())


@pytest.mark.parametrize(("least", "approved"), [(1, True), (2, True), (3, False)])
def test_the_minimum_of_evidence_is_a_setting(least: int, approved: bool) -> None:
    text = "REVIEW_RESULT: APPROVED\nREVIEW_NOTES:\n- code read\n- tests run"
    assert is_review_approved(text, Phase.PROGRAMMER, 2, settings(review_evidence_min_match=least)) is approved


@pytest.mark.scenario("001", "Approved without evidence when evidence check disabled")
def test_evidence_can_be_switched_off() -> None:
    config = settings(require_review_evidence=False)
    assert is_review_approved("REVIEW_RESULT: APPROVED", Phase.ANALYST, 2, config)
    assert not is_review_approved("REVIEW_RESULT: APPROVED", Phase.ANALYST, 1, config)


@pytest.mark.parametrize("opening", ["**REVIEW_NOTES:**", "## Review notes", "REVIEW_NOTES", "- REVIEW_NOTES:"])
def test_the_notes_are_found_in_any_style(opening: str) -> None:
    text = approval(Phase.PROGRAMMER).replace("REVIEW_NOTES:", opening)
    assert is_review_approved(text, Phase.PROGRAMMER, 2, settings())


def test_each_refusal_says_why() -> None:
    config = settings()
    reasons = {
        judge_review(text, Phase.ANALYST, cycle, config).reason
        for text, cycle in [
            ("nothing", 2),
            ("REVIEW_RESULT: REVISE", 2),
            (approval(), 1),
            ("REVIEW_RESULT: APPROVED", 2),
            ("REVIEW_RESULT: APPROVED\nREVIEW_NOTES:\nfine", 2),
            (approval(), 2),
        ]
    }
    assert len(reasons) == 6


@pytest.mark.parametrize("line", ["EVIDENCE:", "## Evidence", "**EVIDENCE**", "Evidence: it ran"])
def test_a_section_reaches_from_its_line_to_the_end(line: str) -> None:
    assert section(f"before\n{line}\nafter\n", EVIDENCE) == f"{line}\nafter"
    assert section("before\nafter", REVIEW_NOTES) is None
