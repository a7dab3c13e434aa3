"""Programs of a made-up machine: small scripts that answer what is asked of them."""

import os
from collections.abc import Mapping
from pathlib import Path

OPENSPEC = r"""#!/bin/sh
# sets up what its profile asks for, and writes over everything, as OpenSpec does
[ "$1" = --version ] && echo 1.13.2 && exit 0
[ "$1" = init ] && [ "$2" = --tools ] || exit 2
skills="openspec-propose openspec-explore openspec-apply-change"
grep -q '"ff"' "$XDG_CONFIG_HOME/openspec/config.json" 2>/dev/null &&
    skills="openspec-explore openspec-ff-change openspec-apply-change"
mkdir -p "$4/openspec/changes/archive" && echo 'schema: spec-driven' > "$4/openspec/config.yaml"
for tool in $(echo "$3" | tr , ' '); do
    case $tool in codex|agents) folder=.agents ;; claude|gemini) folder=.$tool ;; *) continue ;; esac
    for skill in $skills; do
        mkdir -p "$4/$folder/skills/$skill" && echo "made by openspec" > "$4/$folder/skills/$skill/SKILL.md"
    done
done
"""
CODEX = """#!/bin/sh
case "$*" in *--broken*) echo "error: unexpected argument '--broken' found" >&2; exit 2 ;; esac
case "$*" in *--version) echo "codex-cli {version}"; exit 0 ;; esac
[ "$1" = login ] && echo "{login}" && exit {code}
exit 2
"""
CLAUDE = """#!/bin/sh
case "$*" in *--version) echo "2.1.325 (Claude Code)"; exit 0 ;; *--help) exit 0 ;; esac
case "$*" in *--dangerously-skip-permissions*)
    [ -z "$IS_SANDBOX" ] && echo "--dangerously-skip-permissions cannot be used with root/sudo" >&2 && exit 1 ;;
esac
echo "Error: Input must be provided either through stdin or as a prompt argument when using --print" >&2
exit 1
"""
SYSTEM = ("git", "tmux", "sh", "env", "mkdir", "grep", "tr")


def machine(folder: Path, **programs: str) -> Mapping[str, str]:
    """The environment of a machine with these programs, and only with what the tests themselves need."""
    shelf, home = folder / "bin", folder / "home"
    for place in (shelf, home):
        place.mkdir(parents=True, exist_ok=True)
    for name, text in programs.items():
        (shelf / name).write_text(text, encoding="utf-8")
        (shelf / name).chmod(0o755)
    for name in SYSTEM:
        found = next((Path(place) / name for place in os.defpath.split(":") if (Path(place) / name).exists()), None)
        if found and not (shelf / name).exists():
            (shelf / name).symlink_to(found)
    return {
        "PATH": str(shelf),
        "HOME": str(home),
        "XDG_STATE_HOME": str(folder / "s"),
        "GIT_CONFIG_NOSYSTEM": "1",
        "LANG": "C.UTF-8",
    }


def codex(version: str = "0.166.0", *, logged_in: bool = True) -> str:
    said, code = ("Logged in using ChatGPT", 0) if logged_in else ("Not logged in", 1)
    return CODEX.format(version=version, login=said, code=code)
