"""Load the settings from options, environment and JSON file, and note where each came from."""

import difflib
import json
import os
import re
from collections import ChainMap
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from quintet.config.kinds import Choice, DatabaseUrl, Kind, Variables
from quintet.config.schema import SCHEMA_KEY
from quintet.config.table import (
    AGENT_KINDS,
    AGENTS_KEY,
    CAO_PROVIDERS,
    OWN_PROVIDERS,
    PROVIDER_KINDS,
    PROVIDERS_KEY,
    TABLE,
    Agent,
    OwnProvider,
    Settings,
)
from quintet.errors import ConfigError
from quintet.layout import CONFIG_FILE, STATE_FILE
from quintet.prose import without_password
from quintet.providers.registry import OWN_NAME
from quintet.roles import BY_NAME, ROLES

DEFAULT = "default"
"""the origin of a setting that nobody has given"""
_BY_KEY = {row.key: row for row in TABLE}
_PROMPTS = ("prompt_file", "prompt")
_NOT_KEPT: Final = (*_PROMPTS, "wd", "api", "queue_url")
KEPT: Final = "the start of the run"
"""the origin of a setting that a run has kept"""
_LONGEST_QUOTE = 60
_OWN_NAME = re.compile(OWN_NAME)


@dataclass(frozen=True)
class Loaded:
    """The effective settings; `origin` names the place of each by its JSON key."""

    settings: Settings
    origin: Mapping[str, str]
    warnings: tuple[str, ...] = ()
    file: str = ""
    """the config file that was read"""


@dataclass(frozen=True)
class Kept:
    """Settings that a run was begun with. What the user gives now counts before them, and they before the file."""

    rows: Mapping[str, Any]
    """by JSON key"""
    given: Collection[str] = ()
    """those of the rows that were options or variables"""
    agents: Mapping[str, Mapping[str, Any]] | None = None
    """None: those of the file count"""
    file: str = ""
    """the config file that they came from"""
    providers: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """the agents that the user has defined; they count where `agents` does"""

    @property
    def without_file(self) -> "Kept":
        """Only what did not come from a file."""
        return Kept({key: value for key, value in self.rows.items() if key in self.given}, self.given)


NOTHING_KEPT: Final = Kept({})


@dataclass(frozen=True)
class _Given:
    """A raw value and the place where it was given."""

    raw: Any
    place: str
    base: Path | None = None
    """the folder that a relative path starts at, if not the current directory"""


def find_config(env: Mapping[str, str], flags: Mapping[str, Any], cwd: Path) -> Path | None:
    """The project's own config file, where it has one."""
    wd = flags.get("wd") or env.get("WD") or "."
    path = cwd / wd / CONFIG_FILE
    try:
        return Path(os.path.relpath(path, cwd)) if path.is_file() else None
    except OSError:
        return None  # the error is reported where the folder is used


