"""Replies of hundreds of megabytes: kept whole, carried on in excerpt, judged by all lines, in little memory."""

import json
import sys
from pathlib import Path

import pytest

from quintet.loop.decide import gate
from quintet.loop.decide.gate import Verdict
from quintet.loop.record.responses import EXCERPT, LONGEST_REPLY, blocks
from quintet.roles import PEER_PROGRAMMER, PROGRAMMER, TESTER
from tests.loop.runs import approval
from tests.stub.project import Project
from tests.stub.server import Turn
from tests.stub.simulated import SimulatedProject

LOG = b"one of the many lines of a log\n"
MEGABYTE = 1_000_000
MEASURE = """\
import pathlib, resource, subprocess, sys
code = subprocess.call(sys.argv[2:])
pathlib.Path(sys.argv[1]).write_text(str(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss))
sys.exit(code)
"""


def long_turn(project: Project, first: bytes, last: bytes, megabytes: int, line: bytes = LOG) -> Turn:
    """A turn whose response file is written piece by piece."""

    def write() -> None:
        path = project.response_file(TESTER)
        with path.with_suffix(".draft").open("wb") as file:
            file.write(first)
            piece = line * (MEGABYTE // len(line) + 1)
            for _ in range(megabytes):
                file.write(piece)
            file.write(last)
        path.with_suffix(".draft").rename(path)

    return Turn(None, act=write)


def peak_of(project: Project) -> int:
    """Run to the end; the most memory in megabytes that its process has had."""
    told = project.home / "peak"
    done = project.run(prefix=[sys.executable, "-c", MEASURE, str(told)])
    assert done.code == 0, done.text
    return int(told.read_text()) // 1024


@pytest.mark.skipif(sys.platform != "linux", reason="the unit of ru_maxrss is another elsewhere")
def test_a_reply_of_300_megabytes_needs_few_of_memory(command: Project) -> None:
    usual = peak_of(command)
    command.stub.script[TESTER] = [
        long_turn(command, b"EVIDENCE:\n", b"\nRESULT: PASS\n", 300),
    ]
    more = peak_of(command)
    assert more < usual + 40, "the report shows up to 2 MB of it, too"
    [kept] = [name for name in command.archived if name.endswith("-tester.md")]
    assert (command.archive / kept).stat().st_size > 300 * MEGABYTE
    assert len(command.state["outputs"]["tester"]) < 2 * EXCERPT + 1000
    assert not command.response_file(TESTER).exists()
    assert any("bytes; all of it is kept as" in event["text"] for event in command.events("warned"))


def test_the_verdict_is_found_in_the_middle(project: SimulatedProject) -> None:
    middle = LOG * 100_000 + b"\nRESULT: FAIL\n" + LOG * 10
    project.stub.script[TESTER] = [long_turn(project, middle, b"", 4)]
    done = project.run(MAX_ROUNDS="1")
    assert done.code == 1
    [judged] = project.events("test_judged")
    assert judged["verdict"] == "FAIL"
    assert "RESULT: FAIL" not in project.state["outputs"]["tester"]
    assert "bytes are left out here" in project.state["outputs"]["tester"]


def test_a_long_review_and_a_long_summary_travel_on_in_excerpt(project: SimulatedProject) -> None:
    long = "a line of the diff\n" * 200_000
    project.stub.script[PROGRAMMER] = [Turn(f"## Files changed\n{long}")]
    project.stub.script[PEER_PROGRAMMER] = [Turn(f"{approval(PEER_PROGRAMMER.phase)}\n{long}")]
    done = project.run()
    assert done.code == 0, done.text
    state = json.dumps(project.state)
    assert len(state) < 4 * 2 * EXCERPT
    kept = {name: (project.archive / name).stat().st_size for name in project.archived}
    assert kept["003-programmer.md"] > LONGEST_REPLY
    assert kept["004-programmer_review.md"] > LONGEST_REPLY


def test_a_long_answer_on_the_screen_travels_on_in_excerpt(project: SimulatedProject) -> None:
    screen = "EVIDENCE:\n" + "seen it work\n" * 250_000 + "RESULT: PASS\n" + "and more\n" * 100_000
    project.stub.script[TESTER] = [Turn(None, screen=screen)]
    done = project.run(IDLE_GRACE_SECONDS="0.2", MAX_FILE_REMINDERS="0", STRICT_FILE_HANDOFF="0")
    assert done.code == 0, done.text
    assert len(project.state["outputs"]["tester"]) < 2 * EXCERPT + 1000
    [kept] = [name for name in project.archived if name.endswith("-tester.md")]
    assert (project.archive / kept).stat().st_size > LONGEST_REPLY


def test_the_output_of_the_users_command_is_bounded(project: SimulatedProject) -> None:
    done = project.run(VERIFY_CMD="yes | head -c 50000000; exit 1", MAX_ROUNDS="1")
    assert done.code == 1
    [kept] = [name for name in project.archived if name.endswith("-verify.md")]
    assert (project.archive / kept).stat().st_size < LONGEST_REPLY


def as_blocks(data: bytes, tmp_path: Path) -> list[str]:
    path = tmp_path / "reply"
    path.write_bytes(data)
    with path.open("rb") as file:
        found = list(blocks(file))
        assert not file.closed
    return found


@pytest.mark.parametrize("ending", [b"\n", b"\r\n", b"\r"])
def test_blocks_hold_whole_lines_of_one_kind(tmp_path: Path, ending: bytes) -> None:
    lines = [b"line %d" % number for number in range(60_000)]
    found = as_blocks(b"\xef\xbb\xbf" + ending.join(lines), tmp_path)
    assert len(found) > 2
    assert "".join(found) == b"\n".join(lines).decode()
    assert all(block.endswith("\n") for block in found[:-1])


def test_a_line_without_an_end_is_cut_and_is_no_verdict(tmp_path: Path) -> None:
    found = as_blocks(b"RESULT: PASS" + b" " * 3 * MEGABYTE + b"x\nRESULT: FAIL\n", tmp_path)
    assert sum(map(len, found)) < MEGABYTE
    assert gate.read_test_verdict(iter(found)) is Verdict.FAIL
    found = as_blocks(b"RESULT: PASS" + b" " * 3 * MEGABYTE + b"x\n", tmp_path)
    assert gate.read_test_verdict(iter(found)) is None


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("RESULT: PASS\n", Verdict.PASS),
        ("```\nRESULT: PASS\n", None),
        ("```\nRESULT: FAIL\n```\nRESULT: PASS\n", Verdict.PASS),
        ("> RESULT: FAIL\nRESULT: PASS\n", Verdict.PASS),
        ("```markdown\nRESULT: PASS\n```\n", Verdict.PASS),
        ("RESULT: PASS\nRESULT: FAIL\n", Verdict.FAIL),
    ],
)
@pytest.mark.parametrize("padding", ["a line\n" * 60_000, "\n" * 300_000])
def test_a_stream_is_read_by_the_rules_of_a_text(
    tmp_path: Path, text: str, verdict: Verdict | None, padding: str
) -> None:
    """The lines of the reply lie in different blocks."""
    spread = padding.join(text.splitlines(keepends=True))
    found = as_blocks(spread.encode(), tmp_path)
    assert len(found) > 1 or text.count("\n") == 1
    assert gate.read_test_verdict(iter(found)) is gate.read_test_verdict(spread) is verdict
