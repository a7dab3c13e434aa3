"""The actions of a turn: collected over reminders, waited for where a record lags, and judged in real runs."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from quintet.actions import ActionKind, TurnActions, action, bounded
from quintet.api.backend import TerminalView
from quintet.changed_tests import FileLoss, TestLosses
from quintet.errors import PassingFault
from quintet.loop.decide.prompts import Prompts
from quintet.loop.decide.steps import Ask
from quintet.loop.run.actions import LAG_SECONDS, ActionLedger
from quintet.roles import PEER_PROGRAMMER, PROGRAMMER, TESTER
from tests.loop.runs import TASK, new_state, settings
from tests.stub.fake import FakeBackend, FakeClock
from tests.stub.replies import PASS
from tests.watch.scripted import Scripted, scripted, story, turns

NOTHING = TurnActions()
RAN = bounded([action(ActionKind.COMMAND, "make test", 0)])
READ = bounded([action(ActionKind.READ, "slug.py")])


@dataclass
class Recorded(FakeBackend):
    """A server that tells these actions, one after the other, the last for ever."""

    told: list[TurnActions | None] = field(default_factory=list)

    def get_terminal(self, terminal_id: str, seconds: float = 1.0) -> TerminalView:  # noqa: ARG002
        return TerminalView(actions=self.told.pop(0) if len(self.told) > 1 else self.told[0])


def ledger(*told: TurnActions | None) -> tuple[ActionLedger, Recorded, FakeClock]:
    clock = FakeClock()
    return ActionLedger(clock), Recorded(clock, told=list(told)), clock


def test_a_reminder_begins_another_part_of_the_same_turn() -> None:
    actions, server, clock = ledger(RAN, READ)
    actions.note(server, "t")
    assert actions.close(server, "t", wait=True) == RAN + READ
    assert actions.close(server, "t", wait=True) == READ, "the next turn begins with nothing"
    assert clock.now() == 0.0


def test_a_record_that_lags_behind_is_waited_for() -> None:
    actions, server, clock = ledger(NOTHING, NOTHING, RAN)
    assert actions.close(server, "t", wait=True) == RAN
    assert 0.0 < clock.now() < LAG_SECONDS
    actions, server, clock = ledger(NOTHING)
    assert actions.close(server, "t", wait=True) == NOTHING
    assert clock.now() >= LAG_SECONDS
    actions, server, clock = ledger(NOTHING, RAN)
    assert actions.close(server, "t", wait=False) == NOTHING
    assert clock.now() == 0.0


@pytest.mark.parametrize(("parts", "total"), [((None,), None), ((NOTHING, None), None), ((RAN, None), RAN)])
def test_what_is_partly_unknown_is_unknown_unless_something_was_done(
    parts: tuple[TurnActions | None, ...], total: TurnActions | None
) -> None:
    actions, server, clock = ledger(*parts)
    for _ in parts[1:]:
        actions.note(server, "t")
    assert actions.close(server, "t", wait=True) == total
    assert clock.now() == 0.0


def test_a_server_that_does_not_answer_tells_of_nothing() -> None:
    class Silent(Recorded):
        def get_terminal(self, terminal_id: str, seconds: float = 1.0) -> TerminalView:  # noqa: ARG002
            raise PassingFault("no answer")

    clock = FakeClock()
    assert ActionLedger(clock).close(Silent(clock), "t", wait=True) is None


def test_the_reviewer_of_the_code_is_told_what_the_tests_have_lost() -> None:
    lost = TestLosses((FileLoss("tests/test_a.py", tests=("test_x",), skips=1),))
    prompts = Prompts(settings(), TASK, new_state(settings()), lost)
    assert "- tests/test_a.py: 1 test removed (test_x), 1 skip added" in prompts.build(Ask(PEER_PROGRAMMER, 1, 1))
    assert "lost of its tests" not in prompts.build(Ask(PROGRAMMER, 1, 1))
    assert "lost of its tests" not in Prompts(settings(), TASK, prompts.state).build(Ask(PEER_PROGRAMMER, 1, 1))


def verdicts(project: Scripted) -> list[tuple[str, bool]]:
    return [(event["verdict"], event["counts"]) for event in project.journal if event["event"] == "test_judged"]


def asked(project: Scripted) -> list[str]:
    return [event["step"] for event in project.journal if event["event"] == "prompt_sent"]


def idle(*replies: str) -> list[list[dict[str, Any]]]:
    """Turns in which nothing is done."""
    return [[{"reply": reply}] for reply in replies]


TESTER_ALONE = {"START_AGENT": TESTER.name, "MAX_ROUNDS": "1"}


def test_a_tester_that_runs_nothing_fails_the_run() -> None:
    with scripted({TESTER.name: idle(PASS)}) as project:
        code, output = project.call("run", **TESTER_ALONE)
        assert code == 1, output
        assert verdicts(project) == [("PASS", False), ("FAIL", True)]
        assert asked(project) == ["1-1-tester", "1-1-tester-again"]
        assert "has run nothing" in (project.folder / "report.md").read_text()


def test_a_tester_that_runs_the_scenario_when_asked_again_passes() -> None:
    with scripted({TESTER.name: [*idle(PASS), *turns(PASS)]}) as project:
        code, output = project.call("run", **TESTER_ALONE)
        assert code == 0, output
        assert verdicts(project) == [("PASS", False), ("PASS", True)]


@pytest.mark.parametrize("unknown", [{"REQUIRE_ACTIONS": "0"}, {"args": "--no-record"}])
def test_where_it_is_not_wanted_or_not_known_the_word_counts(unknown: dict[str, str]) -> None:
    with scripted({TESTER.name: idle(PASS)}) as project:
        if "args" in unknown:
            (project.wd / "quintet.json").write_text('{"agents": {"tester": {"args": ["--no-record"]}}}')
            unknown = {}
        code, output = project.call("run", **TESTER_ALONE, **unknown)
        assert code == 0, output
        assert verdicts(project) == [("PASS", True)]


def test_a_reviewer_that_looks_at_nothing_approves_nothing_and_hears_of_lost_tests() -> None:
    roles = story()
    good = [[{"write": {"path": "test_a.py", "text": ""}}, *roles[PROGRAMMER.name][0]]]
    review = roles[PEER_PROGRAMMER.name][0][-1]["reply"]
    script = {**roles, PROGRAMMER.name: good, PEER_PROGRAMMER.name: [*idle(review), *turns(review)]}
    with scripted(script | {TESTER.name: turns(PASS)}) as project:
        (project.wd / "test_a.py").write_text("def test_a():\n    assert 1\n")
        project.git("add", "--all")
        project.git("commit", "--quiet", "--message", "Test")
        code, output = project.call("run", START_AGENT=PROGRAMMER.name)
        assert code == 0, output
        assert asked(project) == [
            "1-1-programmer",
            "1-1-programmer_review",
            "1-1-programmer_review-again",
            "1-1-tester",
        ]
        (lost,) = [event for event in project.journal if event["event"] == "tests_lost"]
        assert lost["files"] == ["test_a.py: 1 test removed (test_a), 1 assertion removed"]
        prompt = sorted((project.folder / "prompts").iterdir())[1].read_text()
        assert "- test_a.py: 1 test removed (test_a), 1 assertion removed" in prompt
