"""What the remote of a task keeps of its run: the records, from its archive or its last checkpoint."""

import json
import tempfile
from pathlib import Path

from quintet import git
from quintet.fleet.checkpoint import RECORDS, SECONDS
from quintet.layout import JOURNAL, STATE
from quintet.loop.record.orphans import is_folder_name


def read_records(repository: str, name: str) -> tuple[str, bytes]:
    """The id and the journal of a task's run, as far as its remote knows it; nothing where it knows none."""
    with tempfile.TemporaryDirectory() as folder:
        run = bring_records(repository, name, Path(folder))
        return (run.name, (run / JOURNAL).read_bytes()) if run else ("", b"")


def bring_records(repository: str, name: str, project: Path) -> Path | None:
    """Bring the records of a task's run to an empty folder, as if it had run there.

    The folder of the run; None where the remote knows none.
    """
    with tempfile.TemporaryDirectory() as folder:
        git.run(Path(folder), "init", "--quiet", "--bare", ".")
        refs = (f"refs/quintet/{name}/{end}" for end in ("archive", "state"))
        return next(filter(None, (_bring(repository, ref, Path(folder), project) for ref in refs)), None)


def _bring(repository: str, ref: str, folder: Path, project: Path) -> Path | None:
    if git.run(folder, "fetch", "--quiet", "--depth=1", repository, ref, seconds=SECONDS, check=False).code:
        return None
    # a link could lead to any file of this machine
    words = ("-c", "core.symlinks=false", "restore", "--source=FETCH_HEAD", "--worktree", "--", f":/{RECORDS}")
    env = {"GIT_DIR": str(folder), "GIT_WORK_TREE": str(project)}
    found = project / RECORDS
    if git.run(project, *words, env=env, seconds=SECONDS, check=False).code or not (found / JOURNAL).is_file():
        return None
    try:
        run_id = str(json.loads((found / STATE).read_bytes())["run_id"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return found.rename(found.with_name(run_id)) if is_folder_name(run_id) else None
