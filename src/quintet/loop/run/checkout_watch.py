"""What changes in the user's checkout while agents work in a worktree: it is told, and left as it is."""

from pathlib import Path

from quintet.errors import GitError
from quintet.guard import Change, Outline, differences, outline
from quintet.layout import Workspace


class CheckoutWatch:
    """Looks at the checkout before each turn and after it. There is nothing to see where a run works in it."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._seen: Outline | None = None

    def before(self) -> None:
        """Look before a turn, unless the end of the last one was seen."""
        if self._workspace.project != self._workspace.tree and self._seen is None:
            self._seen = _look(self._workspace.project)

    def after(self) -> tuple[Change, ...]:
        """What has changed since the last look."""
        if self._seen is None:
            return ()
        before, self._seen = self._seen, _look(self._workspace.project)
        return differences(before, self._seen) if self._seen else ()


def _look(project: Path) -> Outline | None:
    try:
        return outline(project)
    except GitError:
        return None
