"""Write docs/settings.md from the settings table: `python tools/settings_page.py`. A test compares the two."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from quintet.config.describe import describe_allowed, describe_default, sections
from quintet.config.table import AGENT_KINDS, AGENTS_KEY, CAO_PROVIDERS, PROVIDER_KINDS, PROVIDERS_KEY, Agent, Row
from quintet.roles import ROLES

PAGE: Final = Path(__file__).parents[1] / "docs" / "settings.md"
MEANINGS: Final = {
    "provider": "the agent CLI",
    "profile": "the profile that it is started with (`quintet profiles list`)",
    "model": "the model; empty: the CLI's own choice",
    "args": "further arguments for the CLI, behind Quintet's own",
}
OWN_MEANINGS: Final = {
    "command": "the program and its arguments; a path begins at the project",
    "env": "variables that only this agent gets; `quintet config` shows their names only",
    "mode": "the session mode in which it does not ask",
    "model": "the model of roles that name none",
    "instructions": "how the role's text reaches it: `first prompt` or `system prompt`",
    "install": "the line that installs it, for `quintet doctor`",
}
HEAD: Final = """\
# Settings

<!-- Written by tools/settings_page.py from src/quintet/config/table.py; change it there. -->

Every setting can be given in three ways; the first that has it wins:

1. an option of `quintet run`, `config` or `doctor`: `--max-rounds 4`
2. an environment variable: `MAX_ROUNDS=4`; an empty one counts as unset
3. a key of the config file, `quintet.json` in the project or the file that is named: `{"limits": {"max_rounds": 4}}`

`quintet config` shows what is in effect and where each value came from. `quintet init` writes a `quintet.json` with a
JSON schema beside it, by which editors complete and check it. An unknown key, at any depth, and a value that is not
allowed are errors that name the place.

A switch is true or false; in a variable also 1/0, yes/no, on/off. As an option it stands without a value, and its
opposite has `--no-` before the name: `--cleanup-on-exit`, `--no-cleanup-on-exit`. Relative paths begin at the current
directory, those in a `quintet.json` that was not named at its folder.
"""
ENVIRONMENT: Final = """\
## Variables that are no settings

| variable | meaning |
|---|---|
| `QUINTET_TOKEN` | the secret of a terminal server: `quintet serve` asks for it, `quintet run` with `API` sends it |
| `QUINTET_SCENARIO` | the script of the `scripted` agents, an absolute path ([tutorial](tutorial.md)) |
| `XDG_STATE_HOME` | folder of runs' records and terminals' sockets; default: `~/.local/state`, for long paths `/tmp` |
"""


def page() -> str:
    """The whole page."""
    return "\n".join([HEAD, *_tables(), _agents(), _own_agents(), ENVIRONMENT])


def _tables() -> Iterator[str]:
    for title, rows in sections():
        yield f"## {title}\n\n| option | variable | key | default | meaning |\n|---|---|---|---|---|"
        yield from (_line(row) for row in rows)
        yield ""


def _line(row: Row) -> str:
    allowed = describe_allowed(row, _code)
    meaning = f"{row.meaning} ({allowed})" if allowed else row.meaning
    return f"| `{row.flag}` | `{row.env}` | `{row.key}` | {describe_default(row, _code)} | {meaning} |"


def _code(value: str) -> str:
    return f"`{value}`"


def _names(names: Iterable[str]) -> str:
    return ", ".join(map(_code, names))


def _agents() -> str:
    rows = [f"## Single agents, `{AGENTS_KEY}` in the config file\n"]
    rows.append(f"Each of {_names(role.name for role in ROLES)} may differ from the others:\n")
    rows.append('```json\n{"provider": "codex", "agents": {"tester": {"provider": "claude_code"}}}\n```\n')
    rows.append("| key | default | meaning |\n|---|---|---|")
    for part in AGENT_KINDS:
        rows.append(f"| `{AGENTS_KEY}.ROLE.{part}` | {_agent_default(part)} | {MEANINGS[part]} |")
    rows.append("\nThe profiles: " + ", ".join(f"{role.name} `{role.profile}`" for role in ROLES) + ".\n")
    rows.append("With `api`, `provider` may also be one of that server's: " + _names(CAO_PROVIDERS) + ".\n")
    return "\n".join(rows)


def _own_agents() -> str:
    rows = [f"## Agents of your own, `{PROVIDERS_KEY}` in the config file\n"]
    rows.append("A program that speaks the Agent Client Protocol can have a name here ([providers](providers.md)):\n")
    example = '{"providers": {"my-agent": {"command": ["my-agent", "acp"]}}, "provider": "my-agent"}'
    rows.append(f"```json\n{example}\n```\n\n| key | default | meaning |\n|---|---|---|")
    defaults = {"command": "must be given", "instructions": "`first prompt`"}
    for part in PROVIDER_KINDS:
        rows.append(f"| `{PROVIDERS_KEY}.NAME.{part}` | {defaults.get(part, 'none')} | {OWN_MEANINGS[part]} |")
    return "\n".join([*rows, ""])


def _agent_default(part: str) -> str:
    match part:
        case "provider":
            return "that of all"
        case "profile":
            return "the role's own"
        case _:
            return "none" if not getattr(Agent, part) else f"`{getattr(Agent, part)}`"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"written: {PAGE}")
