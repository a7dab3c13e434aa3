"""Which actions a verdict can rest on: the writing of the response is none of them."""

import pytest

from quintet.actions import ActionKind, TurnActions, action, bounded
from quintet.loop.decide.evidence import did_work
from quintet.roles import PEER_ANALYST, PEER_PROGRAMMER, TESTER

COMMAND, READ, CHANGE, TOOL = ActionKind
FILE = "/home/me/a project/.tmp/agent-responses/test_result.md"
HEREDOC = f"cat > '{FILE}' <<'END'\nRESULT: PASS\nEVIDENCE:\n- ran: pytest; it passed && is fine\nEND"


def did(text: str, kind: ActionKind = COMMAND) -> TurnActions:
    return bounded([action(kind, text, 0)])


@pytest.mark.parametrize(
    "command",
    [
        HEREDOC,
        f"mkdir -p '/home/me/a project/.tmp/agent-responses' && {HEREDOC}",
        f"cd '/home/me/a project'\n{HEREDOC}\necho written",
        f"cat > '{FILE}' <<END\n" + "a line; with && signs | in it\n" * 200 + f"END\nwc -l '{FILE}' && cat '{FILE}'",
        f"OUT='{FILE}'; printf 'RESULT: PASS; all good\\n' > \"$OUT\"",
        'echo "RESULT: PASS; EVIDENCE: make test && ls" | tee .tmp/agent-responses/test_result.md',
        f"{{ echo 'RESULT: PASS'; echo EVIDENCE; }} > '{FILE}'",
        "true",
        "sleep 5; echo done",
        "",
    ],
)
def test_writing_the_response_is_no_work(command: str) -> None:
    assert did_work(TESTER, did(command)) is False
    assert did_work(PEER_PROGRAMMER, did(command)) is False


@pytest.mark.parametrize(
    "command",
    [
        "pytest -q",
        "cd app && npm test",
        f"sh check.sh; {HEREDOC}",
        f"{HEREDOC}\npytest -q",
        f"cat > '{FILE}' <<END\n" + "long\n" * 300 + "END\npytest",
        "echo 'hello world' | ./slug",
        "FOO=1 make check",
        'bash -lc "pytest && true"',
        "cat answer.txt",
        "python3 - <<'PY'\nprint(1)\nPY",
        "./run > out.txt 2>&1",
        "[ -f answer.txt ] && grep 42 answer.txt",
    ],
)
def test_commands_that_a_verdict_can_rest_on(command: str) -> None:
    assert did_work(TESTER, did(command)) is True


def test_a_reviewer_may_read_and_a_tester_has_to_run() -> None:
    assert did_work(TESTER, did("slug.py", READ)) is False
    assert did_work(PEER_ANALYST, did("slug.py", READ)) is True
    assert did_work(PEER_ANALYST, did(FILE, READ)) is False
    assert did_work(PEER_ANALYST, did(FILE, CHANGE)) is False
    assert did_work(TESTER, did("slug.py", CHANGE)) is False
    assert did_work(TESTER, did("mcp__browser__click", TOOL)) is True, "a scenario may need a browser"


def test_nothing_done_is_not_nothing_known() -> None:
    assert did_work(TESTER, TurnActions()) is False
    assert did_work(TESTER, None) is None
    assert did_work(TESTER, TurnActions(left_out=3)) is True
