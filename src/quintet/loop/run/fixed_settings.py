"""The settings of a run are fixed when it begins: a config file that is changed later counts from the next run on."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Final

from quintet import files
from quintet.config import TABLE, Settings
from quintet.config.load import (
    NOTHING_KEPT,
    Kept,
    Loaded,
    find_config,
    load_settings,
    settings_as_json,
    settings_to_keep,
)
from quintet.config.table import PROVIDERS_KEY, WORKTREE
from quintet.errors import RunError
from quintet.layout import PROMPT_TEXTS, SETTINGS, Workspace
from quintet.loop.decide.prompts.texts import shipped_texts
from quintet.loop.record.orphans import is_folder_name
from quintet.loop.record.run_record import RunRecord, recorded_runs
from quintet.loop.run.choose_workspace import choose, in_workspace
from quintet.loop.run.resume import unfinished_state

_LARGEST: Final = 10_000_000
_MOST_NAMED: Final = 5
_BY_THE_USER: Final = {place for row in TABLE if row.name in ("prompt", "prompt_file") for place in (row.flag, row.env)}


def load_run_settings(
    config_file: Path | None,
    env: Mapping[str, str],
    flags: Mapping[str, Any],
    cwd: Path,
    *,
    reload: bool = False,
) -> Loaded:
    """The settings of a new run, or of the one that goes on.

    That one has its own; options, variables and another config file that the user names count before them. `reload`:
    the config file counts as it is now.
    """
    workspace: Workspace | None = None

    def load(kept: Kept = NOTHING_KEPT) -> Loaded:
        return _placed(load_settings(config_file, env, flags, cwd, kept), workspace)

    loaded = load()
    workspace = choose(loaded.settings, names_task=loaded.origin["prompt"] in _BY_THE_USER)
    loaded = _placed(loaded, workspace)
    if workspace is None:  # a new worktree: nothing goes on there
        return loaded
    record = _resumed_run(loaded.settings) or _last_run(loaded.settings)
    kept = _read_kept(record) if record else None
    if record is None or kept is None:
        return loaded
    own = load(kept)
    resumed = _resumed_run(own.settings)
    if resumed is None or resumed.run_id != record.run_id:
        return loaded
    current = load(kept.without_file)
    if reload or (config_file and loaded.file != kept.file):  # the user names another file: it counts like an option
        return current
    now, then = settings_as_json(current.settings), settings_as_json(own.settings)
    changed = [key for key in then if now.get(key) != then[key]]
    if not changed and current.settings.providers != own.settings.providers:
        changed = [PROVIDERS_KEY]  # another one, or another value of a variable
    if changed:
        file = config_file or find_config(env, flags, cwd)
        own = _warned(own, f"{file} has changed" if file else "the config file is gone", record, changed)
    return _with_kept_texts(own, record, kept)


def _placed(loaded: Loaded, workspace: Workspace | None) -> Loaded:
    """The settings of a run in a workspace, with a warning where the user wants another one than it has."""
    warnings = loaded.warnings
    if workspace and not workspace.is_worktree and loaded.settings.workspace_mode == WORKTREE:
        told = f"the unfinished run works in {workspace.project} itself, and goes on there"
        warnings = (*warnings, f"{told}; --no-resume begins a new one in a worktree")
    return replace(loaded, settings=in_workspace(loaded.settings, workspace), warnings=warnings)


def keep_settings(loaded: Loaded, record: RunRecord, *, anew: bool) -> None:
    """Write down what a run begins with, or takes now."""
    if not anew and _read_kept(record):
        return
    try:
        files.write(record.folder / SETTINGS, json.dumps(asdict(settings_to_keep(loaded)), indent=1))
    except OSError as error:
        raise RunError(f"{error.filename}: cannot be written ({error.strerror})") from None


def keep_texts(settings: Settings, record: RunRecord) -> Settings:
    """Let a run use a copy of the user's own prompt texts, which nobody edits in the meantime."""
    folder = record.folder / PROMPT_TEXTS
    if not settings.prompts_dir or Path(settings.prompts_dir) == folder:
        return settings
    try:
        _write_texts(folder, _texts_in(Path(settings.prompts_dir)))
    except OSError as error:
        raise RunError(f"{error.filename}: cannot be copied ({error.strerror})") from None
    return replace(settings, prompts_dir=str(folder))


def _with_kept_texts(own: Loaded, record: RunRecord, kept: Kept) -> Loaded:
    """The settings of a run that goes on, with the prompt texts that it has kept."""
    source, folder = own.settings.prompts_dir, record.folder / PROMPT_TEXTS
    if not source or source != kept.rows.get("prompts_dir") or not folder.is_dir():
        return own
    own = replace(own, settings=replace(own.settings, prompts_dir=str(folder)))
    texts, now = _texts_or_none(folder), _texts_or_none(Path(source))
    if changed := [f"{name}.md" for name in shipped_texts() if texts.get(name) != now.get(name)]:
        return _warned(own, f"prompt texts in {source} have changed", record, changed)
    return own


def _warned(own: Loaded, what: str, record: RunRecord, changed: Sequence[str]) -> Loaded:
    names = ", ".join(changed[:_MOST_NAMED]) + (" and others" if changed[_MOST_NAMED:] else "")
    told = f"{what} since the run {record.run_id} began ({names}), which counts from the next run on"
    return replace(own, warnings=(*own.warnings, f"{told}; --reload takes it now"))


def _texts_or_none(folder: Path) -> dict[str, bytes]:
    """The texts in a folder; none where they cannot be read, which a run notices when it uses them."""
    try:
        return _texts_in(folder)
    except OSError:
        return {}


def _texts_in(folder: Path) -> dict[str, bytes]:
    paths = {name: folder / f"{name}.md" for name in shipped_texts()}
    return {name: path.read_bytes() for name, path in paths.items() if path.exists()}


def _write_texts(folder: Path, texts: Mapping[str, bytes]) -> None:
    files.make_folder(folder)
    for name in shipped_texts():
        path = folder / f"{name}.md"
        if name in texts:
            files.write(path, texts[name])
        elif path.exists():
            files.remove(path)


def _resumed_run(settings: Settings) -> RunRecord | None:
    """The record of the run that would go on."""
    saved = unfinished_state(settings.state_file, settings.workspace.tree)
    if saved is None or settings.resume is False:
        return None
    record = RunRecord(settings.workspace.tree, saved.run_id)
    return record if is_folder_name(saved.run_id) and record.is_known else None


def _last_run(settings: Settings) -> RunRecord | None:
    """The record of the project's last run, also where the config file now names another state file."""
    runs = recorded_runs(settings.workspace.tree)
    return RunRecord(settings.workspace.tree, max(runs)) if runs else None


def _read_kept(record: RunRecord) -> Kept | None:
    """What a run has kept; None where it is of a release that kept nothing, or cannot be read."""
    try:
        found = json.loads(files.read(record.folder / SETTINGS, _LARGEST))
        providers = dict(found.get("providers", {}))  # earlier releases kept none
        return Kept(
            dict(found["rows"]), list(found["given"]), dict(found["agents"]), str(found.get("file", "")), providers
        )
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return None
