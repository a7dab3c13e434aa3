"""A run as JSON, for the dashboard and for programs."""

import time
from pathlib import Path
from typing import Any, Final

from quintet.actions import TurnActions
from quintet.loop.decide.state import When
from quintet.loop.journal import Event
from quintet.roles import ROLES
from quintet.watch.runs.action_words import action_lines, did_words, doubt_words
from quintet.watch.runs.advice import Code, advise
from quintet.watch.runs.condensation import condensed_texts
from quintet.watch.runs.diff import Diff
from quintet.watch.runs.event_lines import line_for, violation_words
from quintet.watch.runs.folders import read_text
from quintet.watch.runs.formatting import printable
from quintet.watch.runs.handoffs import Handoff, PricedTokens, kind_of
from quintet.watch.runs.model import Run, timestamp
from quintet.watch.runs.patches import parse_patch, show
from quintet.watch.runs.summary import headline

SHOWN_LINES: Final = 60
"""of the journal"""


def run_json(run: Run, title: str, events: list[Event]) -> dict[str, Any]:
    """A run without the texts of its prompts and replies."""
    current = run.current
    return {
        **run_line_json(run, title),
        "wd": run.wd,
        "project": run.project or run.wd,
        "branch": run.branch,
        "reason": run.reason,
        "advice": [
            [{"code": isinstance(part, Code), "text": printable(part)} for part in step] for step in advise(run)
        ],
        "asking": run.asking,
        "waiting": printable(run.waiting),
        "approval": run.approval,
        "resumes": run.resumes,
        "now": time.time(),
        "ended": run.ended,
        "active_intervals": run.active_intervals,
        "round": run.round,
        "current": run.handoffs.index(current) if current else None,
        "tokens": _tokens(run.tokens),
        "roles": [{"name": role.name, "phase": role.phase, "kind": kind_of(role)} for role in ROLES],
        "terminals": {role: {"id": id_, "provider": provider} for role, (id_, provider) in run.terminals.items()},
        "handoffs": [_handoff(run, handoff) for handoff in run.handoffs],
        "checks": [
            {
                "round": check.round,
                "when": check.when,
                "check": printable(check.title),
                "exit_code": check.exit_code,
                "file": printable(check.file),
            }
            for check in run.checks
        ],
        "confirmed_by": {printable(title): code for title, code in run.confirmed_by.items()},
        "lost_tests": [printable(line) for line in run.lost_tests],
        "warnings": [{"at": warning.at, "kind": warning.kind, "text": warning.text} for warning in run.warnings],
        "journal": [{"at": timestamp(event.at), "text": printable(line_for(event))} for event in events[-SHOWN_LINES:]],
    }


def run_line_json(run: Run, title: str) -> dict[str, Any]:
    """A run as a line in the list of runs."""
    return {
        "id": run.id,
        "status": run.status,
        "headline": headline(run),
        "rests_on": run.rests_on,
        "title": printable(title),
        "began": run.began,
        "seconds": run.seconds(),
        "rounds": len(run.rounds),
        "tokens": run.tokens.total if run.tokens else None,
    }


def handoff_json(folder: Path, run: Run, handoff: Handoff) -> dict[str, Any]:
    """The texts of a handoff: its prompt, its reply, and what condensation left out of the prompt."""
    texts = condensed_texts(folder, run, handoff)
    return {
        "prompt": printable(read_text(folder, handoff.prompt_file)),
        "reply": printable(read_text(folder, handoff.reply_file)),
        "output": printable(_output_text(folder, run, handoff)),
        "actions": printable("\n\n".join(filter(None, (_actions_text(handoff), _violation_text(handoff))))),
        "left_out_bytes": sum(text.left_out_bytes for text in texts),
        "condensed": [
            {
                "what": text.what,
                "left_out": [printable(line) for line in text.left_out],
                "size": text.size,
                "left_out_bytes": text.left_out_bytes,
            }
            for text in texts
        ],
    }


def diff_json(diff: Diff) -> dict[str, Any]:
    """What a run has changed: files with their lines, as many as a page shows."""
    files = parse_patch(diff.patch)
    shown, more = show(files)
    return {
        "note": printable(diff.note),
        "added": sum(file.added for file in files),
        "removed": sum(file.removed for file in files),
        "more_files": more,
        "files": [
            {
                "title": printable(one.file.title),
                "words": printable(one.file.words),
                "added": one.file.added,
                "removed": one.file.removed,
                "open": one.is_open,
                "left_out": one.left_out,
                "lines": [(line.kind, line.old, line.new, printable(line.shown)) for line in one.lines],
            }
            for one in shown
        ],
    }


def _output_text(folder: Path, run: Run, handoff: Handoff) -> str:
    """What the checks of a test said."""
    if handoff.verdict is None or not handoff.verdict.command:
        return ""
    files = [check.file for check in run.checks if check.round == handoff.round and check.when == When.AFTER_TEST]
    return "\n".join(read_text(folder, file) for file in files)


def _actions_text(handoff: Handoff) -> str:
    if handoff.taken is None:
        return "The turn has not ended yet."
    if handoff.actions is None:
        return "Not known: there is no record of this turn that can be read."
    return "\n".join(action_lines(handoff.actions)) or "Nothing, by the agent's own record."


def _violation_text(handoff: Handoff) -> str:
    found = handoff.violation
    if not found or not found.paths:
        return ""
    fate = f"was undone after the turn and is kept as {found.file}" if found.undone else "was not undone"
    return "\n".join([f"It changed what it may not change; that {fate}:", *found.change_lines])


def actions_json(actions: TurnActions | None) -> dict[str, Any] | None:
    """What an agent did in a turn; None where no record tells."""
    if actions is None:
        return None
    items = [{"kind": one.kind, "text": printable(one.text), "exit_code": one.exit_code} for one in actions.items]
    return {"items": items, "left_out": actions.left_out}


def _handoff(run: Run, handoff: Handoff) -> dict[str, Any]:
    verdict = handoff.verdict
    names = ("step", "round", "cycle", "again", "sent", "taken", "missed", "source", "reminders")
    return {name: getattr(handoff, name) for name in names} | {
        "role": handoff.role.name,
        "kind": kind_of(handoff.role),
        "seconds": run.worked(handoff),
        "tokens": _tokens(handoff.tokens),
        "did": did_words(handoff),
        "doubt": doubt_words(handoff),
        "violation": printable(violation_words(handoff.violation)) if handoff.violation else "",
        "verdict": verdict
        and {
            "word": verdict.word,
            "kind": verdict.kind,
            "label": printable(verdict.label),
            "reason": printable(verdict.reason),
            "evidence": verdict.evidence,
            "command": printable(verdict.command),
        },
    }


def _tokens(tokens: PricedTokens | None) -> dict[str, Any] | None:
    return None if tokens is None else {**tokens.model_dump(), "total": tokens.total}
