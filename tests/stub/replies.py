"""Replies that pass, and fail, the gates."""

from quintet.roles import ANALYST, PEER_ANALYST, PEER_PROGRAMMER, PROGRAMMER, TESTER, Role

TASK = "*** ORIGINAL EXPLORE SUMMARY ***\nAdd a greeting.\n\n*** SCENARIO TEST ***\nRun greet; it says hello.\n"

ANALYST_SUMMARY = "ANALYST_SUMMARY\n\n## Artifact review per file\nproposal.md\n\n## Explicit handoff\nBuild it.\n"
ANALYST_APPROVED = """REVIEW_RESULT: APPROVED
REVIEW_NOTES:
- Artifacts: read the proposal
- Traceability: P1 covered
- Downstream contract: unchanged
- Handoff: actionable
"""
PROGRAMMER_SUMMARY = "PROGRAMMER_SUMMARY\n\n## Files changed\n- greet.py\n\n## Behaviour implemented\nIt greets.\n"
PROGRAMMER_APPROVED = """REVIEW_RESULT: APPROVED
REVIEW_NOTES:
- Implementation: read greet.py
- Validation: ran pytest
- Risk: none
- Issues: none left
"""
PASS = "RESULT: PASS\nEVIDENCE:\n- greet said hello\n"
FAIL = "RESULT: FAIL\nEVIDENCE:\n- greet said goodbye\n"

SMOOTH: dict[Role, list[str]] = {
    ANALYST: [ANALYST_SUMMARY],
    PEER_ANALYST: [ANALYST_APPROVED],
    PROGRAMMER: [PROGRAMMER_SUMMARY],
    PEER_PROGRAMMER: [PROGRAMMER_APPROVED],
    TESTER: [PASS],
}
"""what each role replies in a run that passes at once"""
