"""What a user is told to type starts this very program."""

import ast
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

from quintet.cli.main import cli
from quintet.program import words_for
from tests.test_rooms import modules

COMMAND = re.compile(rf"\bquintet (?:{'|'.join(cli.commands)})\b")
SPOKEN_OF = {
    "quintet.setup.init_files: Written by quintet init, which brings it up to date; changes to it are lost.",
    "quintet.setup.stopping: stopped with quintet stop",
}
"""what names a command that nobody is told to type"""


def program_at(path: Path) -> str:
    """A copy of the program that says what to type for it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    again = f"#!/bin/sh\n'''exec' {shlex.quote(sys.executable)} \"$0\"\n'''\n"  # a command to sh, a text to Python
    path.write_text(f"{again}from quintet.program import program\nprint(program())\n")
    path.chmod(0o755)
    return str(path)


def said(*words: str, cwd: Path, path: str = os.environ["PATH"], home: str = "/nowhere") -> str:
    done = subprocess.run(
        words, cwd=cwd, env={"PATH": path, "HOME": home}, capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout.strip()


def test_on_the_path_the_name_is_enough(tmp_path: Path) -> None:
    started = program_at(tmp_path / "bin/quintet")
    assert said(started, cwd=tmp_path, path=f"{tmp_path}/bin:{os.environ['PATH']}") == "quintet"
    (tmp_path / "links").mkdir()
    (tmp_path / "links/quintet").symlink_to(started)
    assert said(started, cwd=tmp_path, path=f"{tmp_path}/links:{os.environ['PATH']}") == "quintet"


def test_elsewhere_its_whole_path_is_named(tmp_path: Path) -> None:
    started = program_at(tmp_path / ".venv/bin/quintet")
    assert said(".venv/bin/quintet", cwd=tmp_path) == started


def test_another_program_of_that_name_on_the_path_is_not_meant(tmp_path: Path) -> None:
    program_at(tmp_path / "other/quintet")
    started = program_at(tmp_path / "mine/quintet")
    assert said(started, cwd=tmp_path, path=f"{tmp_path}/other:{os.environ['PATH']}") == started


def test_in_ones_home_the_path_is_short_and_a_shell_reads_it(tmp_path: Path) -> None:
    started = program_at(tmp_path / "src/bin/quintet")
    short = said(started, cwd=tmp_path, home=str(tmp_path))
    assert short == "~/src/bin/quintet"
    assert said("sh", "-c", short, cwd=tmp_path, home=str(tmp_path)) == short


def test_a_path_with_a_blank_can_be_typed(tmp_path: Path) -> None:
    started = program_at(tmp_path / "my folder/quintet")
    quoted = said(started, cwd=tmp_path)
    assert said("sh", "-c", quoted, cwd=tmp_path) == quoted


def test_the_module_is_called_as_it_was() -> None:
    assert words_for(str(Path(sys.modules["quintet"].__file__ or "").with_name("__main__.py")), None).endswith(
        " -m quintet"
    )


def test_advice_of_the_command_line_can_be_typed(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "quintet", "run"], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60
    )
    advised = re.search(r"there is no task: (.+ -m quintet) run TASK\.md", done.stderr)
    assert advised, done.stderr
    told = subprocess.run(["sh", "-c", f"{advised[1]} --version"], capture_output=True, text=True, check=True)
    assert told.stdout.startswith("quintet ")


def literals(tree: ast.Module) -> list[str]:
    """All texts of a module but its docstrings, whose readers look at the code."""
    bare = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    constants = (node for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in bare)
    return [node.value for node in constants if isinstance(node.value, str)]


def test_no_text_spells_the_program_itself() -> None:
    spelled = {
        f"{module}: {text}" for module, tree in modules() for text in literals(tree) if COMMAND.search(text)
    } - SPOKEN_OF
    assert spelled == set()
