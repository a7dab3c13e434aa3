"""What a provider's package says about its agent CLI, without loading the code that drives it."""

from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final
from urllib.parse import urlsplit


@dataclass(frozen=True)
class OpenSpecTool:
    """How OpenSpec calls an agent CLI, and where in a project a workflow for it may be."""

    name: str
    skills: tuple[str, ...]
    """folders that hold a folder for each skill"""
    commands: str
    """the file of a command, with {} for its name"""


_PORTS: Final = {"http": 80, "https": 443}
_ELSEWHERE: Final = {
    "~/.config/": "XDG_CONFIG_HOME",
    "~/.local/share/": "XDG_DATA_HOME",
    "~/.local/state/": "XDG_STATE_HOME",
    "~/.cache/": "XDG_CACHE_HOME",
}
ANY_AGENT: Final = OpenSpecTool("agents", (".agents/skills",), ".agents/commands/opsx-{}.md")
"""OpenSpec for an agent that it does not know by name"""


@dataclass(frozen=True)
class Registration:
    """One agent CLI. The module `provider` of its package has the `PROVIDER` that drives it."""

    name: str
    """what the settings call it"""
    program: str = ""
    """the command; empty where it is part of Quintet"""
    install: str = ""
    """the shell line that installs it"""
    openspec: OpenSpecTool | None = None
    has_commands: bool = False
    """whether it knows OpenSpec's workflows as `/opsx:` commands; others are told the names of skills"""
    homes: tuple[str, ...] = ()
    """the folders that it writes its login, its settings and its history to"""
    home_variable: str = ""
    """the variable that names another folder in place of the first one"""
    own_files: tuple[str, ...] = ()
    """files of its own beside them; with a `home_variable` they are in the folder that it names"""
    histories: tuple[str, ...] = ()
    """what in its folders is large and not needed for a new conversation: the private copy is made without it"""
    login_files: tuple[str, ...] = ()
    """files that are there after a login"""
    variables: tuple[str, ...] = ()
    """variables for its model and its own settings; `*` stands for any letters"""
    shared_keys: tuple[str, ...] = ()
    """of those that stand for a login, keys that open more than its model: passed on if there is no other"""

    endpoints: tuple[str, ...] = ()
    """the hosts of its models and its login, for an allow-list; empty where nobody has looked"""
    base_urls: tuple[str, ...] = ()
    """the variables by which a user names another model server"""
    is_proxied: bool = False
    """whether it was seen to reach its model through the proxy of a sandbox"""

    def endpoints_in(self, env: Mapping[str, str]) -> tuple[str, ...]:
        """The hosts of its models, with those that this environment names."""
        named = (_host_of(env[name]) for name in self.base_urls if env.get(name))
        return tuple(dict.fromkeys((*self.endpoints, *filter(None, named))))

    def homes_in(self, env: Mapping[str, str]) -> tuple[str, ...]:
        """Its folders, as this environment has them."""
        named = env.get(self.home_variable, "")
        homes = (named, *self.homes[1:]) if named else self.homes
        return tuple(by_variables(home, env) for home in homes)

    def variables_in(self, env: Mapping[str, str]) -> tuple[str, ...]:
        """Its variables, as this environment has them."""
        has_own = any(fnmatchcase(name, one) for one in self.variables for name in env if env[name])
        return self.variables if has_own else (*self.variables, *self.shared_keys)


def _host_of(url: str) -> str:
    """The host and port of an address; empty where it is none."""
    try:
        parts = urlsplit(url)
        port = parts.port or _PORTS.get(parts.scheme, 0)
    except ValueError:
        return ""
    host = parts.hostname or ""
    return (f"[{host}]:{port}" if ":" in host else f"{host}:{port}") if host and port else ""


def by_variables(path: str, env: Mapping[str, str]) -> str:
    """A path, also below one of the folders that the user may have put elsewhere."""
    for usual, variable in _ELSEWHERE.items():
        if path.startswith(usual) and env.get(variable):
            return f"{env[variable].rstrip('/')}/{path.removeprefix(usual)}"
    return path
