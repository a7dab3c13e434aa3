"""Which files of a project the checks rely on that agents may change."""

import json
from pathlib import Path

import pytest

from quintet.config import Settings
from quintet.loop.decide.checks import Check
from quintet.setup.check_files import unprotected
from tests.setup.conftest import Desk

TASK = """\
*** ORIGINAL EXPLORE SUMMARY ***
The command report has no --json. Add it in report.py, beside --html.
*** SCENARIO TEST ***
Quintet runs

```verify
set -u
sh check.sh
```
"""


@pytest.fixture
def wd(tmp_path: Path) -> Path:
    for name in ("check.sh", "tests/unit/test_a.py", "it's.sh", ".tmp/x.sh", ".git/config", "quintet.json"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path.parent / "outside.sh").touch()
    return tmp_path


@pytest.mark.parametrize(
    ("script", "protect", "globs"),
    [
        ("sh check.sh", (), ["check.sh"]),
        ("./check.sh && ./check.sh", (), ["check.sh"]),
        ('sh "check.sh"; test -e check.sh|cat<check.sh', (), ["check.sh"]),
        ("python3 -m pytest tests", (), ["tests/**"]),
        ("python3 -m pytest tests/unit/test_a.py::test_b", (), ["tests/unit/test_a.py"]),
        ("sh check.sh && pytest tests", ("check.sh",), ["tests/**"]),
        ("sh check.sh && pytest tests/", ("*.sh", "tests/**"), []),
        ("pytest tests/unit", ("tests",), []),
        ("cat quintet.json", (), []),
        ("sh .tmp/x.sh; cat .git/config; sh ../outside.sh; cat /etc/hosts; ls . .. /", (), []),
        ("make test && echo nothing.sh", (), []),
        ("x" * 5000, (), []),
    ],
)
def test_a_file_that_a_check_names_and_nothing_protects(
    script: str, protect: tuple[str, ...], globs: list[str], wd: Path
) -> None:
    found = unprotected([Check("c", script)], Settings(wd=wd, protect=protect))
    assert list(dict.fromkeys(found.values())) == globs


def test_lint_says_so_with_the_line(desk: Desk) -> None:
    (desk.wd / "check.sh").touch()
    (desk.wd / "t.md").write_text(TASK)
    done = desk.quintet("lint", "t.md")
    assert done.exit_code == 0
    assert done.output.startswith("t.md:8: warning: the check names check.sh, which agents may change")
    assert '"guard": {"protect": ["check.sh"]}' in done.output
    (desk.wd / "quintet.json").write_text(json.dumps({"guard": {"protect": ["check.sh"]}}))
    assert desk.quintet("lint", "t.md").output == "t.md: nothing is missing\n"
    (desk.wd / "quintet.json").write_text("no settings")
    assert desk.quintet("lint", "t.md").output == "t.md: nothing is missing\n"


def test_doctor_says_so_for_the_task_and_for_the_projects_command(desk: Desk) -> None:
    for name in ("check.sh", "all.sh"):
        (desk.wd / name).touch()
    (desk.wd / "t.md").write_text(TASK)
    flags = ("--verify-cmd", "sh all.sh", "--prompt-file", "t.md")
    said = " ".join(desk.quintet("doctor", *flags).output.split())
    assert "checks the checks name check.sh, all.sh, which agents may change" in said
    assert '"protect": ["check.sh", "all.sh"]' in said
    said = desk.quintet("doctor", *flags, "--protect", "*.sh").output
    assert "agents may change" not in said
