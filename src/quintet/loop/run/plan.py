"""What a run would do first, found out without leaving a trace."""

from dataclasses import dataclass, replace

from quintet.config import Settings
from quintet.errors import RunError, StateError
from quintet.loop.decide import flow
from quintet.loop.decide.prompts import Prompts
from quintet.loop.decide.prompts.own import check_own_texts
from quintet.loop.decide.state import State
from quintet.loop.decide.steps import Ask, Step
from quintet.loop.decide.task import given_task, saved_task
from quintet.loop.record.saved_state import read_saved
from quintet.loop.run.resume import check_task, not_resumable_reason


@dataclass(frozen=True)
class FirstStep:
    """The first step of a run and its prompt."""

    step: Step
    prompt: str
    """empty where the step needs none"""
    task: str = ""
    """the text that the run is about"""
    resumes: str = ""
    """the run that is gone on with; empty for a new one"""


def plan(settings: Settings, named: str = "") -> FirstStep:
    """The same decisions as those of a run, and the same errors."""
    check_settings(settings)
    saved = _resumable(settings)
    if saved:
        check_task(saved, settings, named)
    task = saved_task(saved.prompt, settings) if saved else given_task(settings)
    state = saved or replace(flow.first_state(settings), check_first=False)  # it is the first prompt that is asked for
    step = flow.next_step(state, settings)
    prompt = Prompts(settings, task, state).build(step) if isinstance(step, Ask) else ""
    return FirstStep(step, prompt, saved.prompt if saved else settings.prompt, saved.run_id if saved else "")


def check_settings(settings: Settings) -> None:
    """Refuse what would stop a run in its middle."""
    if settings.prompts_dir:
        check_own_texts(settings.prompts_dir)


def _resumable(settings: Settings) -> State | None:
    """The saved run to go on with; an unreadable state is left alone."""
    try:
        saved = read_saved(settings.state_file, settings.workspace.tree, settings.provider).state
        reason = not_resumable_reason(saved, settings.workspace.tree)
    except StateError as error:
        saved, reason = None, str(error)
    if settings.resume and reason:
        raise RunError(f"cannot resume: {reason}")
    return None if reason or settings.resume is False else saved