def load_settings(
    config_file: Path | None, env: Mapping[str, str], flags: Mapping[str, Any], cwd: Path, kept: Kept = NOTHING_KEPT
) -> Loaded:
    """Read every source; options come first, then the environment, what a run has kept, the JSON file and the defaults.

    If no file is named, the project's own `quintet.json` is read; relative paths in it start at its folder.
    """
    found_file = None if config_file else find_config(env, flags, cwd)
    base = (cwd / found_file).parent if found_file else None
    config_file = config_file or found_file
    document = _read_document(cwd / config_file) if config_file else {}
    in_file = f"in {_printable(str(config_file))}"
    agents, own = _pop_agents(document, in_file), _pop_providers(document, in_file)
    if kept.agents is not None:
        agents, own = ({name: dict(parts) for name, parts in one.items()} for one in (kept.agents, kept.providers))
    sources: tuple[dict[str, _Given], ...] = (
        {row.name: _Given(flags[row.name], row.flag) for row in TABLE if flags.get(row.name) is not None},
        {row.name: _Given(env[row.env], row.env) for row in TABLE if env.get(row.env)},
        {_BY_KEY[key].name: _Given(value, KEPT) for key, value in kept.rows.items() if key in _BY_KEY},
        _rows_of(document, in_file, base),
    )
    if kept.agents is not None:
        sources = (*sources[:-1], {name: item for name, item in sources[-1].items() if name in _NOT_KEPT})
    kinds: dict[str, Kind] = {row.name: row.kind for row in TABLE}
    found = ChainMap(*sources)
    api = "api" in found and _read(kinds["api"], found["api"])
    names = (*OWN_PROVIDERS, *own)
    providers = kinds["provider"] = Choice((*names, *CAO_PROVIDERS) if api else names)
    for source in sources:  # all are read, so that a bad value is reported even if another takes precedence
        for name, item in source.items():
            _read(kinds[name], item)
    found = ChainMap(*_one_prompt(sources))
    values: dict[str, Any] = {"provider": Settings.provider}
    values |= {name: _read(kinds[name], item) for name, item in found.items()}
    values |= _paths(values, cwd, found)
    values[AGENTS_KEY], places = _agents(agents, in_file, values["provider"], providers)
    values[PROVIDERS_KEY] = {name: _own_provider(name, parts, in_file) for name, parts in own.items()}
    settings = Settings(**values)
    origin = {row.key: found[row.name].place if row.name in found else DEFAULT for row in TABLE}
    if settings.prompt_file:
        origin["prompt"] = origin["prompt_file"]
    inherited = {f"{AGENTS_KEY}.{role}.provider": origin["provider"] for role in ROLES}
    places |= {
        f"{PROVIDERS_KEY}.{name}.{part}": f"{PROVIDERS_KEY}.{name}.{part} {in_file}"
        for name in own
        for part in own[name]
    }
    origin = dict.fromkeys(settings_as_json(settings), DEFAULT) | origin | inherited | places
    return Loaded(settings, origin, _warnings(settings), str(cwd / config_file) if config_file else "")


def settings_to_keep(loaded: Loaded) -> Kept:
    """What a run keeps of its settings. Where it is, what it is about and its server are not among them.

    A user who begins a new run by an option wants that once; a config file that says so means it for ever.
    """
    values, origin = settings_as_json(loaded.settings), loaded.origin
    if not origin["resume"].startswith("resume "):
        values["resume"] = None
    rows = {row.key: values[row.key] for row in TABLE if row.name not in _NOT_KEPT and values[row.key] is not None}
    given = [row.key for row in TABLE if row.key in rows and origin[row.key] in (row.flag, row.env, KEPT)]
    agents: dict[str, dict[str, Any]] = {}
    for role in ROLES:
        for part in AGENT_KINDS:
            key = f"{AGENTS_KEY}.{role}.{part}"
            if origin[key].startswith(key):
                agents.setdefault(role.name, {})[part] = values[key]
    providers = {name: _given_parts(own) for name, own in loaded.settings.providers.items()}
    return Kept(rows, given, agents, loaded.file, providers)


def settings_as_json(settings: Settings) -> dict[str, Any]:
    """Every setting by its JSON key, as a JSON value; without passwords, and of an agent's variables only the names."""
    values: dict[str, Any] = {}
    for row in TABLE:
        value = getattr(settings, row.name)
        values[row.key] = str(value) if isinstance(value, Path) else list(value) if isinstance(value, tuple) else value
        if isinstance(row.kind, DatabaseUrl):
            values[row.key] = without_password(value)
    for name, agent in settings.agents.items():
        for part in AGENT_KINDS:
            value = getattr(agent, part)
            values[f"{AGENTS_KEY}.{name}.{part}"] = list(value) if isinstance(value, tuple) else value
    for name, own in settings.providers.items():
        parts = asdict(own) | {"command": list(own.command), "env": sorted(own.env)}
        values |= {f"{PROVIDERS_KEY}.{name}.{part}": parts[part] for part in PROVIDER_KINDS}
    return values


def _given_parts(own: OwnProvider) -> dict[str, Any]:
    """A definition as it stands in a config file."""
    return {part: value for part, value in (asdict(own) | {"command": list(own.command)}).items() if value}


def _read(kind: Kind, found: _Given) -> Any:
    try:
        return kind.read(found.raw)
    except ValueError:
        hint = _nearest(found.raw, kind.names) if isinstance(kind, Choice) else ""
        raw = found.raw
        if isinstance(kind, Variables):  # a value may be secret
            raw = list(raw) if isinstance(raw, dict) else "..."
        value = "something else" if isinstance(kind, DatabaseUrl) else _quote(raw)  # it may hold a password
        raise ConfigError(f"{found.place}: found {value}, allowed: {kind.allowed}{hint}") from None


