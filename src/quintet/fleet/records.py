"""What the remote of a task keeps of its run: the records, in the commit that the queue has recorded last."""

import json
import tempfile
from pathlib import Path

from quintet import git
from quintet.fleet.checkpoint import RECORDS, SECONDS
from quintet.layout import JOURNAL, STATE
from quintet.loop.record.orphans import is_folder_name


def read_records(repository: str, commit: str) -> tuple[str, bytes]:
    """The id and the journal of a task's run, as a checkpoint or archive has them; nothing where it has none."""
    with tempfile.TemporaryDirectory() as folder:
        run = bring_records(repository, commit, Path(folder))
        return (run.name, (run / JOURNAL).read_bytes()) if run else ("", b"")


def bring_records(repository: str, commit: str, project: Path) -> Path | None:
    """Bring the records of a task's run to an empty folder, as if it had run there.

    `commit` is the one that the queue has recorded: anybody with push rights could change a ref. The folder of the run;
    None where the remote has no records in it.
    """
    with tempfile.TemporaryDirectory() as folder:
        git.run(Path(folder), "init", "--quiet", "--bare", ".")
        return _bring(repository, commit, Path(folder), project) if commit else None


def _bring(repository: str, commit: str, folder: Path, project: Path) -> Path | None:
    if git.run(folder, "fetch", "--quiet", "--depth=1", repository, commit, seconds=SECONDS, check=False).code:
        return None
    # a link could lead to any file of this machine
    words = ("-c", "core.symlinks=false", "restore", f"--source={commit}", "--worktree", "--", f":/{RECORDS}")
    env = {"GIT_DIR": str(folder), "GIT_WORK_TREE": str(project)}
    found = project / RECORDS
    if git.run(project, *words, env=env, seconds=SECONDS, check=False).code or not (found / JOURNAL).is_file():
        return None
    try:
        run_id = str(json.loads((found / STATE).read_bytes())["run_id"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return found.rename(found.with_name(run_id)) if is_folder_name(run_id) else None
