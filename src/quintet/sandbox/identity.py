"""Git's settings in a sandbox: who the user is and which filters files need, and no credentials or programs else."""

import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from quintet import files, git
from quintet.errors import GitError

GITCONFIG: Final = ".gitconfig"
_KEPT: Final = re.compile(
    r"user\.(?:name|email)|safe\.directory|init\.defaultbranch|core\.(?:autocrlf|eol|safecrlf|filemode|precomposeunicode)"
    r"|filter\..+\.(?:clean|smudge|process|required)"
)
_FROM_HOME: Final = ("HOME", "XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL")


def write_git_identity(home: Path, tree: Path, env: Mapping[str, str]) -> None:
    """Write git's settings for a home of a sandbox, from those of the user."""
    named = {name: env[name] for name in _FROM_HOME if name in env}
    listed: list[str] = []
    with suppress(GitError):
        listed = git.run(tree, "config", "--global", "--includes", "--list", "-z", env=named, check=False).parts
    files.write(home / GITCONFIG, git_settings(listed), home)


def git_settings(listed: list[str]) -> str:
    """What is kept of the user's settings, which git lists as a key, a line end and a value each."""
    lines = []
    for key, _, value in (entry.partition("\n") for entry in listed):
        if not _KEPT.fullmatch(key):
            continue
        section, _, rest = key.partition(".")
        below, _, name = rest.rpartition(".")
        lines.append(f"[{section} {_quoted(below)}]" if below else f"[{section}]")
        lines.append(f"\t{name} = {_quoted(value)}")
    return "".join(f"{line}\n" for line in lines)


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    return f'"{escaped}"'
