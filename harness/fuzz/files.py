"""What users and agents leave in files: settings, tasks, saved runs, scenarios."""

import atexit
import contextlib
import json
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any, Final

from hypothesis import strategies as st

from harness.fuzz.hostile import as_bytes, json_object, json_objects, json_values, one_of, texts
from harness.fuzz.properties import holds, one_line
from quintet.config import Settings, load_settings, settings_as_json
from quintet.config.table import AGENT_KINDS, TABLE
from quintet.errors import QuintetError
from quintet.loop.decide.flow import next_step
from quintet.loop.decide.prompts import Prompts
from quintet.loop.decide.state import State, without_terminals
from quintet.loop.decide.steps import Ask
from quintet.loop.decide.task import Task, parse_task
from quintet.loop.record.orphans import is_folder_name
from quintet.loop.record.state_file import load_state, save_state
from quintet.loop.run.resume import archive_state, find_saved
from quintet.providers.scripted.scenario import ACTIONS, load_role_script
from quintet.roles import ROLES

FOLDER: Final = Path(tempfile.mkdtemp(prefix="qf"))
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)
ROLE_NAMES: Final = tuple(role.name for role in ROLES) + tuple(role.output for role in ROLES)


@contextlib.contextmanager
def told() -> Iterator[None]:
    """What may go wrong: one of the project's own errors, in one line."""
    try:
        yield
    except QuintetError as error:
        one_line(error)


def written(data: bytes, name: str) -> Path:
    path = FOLDER / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


_KEYS: Final = tuple({row.key.rpartition(".")[2] for row in TABLE} | {row.key.partition(".")[0] for row in TABLE})
_WORDS: Final = ("codex", "scripted", "analyst", "true", "1", "http://localhost:1", "http://[", "x" * 300, "a\0b")
_values = json_values(_WORDS, (*_KEYS, *ROLE_NAMES, *AGENT_KINDS, "agents", "input", "output", "cached"))
_rows = one_of(*(row.key for row in TABLE))


def _document(pairs: list[tuple[str, str]]) -> str:
    """A config file with keys where they belong."""
    sections: dict[str, list[tuple[str, str]]] = {"": []}
    for key, value in pairs:
        section, _, name = key.rpartition(".")
        sections.setdefault(section, []).append((name, value))
    own = sections.pop("")
    return json_object([*own, *((section, json_object(found)) for section, found in sections.items())])


_placed = st.lists(st.tuples(_rows, _values), max_size=3).map(_document)


@holds("config files", as_bytes(_placed | json_objects((*_KEYS, "agents"), _values) | _values | texts()))
def a_config_file_is_settings_or_one_line(data: bytes) -> None:
    written(data, "config.json")
    with told():
        loaded = load_settings(Path("config.json"), {}, {}, FOLDER)
        json.dumps(settings_as_json(loaded.settings))
        assert loaded.origin.keys() == settings_as_json(loaded.settings).keys()


_rows_and_values = st.dictionaries(one_of(*TABLE), texts(_WORDS, size=3) | _values, min_size=1, max_size=3)


@holds("config files", st.tuples(_rows_and_values, st.booleans()))
def a_variable_or_a_flag_is_a_setting_or_one_line(found: Any) -> None:
    values, in_flags = found
    flags = {row.name: value for row, value in values.items()} if in_flags else {}
    env = {} if in_flags else {row.env: value for row, value in values.items() if row.env}
    with told():
        load_settings(None, env, flags, FOLDER)


_task = texts(("*** ORIGINAL EXPLORE SUMMARY ***", "*** SCENARIO TEST ***", "*** scenario test ***", "text"))


@holds("task files", _task)
def a_text_is_a_task_or_one_line(text: str) -> None:
    with told():
        task = parse_task(text)
        assert task.explore_summary.strip()
        assert task.scenario_test.strip()


@holds("task files", as_bytes(_task))
def a_task_file_is_read_or_one_line(data: bytes) -> None:
    written(data, "task.md")
    with told():
        parse_task(load_settings(None, {}, {"prompt_file": "task.md"}, FOLDER).settings.prompt)


_fields = tuple(item.name for item in fields(State))
_state_values = json_values(("RUNNING", "PASS", "tester", "verdict", "programmer", "work"), (*ROLE_NAMES, "id"))


@holds("state files", as_bytes(json_objects((*_fields, "version"), _state_values) | _state_values))
def a_state_file_is_a_run_or_one_line(data: bytes) -> None:
    path = written(data, "p/.tmp/state.json")
    config = Settings(wd=FOLDER / "p", state_file=path)
    with told():
        state = load_state(path)
        assert state is not None
        save_state(state, path)
        assert load_state(path) is not None
        step = next_step(without_terminals(state), config)
        if isinstance(step, Ask):
            Prompts(config, Task("explore", "scenario"), state).build(step)
        assert is_folder_name(state.run_id) or "/" not in archive_state(config, state).parent.name
    written(data, "p/.tmp/state.json")
    with told():
        find_saved(config, lambda _: None)


_actions = json_values(("late", "pass", "usage_limit"), (*ACTIONS, "manner", "then", "else", "turns"))
_scenario = json_objects(ROLE_NAMES, _actions).map(lambda roles: json_object([("roles", roles)]))


@holds("config files", as_bytes(_scenario | _actions))
def a_scenario_is_a_part_or_one_line(data: bytes) -> None:
    path = written(data, "scenario.json")
    with told():
        load_role_script(path, ROLE_NAMES[0]).turn(1)
