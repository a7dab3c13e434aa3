"""What agents did in their turns, in words."""

from collections import Counter

from quintet.actions import Action, ActionKind, TurnActions
from quintet.loop.decide.evidence import is_work
from quintet.prose import plural
from quintet.watch.runs.formatting import one_line
from quintet.watch.runs.handoffs import Handoff

_COUNTED = {
    ActionKind.COMMAND: ("command", ""),
    ActionKind.READ: ("file", " read"),
    ActionKind.CHANGE: ("file", " changed"),
    ActionKind.TOOL: ("other tool", ""),
}


def work_of(actions: TurnActions | None) -> tuple[Action, ...]:
    """What was done beside writing down the response."""
    return tuple(action for action in actions.items if is_work(action)) if actions else ()


def action_words(action: Action) -> str:
    """For instance `exit code 2: make test`."""
    ended = f"exit code {action.exit_code}" if action.exit_code is not None else "exit code not known"
    how = {ActionKind.READ: "read", ActionKind.CHANGE: "changed", ActionKind.TOOL: "used"}.get(action.kind, ended)
    return f"{how}: {one_line(action.text)}"


def action_lines(actions: TurnActions | None) -> list[str]:
    """One line for each thing that was done."""
    lines = [action_words(action) for action in work_of(actions)]
    return [*lines, f"... and {actions.left_out} more"] if actions and actions.left_out else lines


def did_words(handoff: Handoff) -> str:
    """For instance `3 commands (1 failed), 2 files read`; empty where no record tells."""
    if handoff.actions is None:
        return ""
    counts = Counter(action.kind for action in work_of(handoff.actions))
    failed = len(failed_commands(handoff))
    parts = [
        f"{plural(counts[kind], noun)}{how}" + (f" ({failed} failed)" if failed and kind is ActionKind.COMMAND else "")
        for kind, (noun, how) in _COUNTED.items()
        if counts[kind]
    ]
    parts += [f"{handoff.actions.left_out} more actions"] if handoff.actions.left_out else []
    return ", ".join(parts) or "nothing"


def failed_commands(handoff: Handoff) -> list[Action]:
    """The commands of a turn that ended with another exit code than 0."""
    return [action for action in work_of(handoff.actions) if action.failed]


def why_words(handoff: Handoff) -> str:
    """Why a verdict was judged as it was; a PASS after a command that failed is marked."""
    verdict = handoff.verdict
    return "; ".join(filter(None, (verdict.why, doubt_words(handoff)))) if verdict else ""


def doubt_words(handoff: Handoff) -> str:
    """The mark of a good verdict in whose turn a command failed; empty for any other, and for reviews."""
    failed = len(failed_commands(handoff))
    if not failed or handoff.role.reviews or not (handoff.verdict and handoff.verdict.good):
        return ""
    return f"{plural(failed, 'command')} in this turn ended with another exit code than 0"
