"""The pull request of a task that has passed, opened by its slot after the branch was pushed."""

from dataclasses import replace

from quintet import git
from quintet.fleet.checkpoint import Clone
from quintet.fleet.task_settings import load_task_settings
from quintet.fleet.tasks import QueuedTask
from quintet.layout import Workspace
from quintet.loop.decide.steps import FollowUpEnded
from quintet.loop.journal import Warned
from quintet.loop.record.saved_state import load_project_state
from quintet.loop.run.hand_over import AGAIN, open_pull_request


def open_for(task: QueuedTask, clone: Clone) -> str:
    """Open the pull request that the settings of a task ask for; why there is none."""
    state = load_project_state(clone.tree)
    if state is None:
        return "no pull request: the state of the run is gone"
    wish = clone.spec.settings["post_processing"]["pull_request"]
    loaded = load_task_settings(clone.spec, task.id, task.attempt, clone.tree, {})
    place = Workspace(clone.tree, clone.tree, clone.branch)
    git.run(clone.top, "config", "remote.origin.url", clone.spec.repository)  # agents may have changed it
    done = open_pull_request(clone.branch, replace(loaded.settings, chosen=place, post_pr=wish), state)
    events = done.events if isinstance(done, FollowUpEnded) else ()
    return next((event.text.partition(AGAIN)[0] for event in events if isinstance(event, Warned)), "")