def _quote(raw: Any) -> str:
    try:
        text = json.dumps(raw, ensure_ascii=False, default=str)
    except RecursionError:
        return "a deeply nested value"
    text = _printable(text[: _LONGEST_QUOTE + 1])
    return text if len(text) <= _LONGEST_QUOTE else text[: _LONGEST_QUOTE - 1] + "…"


def _printable(text: str) -> str:
    """A text on one line: a file's name may contain anything."""
    return "".join(char if char.isprintable() else json.dumps(char)[1:-1] for char in text)


def _nearest(raw: Any, names: Iterable[str]) -> str:
    word = raw[:_LONGEST_QUOTE].lower() if isinstance(raw, str) else ""
    near = difflib.get_close_matches(word, list(names), n=1, cutoff=0.5)
    return f"; did you mean {near[0]}?" if near else ""


def _read_document(path: Path) -> dict[str, Any]:
    name = _printable(str(path))
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "it is not UTF-8 text"
        raise ConfigError(f"config file {name}: cannot be read ({reason})") from None
    try:
        document = json.loads(text, object_pairs_hook=_refuse_duplicates)
    except RecursionError:
        raise ConfigError(f"config file {name}: is nested too deeply") from None
    except ValueError as error:
        raise ConfigError(f"config file {name}: is not JSON ({error})") from None
    if not isinstance(document, dict):
        raise ConfigError(f"config file {name}: found {_quote(document)}, allowed: a JSON object")
    return document


def _refuse_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    keys: dict[str, Any] = {}
    for key, value in pairs:
        if key in keys:
            raise ValueError(f"the key {_quote(key)} appears twice")
        keys[key] = value
    return keys


def _object(raw: Any, key: str, in_file: str) -> dict[str, Any]:
    if not isinstance(raw, dict):
        raise ConfigError(f"{key} {in_file}: found {_quote(raw)}, allowed: an object")
    return raw


def _unknown(key: str, in_file: str, known: Iterable[str]) -> ConfigError:
    names = sorted(known)
    return ConfigError(f"unknown key {_quote(key)} {in_file}; allowed: {', '.join(names)}{_nearest(key, names)}")


def _rows_of(document: dict[str, Any], in_file: str, base: Path | None) -> dict[str, _Given]:
    schema = document.pop(SCHEMA_KEY, "")
    if not isinstance(schema, str):
        raise ConfigError(f"{SCHEMA_KEY} {in_file}: found {_quote(schema)}, allowed: a text")
    sections = {row.key.partition(".")[0] for row in TABLE if "." in row.key}
    flat: dict[str, Any] = {}
    for key, value in document.items():
        if key in sections:
            flat |= {f"{key}.{inner}": item for inner, item in _object(value, key, in_file).items()}
        elif key in _BY_KEY and "." not in key:
            flat[key] = value
        else:
            raise _unknown(key, in_file, {name.partition(".")[0] for name in _BY_KEY} | {AGENTS_KEY, PROVIDERS_KEY})
    for key in flat:
        if key not in _BY_KEY:
            section = key.partition(".")[0] + "."
            raise _unknown(key, in_file, {name for name in _BY_KEY if name.startswith(section)})
    return {_BY_KEY[key].name: _Given(value, f"{key} {in_file}", base) for key, value in flat.items()}


def _pop_agents(document: dict[str, Any], in_file: str) -> dict[str, dict[str, Any]]:
    agents = _object(document.pop(AGENTS_KEY, {}), AGENTS_KEY, in_file)
    for role, parts in agents.items():
        if role not in BY_NAME:
            raise _unknown(f"{AGENTS_KEY}.{role}", in_file, {f"{AGENTS_KEY}.{name}" for name in BY_NAME})
        for part in _object(parts, f"{AGENTS_KEY}.{role}", in_file):
            if part not in AGENT_KINDS:
                known = {f"{AGENTS_KEY}.{role}.{name}" for name in AGENT_KINDS}
                raise _unknown(f"{AGENTS_KEY}.{role}.{part}", in_file, known)
    return agents


