"""The programs that Quintet itself runs, outside of any sandbox: never taken from a folder that agents can write to."""

import os
import shutil
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

_distrusted: dict[str, None] = {}
"""folders that agents can write to, without links in them"""


def distrust(*folders: Path) -> None:
    """Take no program from these folders any more: agents are about to work there, or have done so."""
    _distrusted.update(dict.fromkeys(os.path.realpath(folder) for folder in folders))


def trusted_path(env: Mapping[str, str] = os.environ) -> str:
    """The PATH without relative folders and those that agents can write to."""
    return _without(env.get("PATH", os.defpath), tuple(_distrusted))


def find_program(name: str) -> str | None:
    """Where a program is on the trusted PATH, also behind all links; None where it is not installed."""
    return _find(name, trusted_path(), tuple(_distrusted))


def trusted_environment() -> dict[str, str]:
    """The variables with which a program of ours finds others."""
    return {"PATH": trusted_path()}


@lru_cache(maxsize=64)
def _without(path: str, distrusted: tuple[str, ...]) -> str:
    folders = [folder for folder in path.split(os.pathsep) if folder.startswith("/")]
    return os.pathsep.join(folder for folder in folders if not _is_below(folder, distrusted))


@lru_cache(maxsize=64)
def _find(name: str, path: str, distrusted: tuple[str, ...]) -> str | None:
    for folder in path.split(os.pathsep):
        found = shutil.which(name, path=folder) if folder else None
        if found and not _is_below(found, distrusted):
            return found
    return None


def _is_below(path: str, folders: tuple[str, ...]) -> bool:
    real = os.path.realpath(path)
    return any(real == folder or real.startswith(folder.rstrip("/") + "/") for folder in folders)
