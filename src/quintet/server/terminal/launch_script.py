"""How a program is started in a pane: by a private script that sets the environment and then becomes the program.

The script, not the command line, carries the environment, because command lines are public. It removes itself, and
`exec` leaves no shell behind that could take what is typed.
"""

import os
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from quintet import files
from quintet.providers.base import LaunchPlan
from quintet.variables import is_variable

_SECRETS: Final = ("QUINTET_TOKEN", "QUEUE", "NTFY_TOPIC", "NOTIFY_WEBHOOK", "NOTIFY_SECRET_FILE")
"""Quintet's own: with them an agent could act as its user, on other machines too"""
_NOT_HANDED_ON: Final = frozenset(
    {*_SECRETS, "TMUX", "TMUX_PANE", "TERM", "TERM_PROGRAM", "TERM_PROGRAM_VERSION", "TERMCAP", "COLUMNS",
     "LINES", "PWD", "OLDPWD", "SHLVL", "_", "STY", "WINDOW"}
)  # fmt: skip


def pane_environment(added: Mapping[str, str]) -> dict[str, str]:
    """The environment of this process without what belongs to it alone, and with what the client adds."""
    own = {name: value for name, value in os.environ.items() if name not in _NOT_HANDED_ON}
    return {**own, **{name: value for name, value in added.items() if name not in _SECRETS}}


def write_launch_script(
    folder: Path, cwd: Path, plan: LaunchPlan, environment: Mapping[str, str], before: Sequence[str] = ()
) -> list[str]:
    """Write the files of a plan and the script that starts it; the answer is the pane's command.

    `before` is a program that starts the plan's.
    """
    for name, text in plan.files.items():
        files.write(folder / name, text.encode("utf-8", "surrogateescape"), folder)
    lines = ['rm -f -- "$0"', "unset TMUX TMUX_PANE"]
    for name, value in {**environment, **plan.env}.items():
        if value is None:
            lines.append(f"unset {name}")
        elif is_variable(name, value):
            lines.append(f"export {name}={shlex.quote(value)}")
    lines.append(f"cd -P -- {shlex.quote(str(cwd))} || exit")  # not by tmux: it takes #(...) in a name as a command
    lines.append(f"exec {shlex.join([*before, *plan.argv])}")
    script = folder / "launch.sh"
    files.write(script, ("\n".join(lines) + "\n").encode("utf-8", "surrogateescape"), folder)
    return ["/bin/sh", str(script)]
