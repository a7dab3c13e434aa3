"""OpenSpec in a project: checks whether it is set up with the workflows that the prompts use, and sets it up."""

import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from quintet import command, files
from quintet.config import Settings
from quintet.errors import RunError
from quintet.loop.decide.prompts import OPENSPEC_SKILLS
from quintet.providers.registration import ANY_AGENT, OpenSpecTool
from quintet.providers.registry import REGISTERED

PROGRAM: Final = "openspec"
INSTALL: Final = "npm install -g @fission-ai/openspec"
_SECONDS: Final = 120.0
_QUIET: Final = {"OPENSPEC_TELEMETRY": "0", "NO_COLOR": "1"}


def tools_of(settings: Settings) -> dict[str, OpenSpecTool]:
    """What OpenSpec calls each provider, also those that the user has defined."""
    known = {name: agent.openspec for name, agent in REGISTERED.items() if agent.openspec}
    return known | dict.fromkeys(settings.providers, ANY_AGENT)


def is_set_up(wd: Path) -> bool:
    return (wd / "openspec").is_dir()


def missing_workflows(wd: Path, tools: Mapping[str, OpenSpecTool]) -> dict[str, list[str]]:
    """The workflows that are missing, by provider."""
    found = {name: [one for one in OPENSPEC_SKILLS if not _has(wd, tool, one)] for name, tool in tools.items()}
    return {name: missing for name, missing in found.items() if missing}


def _has(wd: Path, tool: OpenSpecTool, workflow: str) -> bool:
    """Whether a project has a workflow for a tool, as a skill or as a command."""
    places = [wd / folder / OPENSPEC_SKILLS[workflow] / "SKILL.md" for folder in tool.skills]
    return any(path.exists() for path in [*places, wd / Path(tool.commands.format(workflow)).expanduser()])


def version() -> str:
    """The version of OpenSpec; empty where it is not installed."""
    if shutil.which(PROGRAM) is None:
        return ""
    outcome = command.run([PROGRAM, "--version"], Path.cwd(), _SECONDS, _QUIET)
    return outcome.last_line.strip() or "unknown version"


def set_up(wd: Path, wanted: Iterable[OpenSpecTool]) -> list[Path]:
    """Set OpenSpec up for some agents; returns the files that were added.

    OpenSpec runs in a temporary folder, and only missing files are copied, because it would overwrite files that the
    user has changed. The fast-forward workflow needs a profile of its own, which is temporary too.
    """
    tools = ",".join(dict.fromkeys(tool.name for tool in wanted)) or "none"
    with tempfile.TemporaryDirectory(prefix="quintet-openspec-") as place:
        settings = Path(place) / "config" / "openspec" / "config.json"
        files.write(settings, json.dumps({"profile": "custom", "delivery": "both", "workflows": [*OPENSPEC_SKILLS]}))
        added = []
        for name, more in {"users": {}, "ours": {"XDG_CONFIG_HOME": str(settings.parent.parent)}}.items():
            made = Path(place) / name
            files.make_folder(made)
            outcome = command.run([PROGRAM, "init", "--tools", tools, "."], made, _SECONDS, _QUIET | more)
            if outcome.exit_code:
                by_hand = f"try it by hand: openspec init --tools {tools}"
                raise RunError(f"openspec init failed: {outcome.last_line}; {by_hand}")
            added += _copy_missing(made, wd)
        return added


def _copy_missing(source: Path, target: Path) -> list[Path]:
    added = []
    for path in sorted(source.rglob("*")):
        place = target / path.relative_to(source)
        if path.is_dir() or os.path.lexists(place):
            continue
        try:
            files.write_new(place, path.read_bytes(), target, private=False)
        except OSError as error:
            raise RunError(f"{place}: cannot be written ({error.strerror})") from None
        added.append(place)
    return added
