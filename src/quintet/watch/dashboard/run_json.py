"""A run as JSON, for the dashboard and for programs."""

import time
from pathlib import Path
from typing import Any, Final

from quintet.loop.journal import Event
from quintet.roles import ROLES
from quintet.watch.runs.advice import Code, advise
from quintet.watch.runs.event_lines import line_for
from quintet.watch.runs.folders import read_text
from quintet.watch.runs.formatting import harmless
from quintet.watch.runs.model import Run, seconds_of, tokens_of
from quintet.watch.runs.parts import Handoff, Tokens, kind_of
from quintet.watch.runs.shortened import shortened
from quintet.watch.runs.summary import headline

SHOWN_LINES: Final = 60
"""of the journal"""


def tell_run(run: Run, title: str, events: list[Event]) -> dict[str, Any]:
    """Everything that the page shows of a run but the texts."""
    current = run.current
    return {
        **tell_in_short(run, title),
        "wd": run.wd,
        "reason": run.reason,
        "advice": [[{"code": isinstance(part, Code), "text": harmless(part)} for part in step] for step in advise(run)],
        "asking": run.asking,
        "waiting": harmless(run.waiting),
        "resumes": run.resumes,
        "now": time.time(),
        "ended": run.ended,
        "spells": run.spells,
        "round": run.round,
        "current": run.handoffs.index(current) if current else None,
        "tokens": _tokens(tokens_of(run.handoffs)),
        "roles": [{"name": role.name, "phase": role.phase, "kind": kind_of(role)} for role in ROLES],
        "terminals": {role: {"id": id_, "provider": provider} for role, (id_, provider) in run.terminals.items()},
        "handoffs": [_handoff(run, handoff) for handoff in run.handoffs],
        "remarks": [{"at": remark.at, "kind": remark.kind, "text": remark.text} for remark in run.remarks],
        "journal": [{"at": seconds_of(event.at), "text": harmless(line_for(event))} for event in events[-SHOWN_LINES:]],
    }


def tell_in_short(run: Run, title: str) -> dict[str, Any]:
    """One line of the list of runs."""
    tokens = tokens_of(run.handoffs)
    return {
        "id": run.id,
        "status": run.status,
        "headline": headline(run),
        "title": harmless(title),
        "began": run.began,
        "seconds": run.seconds(),
        "rounds": len(run.rounds),
        "tokens": tokens.total if tokens else None,
    }


def tell_handoff(folder: Path, run: Run, handoff: Handoff) -> dict[str, Any]:
    """The texts of a handoff: the prompt as it was sent, the response, and what condensation left out."""
    parts = shortened(folder, run, handoff)
    return {
        "prompt": harmless(read_text(folder, handoff.prompt_file)),
        "reply": harmless(read_text(folder, handoff.reply_file)),
        "output": harmless(read_text(folder, handoff.verdict.output_file if handoff.verdict else "")),
        "saved": sum(part.saved for part in parts),
        "shortened": [
            {
                "what": part.what,
                "removed": [harmless(line) for line in part.removed],
                "size": part.size,
                "saved": part.saved,
            }
            for part in parts
        ],
    }


def _handoff(run: Run, handoff: Handoff) -> dict[str, Any]:
    verdict = handoff.verdict
    return {
        "step": handoff.step,
        "role": handoff.role.name,
        "kind": kind_of(handoff.role),
        "round": handoff.round,
        "cycle": handoff.cycle,
        "again": handoff.again,
        "sent": handoff.sent,
        "taken": handoff.taken,
        "missed": handoff.missed,
        "seconds": run.worked(handoff),
        "source": handoff.source,
        "reminders": handoff.reminders,
        "tokens": _tokens(handoff.tokens),
        "verdict": verdict
        and {
            "word": verdict.word,
            "outcome": verdict.outcome,
            "label": harmless(verdict.label),
            "reason": harmless(verdict.reason),
            "evidence": verdict.evidence,
            "command": harmless(verdict.command),
        },
    }


def _tokens(tokens: Tokens | None) -> dict[str, Any] | None:
    if tokens is None:
        return None
    return {
        "input": tokens.input,
        "cached": tokens.cached,
        "output": tokens.output,
        "total": tokens.total,
        "cost": tokens.cost,
        "unpriced": tokens.unpriced,
    }
