"""Ten runs at once in one repository, each in a worktree of its own."""

import pytest

from tests.workspace.worktree_runs import check_tasks_at_once, repository

pytestmark = pytest.mark.e2e_all


def test_ten_tasks_pass_on_ten_branches() -> None:
    with repository() as project:
        check_tasks_at_once(project, 10)
