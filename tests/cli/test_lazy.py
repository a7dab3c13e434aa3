"""Commands are declared in one place and loaded when they run: the two sides fit, and help loads little."""

import inspect
import subprocess
import sys
from pathlib import Path

import click
import pytest

from quintet.cli.lazy import load
from quintet.cli.main import cli
from tests.docs.test_commands_page import commands

HEAVY = ("fastapi", "httpx", "pydantic", "rich", "uvicorn")
ALL = dict(commands(cli, "quintet"))


@pytest.mark.parametrize("path", ALL)
def test_the_function_of_a_command_takes_what_the_command_gives(path: str) -> None:
    command: click.Command = ALL[path]
    parameters = inspect.signature(load(getattr(command.callback, "target"))).parameters.values()  # noqa: B009
    named = {one.name for one in parameters if one.kind is not one.VAR_KEYWORD}
    given = {one.name for one in command.params}
    assert named <= given
    assert named == given or any(one.kind is one.VAR_KEYWORD for one in parameters)


def loaded_by(*words: str) -> set[str]:
    """The heavy packages that a command loads."""
    code = "import atexit, sys, quintet.cli.entry as e; atexit.register(lambda: print(*sys.modules)); e.main()"
    command = [sys.executable, "-c", code, *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    return set(HEAVY) & set(done.stdout.splitlines()[-1].split())


@pytest.mark.parametrize("words", [("--help",), ("run", "--help"), ("doctor", "--help"), ("watch", "--help")])
def test_help_is_quick(words: tuple[str, ...]) -> None:
    assert loaded_by(*words) == set()


@pytest.mark.parametrize("words", [("ps",), ("profiles", "list"), ("runs",), ("lint", "TASK.md")])
def test_a_command_that_serves_nothing_loads_no_server(words: tuple[str, ...], tmp_path: Path) -> None:
    task = tmp_path / "TASK.md"
    task.write_text("*** ORIGINAL EXPLORE SUMMARY ***\nx\n*** SCENARIO TEST ***\ny\n")
    given = [str(task) if word == "TASK.md" else word for word in words]
    assert loaded_by(*given).isdisjoint({"fastapi", "uvicorn"})


def test_a_run_loads_neither_a_server_nor_what_draws_before_it_needs_them() -> None:
    assert loaded_by("run", "--wd", "/dev/null") == {"httpx", "pydantic"}


FLEET = ("dbos", "sqlalchemy", "psycopg", "quintet.fleet")


@pytest.mark.parametrize(
    "words", [("run", "--wd", "/dev/null"), ("queue", "--help"), ("worker", "--help"), ("--help",)]
)
def test_only_the_queue_loads_its_engine(words: tuple[str, ...]) -> None:
    code = "import atexit, sys, quintet, quintet.cli.entry as e; atexit.register(lambda: print(*sys.modules)); e.main()"
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=False, timeout=60)
    assert not {name for name in done.stdout.splitlines()[-1].split() if name.startswith(FLEET)}


def test_without_the_extra_the_queue_says_how_to_install_it() -> None:
    code = "import sys; sys.modules['dbos'] = None; import quintet.cli.entry as e; e.main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "queue"], capture_output=True, text=True, check=False, timeout=60
    )
    line = "quintet: the queue needs more packages; install them with: pip install 'quintet[fleet]'"
    assert (done.returncode, done.stdout, done.stderr.strip()) == (1, "", line)
