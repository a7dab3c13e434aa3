# ruff: noqa: E501 - a row of the table is a line
"""The corpus of honest behaviour: what agents and users do every day, and what must not be disturbed by the guard."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from quintet.roles import ANALYST, PEER_PROGRAMMER, PROGRAMMER, TESTER, Role

MEND: Final = "echo 'exit 0' > main.sh"


@dataclass(frozen=True)
class Honest:
    """One row of the table: the run ends in PASS, and nobody is warned of anything."""

    name: str
    role: Role
    command: str
    """what the agent does in addition; the programmer also mends the program"""
    leaves: Mapping[str, str] = field(default_factory=dict)
    """files, with their text, that are there afterwards"""
    before: str = ""
    """what the user does before the run"""
    settings: Mapping[str, str] = field(default_factory=dict)


def of_programmer(name: str, command: str, before: str = "", **leaves: str) -> Honest:
    files = {name.replace("__", "/").replace("_", "."): text for name, text in leaves.items()}
    return Honest(f"the programmer {name}", PROGRAMMER, command, files, before)


HONEST: Final = (
    of_programmer("changes files", "echo more >> README.md"),
    of_programmer("adds files in new folders", "mkdir -p src/deep && echo x > src/deep/new.txt", src__deep__new_txt="x\n"),
    of_programmer("deletes a file", "rm old.txt"),
    of_programmer("renames a file", "git mv old.txt new.txt", new_txt="old\n"),
    of_programmer("formats every file", "for f in *.sh; do cp $f .tmp/x; tr -s ' ' < .tmp/x > $f; done"),
    of_programmer("changes mode bits and makes a link", "chmod 755 main.sh; ln -s main.sh run", before=""),
    of_programmer("commits", "git add --all; git commit --quiet --message done"),
    of_programmer("commits on a new branch", "git switch --quiet --create work; git commit --quiet --allow-empty -m done"),
    of_programmer("tags and stashes", "git tag done; git stash --quiet; git stash pop --quiet"),
    of_programmer("widens .gitignore and builds", "echo build/ >> .gitignore; mkdir build; echo o > build/o", build__o="o\n"),
    of_programmer("adds a submodule", "git -c protocol.file.allow=always submodule --quiet add ./.git sub"),
    of_programmer("installs a hook", "git config core.hooksPath .hooks; mkdir .hooks; echo x > .hooks/pre-commit"),
    of_programmer("writes a test of its own beside protected ones", "echo x > more_test.sh"),
    Honest("the analyst writes the specification", ANALYST, "mkdir -p openspec/changes/a && echo x > openspec/changes/a/p.md", {"openspec/changes/a/p.md": "x\n"}),
    Honest("a reviewer runs the tests, which write to ignored folders", PEER_PROGRAMMER, "mkdir -p cache && echo x > cache/x.o", before="echo '*.o' >> .gitignore; git commit --quiet --all --message ignore"),
    Honest("a reviewer looks with git", PEER_PROGRAMMER, "git status; git diff; git log -3; git show HEAD"),
    Honest("the tester's scenario writes below .tmp", TESTER, "mkdir -p .tmp/scenario && echo x > .tmp/scenario/out"),
    Honest("the tester's scenario writes where everybody may", TESTER, "mkdir -p out && echo x > out/result", {"out/result": "x\n"}, settings={"GUARD_ALLOW": "out/**"}),
    Honest("the tester changes a file and puts it back", TESTER, "cp README.md .tmp/r && echo x >> README.md && cat .tmp/r > README.md"),
    Honest("the tester touches a file", TESTER, "touch main.sh README.md"),
    Honest("the user has staged, dirty and untracked files", TESTER, "git status", {"notes.txt": "mine\n", "mine.sh": "exit 3\n"}, before="echo staged > staged.txt; git add staged.txt; echo dirty >> staged.txt"),
    Honest("the project is in the middle of a merge", TESTER, "git status", before="git stash --quiet; git merge --quiet --no-commit --no-ff side; git stash pop --quiet"),
    Honest("line ends are converted by git", TESTER, "git status; git diff", before="printf 'a\\r\\nb\\r\\n' > crlf.txt; echo '*.txt text eol=crlf' > .gitattributes; git add --all; git commit --quiet --message crlf"),
    Honest("the project is a folder of a larger repository", TESTER, "git status", settings={"SUBFOLDER": "yes"}),
    Honest("the repository has no commit", TESTER, "git status", before="rm -rf .git; git init --quiet"),
)  # fmt: skip
