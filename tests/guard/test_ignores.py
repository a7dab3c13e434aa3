"""The one list of ignore rules ignores what git ignores by the files in the tree."""

from pathlib import Path

import pytest

from quintet.guard import Store, take
from tests.guard.projects import git

PATHS = ("a", "a.o", "foo", "foo.txt", "bar/foo", "bar/baz.o", "bar/deep/foo/x", "bar/deep/baz.o", "#x", "!x", "sp ")
SETS = [
    {"sub/.gitignore": "foo\n"},
    {"sub/.gitignore": "/foo\n"},
    {"sub/.gitignore": "foo/\n"},
    {"sub/.gitignore": "bar/foo\n"},
    {"sub/.gitignore": "**/foo\n"},
    {"sub/.gitignore": "bar/**\n"},
    {"sub/.gitignore": "bar/**/foo\n"},
    {"sub/.gitignore": "*\n!foo\n"},
    {"sub/.gitignore": "*.o\n!baz.o\n"},
    {".gitignore": "*.o\n", "sub/.gitignore": "!baz.o\n"},
    {".gitignore": "foo\n", "sub/bar/.gitignore": "!foo\n"},
    {".gitignore": "/sub/bar/\n", "sub/.gitignore": "!bar/\n"},
    {"sub/.gitignore": "# foo\n\\#x\n\\!x\n"},
    {"sub/.gitignore": "sp\\ \nfoo   \n"},
    {"sub/.gitignore": "foo\r\n*.o\r\n"},
    {"sub/.gitignore": "\ufefffoo\n"},
    {"sub/.gitignore": "/\n!\n\n"},
    {"sub/.gitignore": "fo[a-o]\nba?\n"},
    {"sub/.gitignore": "**\n"},
    {"sub/.gitignore": "foo"},
    {"sub/.gitignore": "*\n"},
    {"s [x]*/.gitignore": "foo\n/a\n", "sub/.gitignore": "a\n"},
    {".git/info/exclude": "*.o\n", "sub/.gitignore": "!a.o\n"},
]


@pytest.mark.parametrize("number", range(len(SETS)))
def test_the_list_ignores_what_git_ignores(tmp_path: Path, number: int) -> None:
    tree = tmp_path / "tree"
    git(tmp_path, "init", "--quiet", str(tree))
    for folder in ("sub", "other", "s [x]*"):
        for name in PATHS:
            path = tree / folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("x")
    for name, rules in SETS[number].items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_bytes(rules.encode())
    listed = git(tree, "ls-files", "-z", "--others", "--exclude-standard").split("\0")
    found = take(tree, Store(tmp_path / "store"), "turn").files
    assert {path for path in found if not path.endswith("/")} == {path for path in listed if path}
