"""What a role may change, and which changes take the worth from a verdict."""

import pytest

from quintet.guard import Area, Change, Entry, Rules
from quintet.guard.globs import matches

FILE = Entry(0o100644, digest="a")
OTHER = Entry(0o100644, digest="b")


@pytest.mark.parametrize(
    ("glob", "path", "expected"),
    [
        ("openspec/**", "openspec/a/b.md", True),
        ("openspec/**", "openspec", False),
        ("openspec/**", "xopenspec/a", False),
        ("tests", "tests/a/b.py", True),
        ("tests/", "tests/a/b.py", True),
        ("./check.sh", "check.sh", True),
        ("check.sh", "sub/check.sh", False),
        ("*.py", "a.py", True),
        ("*.py", "sub/a.py", False),
        ("**/*.py", "a.py", True),
        ("**/*.py", "sub/deep/a.py", True),
        ("a/**/z", "a/z", True),
        ("a/**/z", "a/b/c/z", True),
        ("a/**/z", "ab/z", False),
        ("**", "anything/at all\n", True),
        ("file?.txt", "file1.txt", True),
        ("file?.txt", "file/.txt", False),
        ("file[0-9].txt", "file1.txt", True),
        ("file[!0-9].txt", "file1.txt", False),
        ("file[!0-9].txt", "filex.txt", True),
        ("a+b(c).txt", "a+b(c).txt", True),
        ("[", "[", True),
    ],
)
def test_globs(glob: str, path: str, expected: bool) -> None:
    assert matches(path, (glob,)) is expected


PROTECTED = Rules(("**",), may_commit=True, protect=("tests/**", "quintet.json"), allow=("tests/tmp/**",))


@pytest.mark.parametrize(
    ("rules", "area", "name", "expected"),
    [
        (Rules(), Area.FILE, "a.c", False),
        (Rules(allow=("out/**",)), Area.FILE, "out/log", True),
        (Rules(("openspec/**",)), Area.FILE, "openspec/spec.md", True),
        (Rules(("openspec/**",)), Area.INDEX, "openspec/spec.md", True),
        (Rules(("openspec/**",)), Area.INDEX, "a.c", False),
        (Rules(("openspec/**",)), Area.REF, "refs/heads/main", False),
        (Rules(("openspec/**",)), Area.FILE, "openspec/", True),
        (PROTECTED, Area.FILE, "a.c", True),
        (PROTECTED, Area.FILE, "tests/a.c", False),
        (PROTECTED, Area.FILE, "tests/tmp/a.c", False),
        (PROTECTED, Area.INDEX, "quintet.json", False),
        (PROTECTED, Area.INDEX, "../elsewhere.c", True),
        (PROTECTED, Area.REF, "refs/heads/main", True),
        (PROTECTED, Area.GIT, "common/config", True),
        (PROTECTED, Area.REPOSITORY, ".git", False),
    ],
)
def test_what_a_role_may_change(rules: Rules, area: Area, name: str, expected: bool) -> None:
    assert rules.allows(Change(area, name, FILE, OTHER)) is expected


def test_what_is_outside_is_told_and_not_undone() -> None:
    changes = [Change(Area.NESTED, "lib/", "a", "b"), Change(Area.ELSEWHERE, "x", FILE, None)]
    split = Rules().split(changes)
    assert (split.forbidden, split.told, split.serious) == ((), tuple(changes), False)


@pytest.mark.parametrize(
    ("area", "name", "before", "after", "expected"),
    [
        (Area.FILE, "a", None, FILE, False),
        (Area.FILE, "a", FILE, OTHER, True),
        (Area.FILE, "a", FILE, None, True),
        (Area.FILE, "src/__pycache__/main.cpython-311.pyc", FILE, OTHER, False),
        (Area.FILE, "src/__pycache__.py", FILE, OTHER, True),
        (Area.REF, "refs/heads/a", None, "1", False),
        (Area.REF, "refs/heads/a", "1", "2", True),
        (Area.REF, "refs/tags/a", "1", None, True),
        (Area.REF, "refs/stash", "1", "2", False),
        (Area.HEAD, "HEAD", "ref: refs/heads/a 1", "ref: refs/heads/b 1", True),
        (Area.INDEX, "a", "H 100644 1 0", None, False),
        (Area.GIT, "common/config", FILE, OTHER, False),
        (Area.REPOSITORY, ".git", "ref: refs/heads/a", None, True),
    ],
)
def test_which_changes_are_serious(area: Area, name: str, before: object, after: object, expected: bool) -> None:
    assert Change(area, name, before, after).serious is expected  # type: ignore[arg-type]
