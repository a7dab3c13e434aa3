"""Texts as agents write them, from well-behaved to absurd."""

from hypothesis import strategies as st

VERDICT_LINES = (
    "RESULT: PASS",
    "RESULT: FAIL",
    "**RESULT: PASS**",
    "## RESULT: FAIL",
    "- result: pass",
    "RESULT: PASS|FAIL",
    "RESULT: <PASS or FAIL>",
    "RESULT:",
    "REVIEW_RESULT: APPROVED",
    "REVIEW_RESULT: REVISE",
    "`REVIEW_RESULT: APPROVED`",
    "REVIEW_RESULT: APPROVED|REVISE",
    "RESULT: FAİL",
    "REVIEW_RESULT: REVıSE",
)
MARKUP_LINES = (
    "```",
    "```python",
    "~~~",
    "````markdown",
    "- ```",
    "> RESULT: PASS",
    "> ```",
    "REVIEW_NOTES:",
    "**REVIEW_NOTES:**",
    "EVIDENCE:",
    "## Evidence",
    "Required changes:",
    "### Required changes (2)",
    "## Files changed",
    "**Behaviour implemented**",
    "1. Explicit handoff",
    "Known limitations: none",
    "Title",
    "=====",
    "-----",
    "- artifact, P1; downstream. handoff",
    "file run risk gap",
    "{{explore}} {{?retry}}",
    "",
    " ",
    "\t",
    "﻿",
)
strange_text = st.text(st.characters(codec=None), max_size=20)
"""any characters at all, also surrogates that stand alone"""
agent_texts = st.builds(
    lambda lines, end: end.join(lines),
    st.lists(st.sampled_from(VERDICT_LINES + MARKUP_LINES) | strange_text, max_size=14),
    st.sampled_from(["\n", "\r\n", "\r"]),
)
readable_texts = agent_texts.map(lambda text: text.encode("utf-8", "replace").decode())
"""what can come out of a response file: whatever is not UTF-8 has been replaced"""

SHAPES = (
    "x",
    " ",
    "\n",
    "\r",
    "x\n",
    "- \n",
    "# ",
    "**",
    "_",
    "> ",
    "```\n",
    "```a\n",
    "x ```\n",
    "- ```\n",
    "~~~\nx\n",
    "`",
    "1. ",
    "<a ",
    "run ",
    "p1,",
    "file,run.risk;gap\n",
    "RESULT: PASS\n",
    "RESULT: PASS-",
    "REVIEW_RESULT: APPROVED\n",
    "REVIEW_NOTES:\n",
    "EVIDENCE:\n",
    "Required changes:\n",
    "Required changes (",
    "## Files changed\n",
    "- Risks: x\n",
    "Title\n===\n",
    "**bold**\n",
    "A label:\n",
    "\ud800",
    "日本 ",
)


def worst_texts(shape: str, size: int = 1_000_000) -> list[str]:
    """The shape again and again: alone, behind the labels that make a parser look closely, and in a fence."""
    body = shape * (size // len(shape))
    opening = "RESULT: FAIL\nREVIEW_RESULT: APPROVED\n```\n```\nREVIEW_NOTES:\nEVIDENCE:\n"
    return [body, opening + body, f"```\n{opening}{body}\n```", "RESULT: PASS" + body + "x"]