def _pop_providers(document: dict[str, Any], in_file: str) -> dict[str, dict[str, Any]]:
    """The agents that the user has defined, with nothing in them that is unknown or missing."""
    found = _object(document.pop(PROVIDERS_KEY, {}), PROVIDERS_KEY, in_file)
    for name, parts in found.items():
        key = f"{PROVIDERS_KEY}.{name}"
        if name in OWN_PROVIDERS:
            raise ConfigError(f"{key} {in_file}: the name is taken by an agent that Quintet knows; choose another")
        if not _OWN_NAME.fullmatch(name):
            raise ConfigError(f"{key} {in_file}: found {_quote(name)}, allowed: a name of letters, digits, . _ and -")
        for part in _object(parts, key, in_file):
            if part not in PROVIDER_KINDS:
                raise _unknown(f"{key}.{part}", in_file, {f"{key}.{known}" for known in PROVIDER_KINDS})
        if "command" not in parts:
            raise ConfigError(f"{key} {in_file}: has no command; allowed: {PROVIDER_KINDS['command'].allowed}")
    return found


def _own_provider(name: str, parts: Mapping[str, Any], in_file: str) -> OwnProvider:
    key = f"{PROVIDERS_KEY}.{name}"
    return OwnProvider(
        **{part: _read(PROVIDER_KINDS[part], _Given(raw, f"{key}.{part} {in_file}")) for part, raw in parts.items()}
    )


def _agents(
    agents: dict[str, dict[str, Any]], in_file: str, provider: str, providers: Kind
) -> tuple[dict[str, Agent], dict[str, str]]:
    """The five agents, and the place of each part that the file sets."""
    result, places = {}, {}
    for role in ROLES:
        parts: dict[str, Any] = {"provider": provider, "profile": role.profile}
        for part, raw in agents.get(role.name, {}).items():
            key = f"{AGENTS_KEY}.{role}.{part}"
            places[key] = f"{key} {in_file}"
            parts[part] = _read(providers if part == "provider" else AGENT_KINDS[part], _Given(raw, places[key]))
        result[role.name] = Agent(**parts)
    return result, places


def _one_prompt(sources: tuple[dict[str, _Given], ...]) -> tuple[dict[str, _Given], ...]:
    """Keep one prompt: that of the first source that has one, and in it the file before the text."""
    given = ((number, name) for number, source in enumerate(sources) for name in _PROMPTS if _has(source, name))
    kept = next(given, None)
    return tuple(
        {name: found for name, found in source.items() if name not in _PROMPTS or (number, name) == kept}
        for number, source in enumerate(sources)
    )


def _has(source: Mapping[str, _Given], name: str) -> bool:
    return name in source and bool(source[name].raw)


def _paths(values: dict[str, Any], cwd: Path, found: Mapping[str, _Given]) -> dict[str, Any]:
    def path_of(name: str, default: str | Path) -> Path:
        base = found[name].base if name in found else None
        return (base or cwd) / Path(values.get(name, default))

    wd = Path(os.path.realpath(path_of("wd", ".")))
    if not os.path.isdir(wd):  # noqa: PTH112 - Path.is_dir() raises where the name is too long
        place = found["wd"].place if "wd" in found else "current directory"
        given = _quote(values.get("wd", str(wd)))
        raise ConfigError(f"{place}: found {given}, allowed: an existing folder")
    paths: dict[str, Any] = {"wd": wd, "state_file": path_of("state_file", wd / STATE_FILE)}
    if os.path.isdir(paths["state_file"]) and "state_file" in found:  # noqa: PTH112 - as above
        raise ConfigError(f"{found['state_file'].place}: found the folder {paths['state_file']}, allowed: a file")
    for name in ("prompts_dir", "workspace_dir"):
        if values.get(name):
            paths[name] = str(path_of(name, ""))
    if "prompt_file" in values:
        path = path_of("prompt_file", "")
        paths |= {"prompt_file": str(path), "prompt": read_task_file(path)}
    return paths


def read_task_file(path: Path) -> str:
    """The text of a task file."""
    name = _printable(str(path))
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ConfigError(f"task file {name}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise ConfigError(f"task file {name}: is not UTF-8 text; save it as UTF-8") from None


def _warnings(settings: Settings) -> tuple[str, ...]:
    least, most = settings.min_review_cycles_before_approval, settings.max_review_cycles
    if least > most:
        return (
            f"min_review_cycles_before_approval ({least}) is above max_review_cycles ({most}): "
            "no review can approve, so every phase uses all its cycles",
        )
    return ()
