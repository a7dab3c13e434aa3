"""What the scripted agents of a run do: the usual story, with one turn of it gone wrong where the plan wants that."""

from pathlib import Path
from typing import Any, Final

from harness.chaos.real.plan import AGENT, HABITS, ORDER, Plan
from quintet.roles import ANALYST, PEER_ANALYST, PEER_PROGRAMMER, PROGRAMMER, ROLES, TESTER
from tests.stub.replies import (
    ANALYST_APPROVED,
    ANALYST_SUMMARY,
    FAIL,
    PASS,
    PROGRAMMER_APPROVED,
    PROGRAMMER_SUMMARY,
)
from tests.watch.scripted import REVISE

THINK_SECONDS: Final = 0.1
"""so that there is something to interrupt"""
NO_VERDICT: Final = "I have looked at all of it.\n"
_REPLIES: Final = {
    ANALYST: [ANALYST_SUMMARY],
    PEER_ANALYST: [REVISE, ANALYST_APPROVED],
    PROGRAMMER: [PROGRAMMER_SUMMARY],
    PEER_PROGRAMMER: [PROGRAMMER_APPROVED],
    TESTER: [FAIL, PASS],
}


def scene(plan: Plan, log: Path) -> dict[str, Any]:
    """The scenario of a plan. Every reply says who wrote it and in which turn, so that each can be found again."""
    roles = {}
    for role in ROLES:
        turns = [_turn(text) for text in _REPLIES[role][-1 if plan.brief else 0 :]]
        if plan.kind.startswith(AGENT) and role is plan.role:
            place = ORDER[: plan.step - 1].count(role)
            text = _REPLIES[role][min(place, len(turns) - 1)]
            turns += [turns[-1]] * (place - len(turns) + 1)
            turns.insert(place, _wrong(text, plan.kind.removeprefix(AGENT)))
        roles[role.name] = {"turns": turns, "log": str(log)}
    return roles


def _turn(text: str, **more: Any) -> list[dict[str, Any]]:
    return [{"think": THINK_SECONDS}, {"run": "ls"}, {"reply": f"{text}\nTurn {{turn}} of process {{pid}}.", **more}]


def _wrong(text: str, manner: str) -> list[dict[str, Any]]:
    no_verdict, says_only, asks = HABITS
    if manner == no_verdict:
        return _turn(NO_VERDICT)
    if manner == says_only:
        return _turn(text, manner="say_only")
    if manner == asks:
        return [{"ask_permission": "rm -rf build"}, *_turn(text)]
    return _turn(text, manner=manner, seconds=0.4)
