"""The settings of a task: taken from the project when it is added, and read on the machine that carries it out."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from quintet import files
from quintet.config import TABLE, Settings, load_settings
from quintet.config.load import Loaded, settings_to_keep
from quintet.config.table import WORKTREE
from quintet.errors import QueueError
from quintet.fleet.tasks import TaskSpec, branch_of
from quintet.layout import fleet_folder
from quintet.loop.decide.prompts.texts import shipped_texts

_OF_THE_QUEUE: Final = ("queue_checkpoints", "queue_push_failed")
_LEFT_OUT: Final = (
    *("prompts_dir", "state_file", "resume", "cleanup_on_exit", "workspace_mode", "workspace_base"),
    *("workspace_branch", "workspace_dir", "workspace_with_changes", "max_limit_wait", "progress_seconds"),
    "notify_secret_file",
    *(row.name for row in TABLE if row.name.startswith("queue_") and row.name not in _OF_THE_QUEUE),
)
"""what belongs to a machine, or is as the queue needs it"""
_NETWORKS: Final = ("keep", "allow", "none")
"""what agents in the sandbox get of the network, the strictest last"""
_NO_HOST: Final = "none.invalid"
"""a name that no host can have"""
_LONGEST_WAIT: Final = 30 * 86_400.0


def settings_document(loaded: Loaded) -> dict[str, Any]:
    """The settings of a project in the form of a config file, without anything that belongs to this machine."""
    if loaded.settings.api:
        raise QueueError("API names a terminal server; a worker starts its own, so leave it out for the queue")
    kept, document = settings_to_keep(loaded), dict[str, Any]()
    for row in TABLE:
        if row.key in kept.rows and row.name not in _LEFT_OUT:
            section, _, name = row.key.rpartition(".")
            (document.setdefault(section, {}) if section else document)[name] = kept.rows[row.key]
    return document | {"agents": {role: dict(parts) for role, parts in (kept.agents or {}).items()}}


def own_prompt_texts(folder: str) -> dict[str, str]:
    """The project's own prompt texts, by name."""
    paths = {name: Path(folder) / f"{name}.md" for name in shipped_texts()} if folder else {}
    return {name: path.read_text(encoding="utf-8") for name, path in paths.items() if path.is_file()}


def load_task_settings(
    spec: TaskSpec, task_id: str, attempt: int, wd: Path, providers: Mapping[str, Mapping[str, Any]]
) -> Loaded:
    """The settings of a task on this machine, for a run in a folder that is a project or becomes one.

    `providers` are agents that the settings of this machine define.
    """
    folder = fleet_folder() / "tasks" / task_id
    files.make_folder(folder)
    document: dict[str, Any] = {"prompt": spec.text, "cleanup_on_exit": True, "providers": dict(providers)}
    if spec.prompt_texts:
        files.make_folder(folder / "prompts")
        for name, text in spec.prompt_texts.items():
            files.write(folder / "prompts" / f"{name}.md", text)
        document["prompts_dir"] = str(folder / "prompts")
    files.write(folder / "settings.json", json.dumps(spec.settings | document))
    loaded = load_settings(folder / "settings.json", {}, {"wd": str(wd)}, wd)
    settings = replace(loaded.settings, max_limit_wait=_LONGEST_WAIT)
    if not spec.is_local:  # what a run pushes could be that of a worker which has lost the task: its slot does it
        settings = replace(settings, post_push="", post_pr="off")
    else:
        branch = branch_of(task_id, attempt)
        settings = replace(settings, workspace_mode=WORKTREE, workspace_base=spec.base, workspace_branch=branch)
    return replace(loaded, settings=settings)


def sandbox_settings(settings: Settings) -> dict[str, Any]:
    """The settings of the sandbox, by name."""
    return {row.name: getattr(settings, row.name) for row in TABLE if row.key.startswith("sandbox.")}


def confine(settings: Settings, machine: Mapping[str, Any]) -> Settings:
    """The settings of a task with the sandbox of a machine as the least: a worker's owner decides for that machine.

    Where both want a sandbox, agents get only what both allow, and whatever one of them hides is hidden.
    """
    if not machine:
        return settings
    own = sandbox_settings(settings)
    network = max(own["sandbox_network"], machine["sandbox_network"], key=_NETWORKS.index)
    changes: dict[str, Any] = {"sandbox_network": network}
    if machine["sandbox"] == "on":
        changes["sandbox"] = "on"
        for name, wanted in ((name, wanted) for name, wanted in own.items() if isinstance(wanted, tuple)):
            given = tuple(machine[name])
            changes[name] = tuple(one for one in given if one in wanted) if settings.is_sandboxed else given
        changes["sandbox_domains"] = own["sandbox_domains"]
        if machine["sandbox_network"] == "allow":
            changes["sandbox_domains"] = _common_domains(own["sandbox_domains"], tuple(machine["sandbox_domains"]))
        changes["sandbox_hide"] = tuple(dict.fromkeys((*own["sandbox_hide"], *machine["sandbox_hide"])))
    return replace(settings, **changes)


def _common_domains(own: tuple[str, ...], machine: tuple[str, ...]) -> tuple[str, ...]:
    """The hosts that both allow. An empty list stands for the hosts of each agent's model, so it never means "none"."""
    if not own or not machine:
        return machine
    return tuple(one for one in machine if one in own) or (_NO_HOST,)
